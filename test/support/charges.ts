import { newId } from '../../core/runtime/ids.ts'
import { insertCall } from '../../core/state/calls/running-calls.ts'
import type { ControlPlane } from './control-plane.ts'
import { queuedCall } from './ended-calls.ts'

/** What a call of a day costs. */
export interface Charge {
  readonly day: string
  readonly trunk_id: string | null
  readonly label: string
  /** Null while the call runs and reserves 77 minor units. */
  readonly charge_minor: number | null
  readonly seconds: number
}

/** Records a call of 09:00 UTC with its price. No balance changes. Returns its sid. */
export async function chargedCall(w: ControlPlane, charge: Charge): Promise<string> {
  const { day, trunk_id, label, charge_minor, seconds } = charge
  const sid = newId.call()
  const at = `${day}T09:00:00.000Z`
  const settled = charge_minor === null ? null : seconds
  const times = { queued_at: at, initiated_at: at, ringing_at: at, answered_at: at, ended_at: at }
  await w.state.transaction(async trx => {
    const ended = { status: 'completed', duration_seconds: seconds, sip_code: 200, ended_by: 'caller' } as const
    await insertCall(trx, queuedCall(w, sid, at, { ...times, ...ended, trunk_id, node_id: null }), Date.parse(at))
    const { billing_account_id } = await trx
      .selectFrom('project')
      .select('billing_account_id')
      .where('id', '=', w.demo.project_id)
      .executeTakeFirstOrThrow()
    await trx
      .insertInto('reservation')
      .values({
        ...{ call_sid: sid, project_id: w.demo.project_id, billing_account_id, billing: 'rated' },
        ...{ destination: '2348030000001', price_book_id: null, price_book_revision: null, rate_id: null },
        ...{ rate_prefix: '234', rate_label: label, rate_micro: 0, rate_unit: 'minute', currency: 'NGN' },
        ...{ increment_initial_seconds: 1, increment_additional_seconds: 1, day, held_minute: 0, caps: '[]' },
        ...{ held_minor: charge_minor === null ? 77 : 0, paid_until_seconds: null, begun_at: at },
        ...{ settled_at: settled === null ? null : at, duration_seconds: settled, billed_seconds: settled },
        charge_minor,
      })
      .execute()
  })
  return sid
}

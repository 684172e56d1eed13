import { voiceService, type WayName } from '../../domain/admission/index.ts'
import { readUri } from '../../domain/sip/address.ts'
import { type AdmissionRequest, takeAdmission } from '../calls/leases.ts'
import type { CallRow } from '../calls/running-calls.ts'
import type { Db } from '../db.ts'

/** What admission says of a call when it is asked again. Money is in minor units. */
export interface DecidedAgain {
  readonly sid: string
  readonly from: string
  readonly to: string
  readonly admitted: boolean
  readonly reason: string | null
  readonly max_duration_seconds: number | null
  readonly rate_minor: number | null
}

/** The newest calls of a period that are asked again. More say little more. */
const MOST = 10_000

/**
 * Asks admission again about the calls that were queued since `since`, as dry runs against the state as it is now. The
 * same state gives the same answers, so two programs that differ here differ in their rules. What the peer's INVITE
 * offered is not stored with a call: the checks of transport and media pass.
 */
export async function decisionsAgain(db: Db, since: string): Promise<DecidedAgain[]> {
  const calls = await db
    .selectFrom('call')
    .selectAll()
    .where('queued_at', '>=', since)
    .where('decision_trace', 'is not', null)
    .orderBy('position', 'desc')
    .limit(MOST)
    .execute()
  const again: DecidedAgain[] = []
  for (const call of calls) {
    const outcome = await takeAdmission(db, requestOf(call), { dry_run: true })
    again.push({
      sid: call.sid,
      from: call.from_number,
      to: call.to_number,
      admitted: outcome.admitted,
      reason: outcome.admitted ? null : outcome.reason,
      max_duration_seconds: outcome.admitted ? outcome.max_duration_seconds : null,
      rate_minor: outcome.price?.rate_minor ?? null,
    })
  }
  return again
}

function requestOf(call: CallRow): AdmissionRequest {
  const { sid, project_id, application_id, trunk_id, origin } = call
  const inbound = call.direction === 'inbound'
  const of_trunk = trunk_id !== null && (inbound ? application_id === null : origin === 'trunk' || origin === 'test')
  const at_ms = Date.parse(call.queued_at)
  return {
    call_sid: sid,
    node_id: 'rehearsal',
    project_id,
    transport: null,
    offer: null,
    part: inbound ? 'inbound' : 'outbound',
    way: inbound ? null : wayOf(call),
    service: of_trunk ? { type: 'trunk', id: trunk_id } : voiceService(project_id, application_id),
    ...(inbound && origin === 'carrier' ? { from_carrier: true } : {}),
    called: call.to_number,
    caller: call.from_number,
    now_ms: at_ms,
    store_ms: at_ms,
  }
}

function wayOf({ origin, to_number }: CallRow): WayName {
  const sip = readUri(to_number) !== null
  if (origin === 'trunk') return 'peer'
  if (origin === 'test') return sip ? 'target_test' : 'trunk_test'
  if (origin === 'client') return 'client'
  if (origin === 'rest') return 'create'
  if (to_number.startsWith('client:')) return 'dial_client'
  return sip ? 'dial_sip' : 'dial_number'
}

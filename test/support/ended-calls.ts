import { ending } from '../../core/domain/calls/endings.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { finishCall, insertCall, type NewCall, NOTHING_YET, writeCall } from '../../core/state/calls/running-calls.ts'
import type { NewRow, RecordingTable } from '../../core/state/db.ts'
import { type ControlPlane, freshKey } from './control-plane.ts'

export const HOUR_MS = 3_600_000

/** Creates a trunk of the demo project. Returns its id. */
export async function trunkOf(w: ControlPlane, name: string): Promise<string> {
  const made = await w.ask('POST', '/v1/trunks', {
    headers: { 'Idempotency-Key': freshKey() },
    body: {
      name,
      direction: 'both',
      auth_mode: 'ip_allow_list',
      sources: [],
      targets: [],
      codecs: ['PCMA'],
      media_security: 'rtp',
      require_tls: false,
      source_validation: 'relaxed',
    },
  })
  return made.body.trunk.id
}

/** The outcome of a call. Without `seconds` it was not answered. */
interface Story {
  readonly hours_ago?: number
  readonly seconds?: number | null
  readonly pdd_ms?: number | null
  readonly media?: object | null
  readonly cause?: Parameters<typeof ending>[0]['cause']
  readonly sip_code?: number
  readonly call?: Partial<NewCall>
}

/** Returns the row of a call that has begun. */
export const queuedCall = (w: ControlPlane, sid: string, queued_at: string, over: Partial<NewCall> = {}): NewCall => ({
  sid,
  project_id: w.demo.project_id,
  account_sid: null,
  parent_call_sid: null,
  origin: 'trunk',
  direction: 'outbound',
  from_number: '+2342010000001',
  to_number: '+2348030000001',
  status: 'queued',
  trunk_id: null,
  carrier_id: null,
  number_id: null,
  application_id: null,
  sip_call_id: null,
  request: null,
  node_id: 'node_1',
  queued_at,
  ...NOTHING_YET,
  ...over,
})

/** Records a call that ran and ended, by the functions that signaling uses. Returns its sid. */
export async function ranCall(w: ControlPlane, story: Story): Promise<string> {
  const { hours_ago = 0, seconds = null, pdd_ms = null, media = null, cause = 'caller_hung_up' } = story
  const ended_ms = w.clock.now() - hours_ago * HOUR_MS
  const begin_ms = ended_ms - ((seconds ?? 0) * 1000 + 500)
  const sid = newId.call()
  await w.state.transaction(async trx => {
    await insertCall(trx, queuedCall(w, sid, iso(begin_ms), story.call), begin_ms)
    const answered = seconds !== null
    if (answered) await writeCall(trx, sid, [{ step: 'answered', at_ms: ended_ms - seconds * 1000 }])
    const facts = story.sip_code === undefined ? { cause } : { cause, sip_code: story.sip_code }
    await finishCall(trx, sid, {
      ending: ending({ ...facts, answered }),
      ended_ms,
      pdd_ms,
      media: media === null ? null : JSON.stringify(media),
    })
  })
  return sid
}

/** Returns the row of a finished recording of a call, encrypted on a machine. */
export function recordingOf(w: ControlPlane, call_sid: string, machine_id: string): NewRow<RecordingTable> {
  const sid = newId.recording()
  const at = iso(w.clock.now())
  return {
    ...{ sid, call_sid, project_id: w.demo.project_id, source: 'DialVerb', channels: 1, track: 'both' },
    ...{ status: 'completed', file: `recordings/${sid}.wav.sealed`, machine_id, duration_ms: 1000, bytes: 1000 },
    ...{ started_at: at, created_at: at, updated_at: at },
  }
}

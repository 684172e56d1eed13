import { voiceService } from '../../core/domain/admission/index.ts'
import { type RecordRequest, readCallRequest } from '../../core/domain/calls/request.ts'
import { attestationOf } from '../../core/domain/identity/index.ts'
import { sipRefusal } from '../../core/domain/reasons/index.ts'
import type { Timer } from '../../core/runtime/clock.ts'
import type { CallRow } from '../../core/state/calls/running-calls.ts'
import { isPassing } from '../../core/state/index.ts'
import type { Event } from '../../markup/interpreter/types.ts'
import type { Leg } from '../b2bua/leg.ts'
import { OutboundCall } from '../b2bua/outbound-call.ts'
import { ownTargets } from '../b2bua/routes.ts'
import { answeredHost, type ScriptEntry } from '../b2bua/script-host.ts'
import { CallToApplication } from '../scripts/call-to-application.ts'
import { detectMachine, readDetection, tellDetected } from '../scripts/detection.ts'
import { CallRecorder } from '../scripts/recorder.ts'
import { admitQueued, asksOf, limitsOf } from './admit-queued.ts'
import type { AdmissionContext } from './context.ts'
import { hopsOf, ownLine, trunkOfCaller } from './lines.ts'
import { secondOf } from './second-route.ts'
import { endUnplaced } from './unplaced.ts'

/** Places the calls of the API, from their row to their INVITE. */

/** How long a call over its CPS limit is queued before it fails (design section 4). */
const QUEUE_LIMIT_MS = 60_000
const QUEUE_RETRY_MS = 250
const DEFAULT_RING_SECONDS = 60

/** A call of the API, to somewhere else or to an application of its own project. */
type Created = OutboundCall | CallToApplication

/** Admits and places API calls, and queues the ones that must wait. */
export class Originator {
  readonly #ctx: AdmissionContext
  readonly #waiting = new Map<string, { row: CallRow; timer: Timer }>()

  constructor(ctx: AdmissionContext) {
    this.#ctx = ctx
  }

  get waiting(): number {
    return this.#waiting.size
  }

  async originate(row: CallRow): Promise<void> {
    const { media, sip } = this.#ctx
    if (this.#ctx.draining()) return this.#refuse(row, 'draining')
    if (!sip.connected || !media.connected) return this.#retry(row, 'media_unavailable')
    const trunk = trunkOfCaller(this.#ctx, row.from_number)
    const request = readCallRequest(row.request)
    const line = ownLine(this.#ctx, row.project_id, row.to_number)
    const waits_for = this.#mayWait(row) && !line ? 'cps_exceeded' : null
    const ask = {
      project_id: row.project_id,
      service: voiceService(row.project_id, row.application_id),
      called: row.to_number,
      caller: request.caller_id ?? row.from_number,
      transport: null,
      offer: null,
      own_targets: trunk ? ownTargets(this.#ctx, trunk) : 0,
    }
    const asking = admitQueued(this.#ctx, row, asksOf('create', ask, line), waits_for)
    const outcome = await asking.catch((err: unknown) => {
      if (!isPassing(err)) throw err
      this.#ctx.log.error({ err, call_id: row.sid }, 'a call of the API could not be admitted')
      return null
    })
    if (!outcome) return this.#retry(row, 'state_unavailable')
    if (!outcome.admitted) {
      if (outcome.reason === waits_for) this.#wait(row)
      return
    }
    if (!outcome.called || outcome.caller_e164 === null) return this.#refuse(row, 'number_invalid')
    const session = await this.#ctx.media.open(row.sid, row.project_id)
    if (!session) return this.#refuse(row, 'media_unavailable')
    if (line?.kind === 'application') {
      const limits = limitsOf(outcome, request.time_limit_seconds ?? null)
      const answered = (leg: Leg): void => void this.#answered(inside, leg)
      const inside: CallToApplication = new CallToApplication(this.#ctx, { row, session, limits, answered })
      return inside.begin(line)
    }
    const call: OutboundCall = new OutboundCall(this.#ctx, {
      row,
      session,
      limits: limitsOf(outcome, request.time_limit_seconds ?? null),
      watcher: { answered: leg => void this.#answered(call, leg) },
    })
    const outgoing = {
      call_sid: row.sid,
      called_e164: outcome.called.e164,
      caller_e164: outcome.caller_e164,
      restricted: false,
      caller_name: null,
      max_forwards: 70,
      diverters: [],
      passed: {},
      attest: attestationOf(outcome.caller_ownership, null),
    }
    const hops = hopsOf(this.#ctx, { project_id: row.project_id, trunk, outgoing }, line)
    const second = secondOf(this.#ctx, ask, outgoing, line)
    call.begin(hops, { ring_ms: (request.timeout_seconds ?? DEFAULT_RING_SECONDS) * 1000, prefer: null, second })
  }

  /** Whether the call is queued here. */
  holds(sid: string): boolean {
    return this.#waiting.has(sid)
  }

  /** Cancels a queued call; false when it is not queued here. */
  async cancel(sid: string): Promise<boolean> {
    const waiting = this.#waiting.get(sid)
    if (!waiting) return false
    waiting.timer.cancel()
    this.#waiting.delete(sid)
    await endUnplaced(this.#ctx, waiting.row, { cause: 'api' })
    return true
  }

  stop(): CallRow[] {
    const rows = [...this.#waiting.values()].map(({ row, timer }) => {
      timer.cancel()
      return row
    })
    this.#waiting.clear()
    return rows
  }

  async #answered(call: Created, leg: Leg): Promise<void> {
    const { send_digits } = call.request
    const { record } = call.request
    if (record) recordCall(call, leg, record)
    if (send_digits) {
      await digitsSent(
        call,
        leg,
        send_digits.replace(/[a-d]/g, key => key.toUpperCase()),
      )
      // The call has ended meanwhile, or runs another document.
      if (call.ended || call.script) return
    }
    const detection = readDetection(call.request.machine_detection)
    let entry = entryOf(call)
    // A call with SendDigits has no machine detection (voice-compat.md §12.4).
    if (detection && !send_digits) {
      const found = detectMachine(call, leg, detection)
      if (detection.asynchronous)
        void found.then(detected => detected && detection.callback && tellDetected(call, detected, detection.callback))
      else {
        const detected = await found
        call.tellAnswer({ ...detected })
        if (detected && entry.entry.kind === 'request')
          entry = { ...entry, entry: { ...entry.entry, parameters: { ...detected } } }
      }
      // The call has ended meanwhile, or runs another document.
      if (call.ended || call.script) return
    }
    call.tellAnswer({})
    const host = answeredHost(call, leg, () => void call.end({ cause: 'script' }))
    call.run(this.#ctx.scripts.create(host, entry))
  }

  #mayWait(row: CallRow): boolean {
    return this.#ctx.clock.now() - Date.parse(row.queued_at) < QUEUE_LIMIT_MS
  }

  #wait(row: CallRow): void {
    const timer = this.#ctx.clock.after(QUEUE_RETRY_MS, () => {
      this.#waiting.delete(row.sid)
      this.originate(row).catch(err =>
        this.#ctx.log.error({ err, call_id: row.sid }, 'a queued call could not be placed'),
      )
    })
    this.#waiting.set(row.sid, { row, timer })
  }

  async #retry(row: CallRow, reason: 'media_unavailable' | 'state_unavailable'): Promise<void> {
    if (this.#mayWait(row)) this.#wait(row)
    else await this.#refuse(row, reason)
  }

  async #refuse(
    row: CallRow,
    reason: 'draining' | 'media_unavailable' | 'state_unavailable' | 'number_invalid',
  ): Promise<void> {
    await endUnplaced(this.#ctx, row, { cause: 'not_admitted', reason, sip_code: sipRefusal(reason).code })
  }
}

/** Returns the first document of an API call: the URL when it has one, else the inline markup. */
function entryOf(call: Created): ScriptEntry {
  const { url, method, markup, fallback_url, fallback_method } = call.request
  return {
    kind: 'call',
    entry: url ? { kind: 'request', url, method: method ?? 'POST' } : { kind: 'inline', text: markup ?? '<Response/>' },
    fallback: fallback_url ? { url: fallback_url, method: fallback_method ?? 'POST' } : null,
  }
}

/** Sends digits. Resolves when the last one has been sent, or none can be: the first document begins then. */
function digitsSent(call: Created, leg: Leg, digits: string): Promise<void> {
  const send_id = `${leg.id}-dial`
  return new Promise(resolve => {
    const done = (): void => {
      unwatch()
      resolve()
    }
    const unwatch = call.watchMedia(event => {
      if (event.event === 'digits.sent' && event.send_id === send_id) done()
    })
    call.onEnd(done)
    leg.sendDigits(send_id, digits).catch(err => {
      call.log.info({ err }, 'digits could not be sent')
      done()
    })
  })
}

/** Records a call that was created with `Record`, from its answer to its end. */
function recordCall(call: Created, leg: Leg, wanted: RecordRequest): void {
  const dual = wanted.channels === 'dual' || wanted.channels === 2
  let ended: () => void = () => undefined
  call.endAfter(
    new Promise<void>(resolve => {
      ended = resolve
    }),
  )
  const tell = (event: Event): void => {
    if (event.type !== 'recording_ended') return
    const { recording } = event
    if (recording)
      call.tellAtEnd({
        RecordingUrl: recording.url,
        RecordingSid: recording.sid,
        RecordingDuration: String(recording.duration_seconds),
      })
    ended()
  }
  new CallRecorder(call.ctx, { call, leg }, tell).start(
    {
      type: 'start_recording',
      id: 'call',
      source: 'StartCallRecordingAPI',
      name: null,
      child: null,
      channels: dual ? 2 : 1,
      track: wanted.track ?? 'both',
      trim: wanted.trim === true || wanted.trim === 'trim-silence',
      callback: wanted.status_callback
        ? {
            url: wanted.status_callback,
            method: wanted.status_callback_method ?? 'POST',
            events: wanted.status_callback_events ?? ['completed'],
          }
        : null,
    },
    null,
    'OutboundAPI',
  )
}

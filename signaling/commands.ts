import type {
  ActivityCommand,
  ConferenceCommand,
  DequeueCommand,
  RecordingCommand,
} from '../core/domain/calls/control-commands.ts'
import { Sleeper } from '../core/runtime/sleeper.ts'
import { type CallCommand, claimCommands, finishCommand } from '../core/state/calls/call-commands.ts'
import { updateRecording } from '../core/state/calls/recordings.ts'
import { findCall } from '../core/state/calls/running-calls.ts'
import type { DocumentTarget, Entry } from '../markup/interpreter/types.ts'
import type { AdmissionContext } from './admission/context.ts'
import type { Originator } from './admission/originate.ts'
import { endUnplaced } from './admission/unplaced.ts'
import type { Call } from './b2bua/call.ts'
import { InboundCall } from './b2bua/inbound-call.ts'
import { OutboundCall } from './b2bua/outbound-call.ts'
import { carryOutActivity } from './scripts/activities.ts'
import { ApplicationCall } from './scripts/application-call.ts'
import { CallToApplication } from './scripts/call-to-application.ts'
import type { ScriptContext } from './scripts/context.ts'
import { controlRecording, recordByApi } from './scripts/recording-orders.ts'
import { controlRoom } from './scripts/room-control.ts'

const POLL_MS = 1000
/** The number of originate commands claimed at a time. The rest stay for other nodes, or for the next poll. */
const BATCH = 20

/** Claims and runs the API's commands on calls. The bus and a timer trigger the same check. */
export class CommandTaker {
  readonly #ctx: AdmissionContext
  readonly #originator: Originator
  readonly #shared: ScriptContext
  readonly #sleeper: Sleeper
  readonly #unhear: () => void

  constructor(ctx: AdmissionContext, originator: Originator, shared: ScriptContext) {
    this.#ctx = ctx
    this.#shared = shared
    this.#originator = originator
    this.#sleeper = new Sleeper({
      work: () => this.#take(),
      failed: err => ctx.log.error({ err }, 'commands could not be taken'),
      every: { clock: ctx.clock, period_ms: POLL_MS },
    })
    this.#unhear = ctx.bus.on('commands', () => this.look())
  }

  look(): void {
    void this.#sleeper.wake()
  }

  async stop(): Promise<void> {
    this.#unhear()
    await this.#sleeper.stop()
  }

  async #take(): Promise<void> {
    // A draining node claims them too: a call accepted just before is then refused at once instead of waiting.
    const originates = !this.#ctx.sip.connected || !this.#ctx.media.connected ? 0 : BATCH
    const commands = await claimCommands(this.#ctx.state, this.#ctx.node_id, { originates, limit: 2 * BATCH })
    for (const command of commands) {
      // The commands run concurrently, so that one that waits does not block the others.
      this.#carryOut(command)
        .then(
          outcome => finishCommand(this.#ctx.state.db, command.id, outcome, this.#ctx.clock.now()),
          err => {
            this.#ctx.log.error({ err, call_id: command.call_sid }, 'a command failed')
            return finishCommand(this.#ctx.state.db, command.id, 'internal', this.#ctx.clock.now())
          },
        )
        .catch(err => this.#ctx.log.error({ err, call_id: command.call_sid }, 'the outcome of a command was not saved'))
    }
    if (commands.length >= BATCH) this.look()
  }

  async #carryOut(command: CallCommand): Promise<string> {
    const call = this.#ctx.calls.get(command.call_sid)
    switch (command.kind) {
      case 'originate': {
        const row = await findCall(this.#ctx.state.db, command.call_sid)
        if (!row || row.ended_at !== null) return 'call_ended'
        await this.#originator.originate(row)
        return 'done'
      }
      case 'hangup':
      // A granted cancel ends the call even if it was answered first (voice-compat.md §4).
      case 'cancel':
        if (!call) return this.#unplaced(command.call_sid)
        await call.end({ cause: 'api' })
        return 'done'
      case 'redirect':
        if (!isRedirected(call)) return 'not_live'
        return redirect(call, command.payload)
      case 'conference':
        return this.#conference(command.call_sid, JSON.parse(command.payload) as ConferenceCommand)
      case 'recording':
        return this.#record(call, command.call_sid, JSON.parse(command.payload) as RecordingCommand)
      case 'activity':
        return carryOutActivity(this.#shared, call, JSON.parse(command.payload) as ActivityCommand)
      case 'dequeue': {
        const asked = JSON.parse(command.payload) as DequeueCommand
        const { queues, visits } = this.#shared
        if (queues.take(command.call_sid, asked)) return 'done'
        return visits.ask(command.call_sid, { kind: 'dequeue', command: asked })
      }
    }
  }

  /** Another machine may keep the conference that the call is in. */
  #conference(call_sid: string, command: ConferenceCommand): string | Promise<string> {
    const { rooms, visits } = this.#shared
    if (rooms.find(command.conference_sid)) return controlRoom(this.#shared, command)
    return visits.ask(call_sid, { kind: 'conference', command })
  }

  /** Begins a recording of a call, or changes one that runs: that of a conference may outlive its call. */
  async #record(call: Call | undefined, call_sid: string, command: RecordingCommand): Promise<string> {
    const { calls, state, clock } = this.#ctx
    if (command.act === 'start') {
      const [party] = call?.parties ?? []
      if (party) recordByApi(this.#shared, party, command)
      else await updateRecording(state.db, command.sid, { status: 'absent' }, clock.now())
      return party ? 'done' : 'not_live'
    }
    const recording = calls.recordings.get(command.sid)
    if (recording) return controlRecording(recording, command)
    return this.#shared.visits.ask(call_sid, { kind: 'recording', command })
  }

  /**
   * Ends a call that has not started: it is queued, waits for an earlier command, or was just admitted. The last one is
   * ended again when it begins.
   */
  async #unplaced(sid: string): Promise<string> {
    this.#ctx.calls.hangUpAtBegin(sid)
    if (await this.#originator.cancel(sid)) return 'done'
    const row = await findCall(this.#ctx.state.db, sid)
    if (!row || row.ended_at !== null) return 'call_ended'
    await endUnplaced(this.#ctx, row, { cause: 'api' })
    return 'done'
  }
}

/** The calls that run documents. */
type Redirected = OutboundCall | InboundCall | ApplicationCall | CallToApplication
const isRedirected = (call: Call | undefined): call is Redirected =>
  [OutboundCall, InboundCall, ApplicationCall, CallToApplication].some(kind => call instanceof kind)

function redirect(call: Redirected, json: string): string {
  const payload = JSON.parse(json) as Redirect
  const fallback: DocumentTarget | undefined = payload.fallback_url
    ? { url: payload.fallback_url, method: payload.fallback_method ?? 'POST' }
    : undefined
  const entry: Entry = payload.url
    ? { kind: 'request', url: payload.url, method: payload.method ?? 'POST' }
    : { kind: 'inline', text: payload.markup ?? '' }
  return call.redirect(entry, fallback) ? 'done' : 'no_script'
}

interface Redirect {
  readonly url?: string | null
  readonly method?: 'GET' | 'POST'
  readonly markup?: string | null
  readonly fallback_url?: string | null
  readonly fallback_method?: 'GET' | 'POST'
}

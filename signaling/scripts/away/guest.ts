import type { Ending } from '../../../core/domain/calls/endings.ts'
import { type CallFacts, standardParameters } from '../../../core/domain/calls/parameters.ts'
import { type CallRequest, readCallRequest } from '../../../core/domain/calls/request.ts'
import { shownFacts } from '../../../core/domain/calls/typed.ts'
import type { Clock, Timer } from '../../../core/runtime/clock.ts'
import type { Log } from '../../../core/runtime/log.ts'
import { addCallEvent } from '../../../core/state/calls/call-events.ts'
import type { CallRow } from '../../../core/state/calls/running-calls.ts'
import { callFactsOf } from '../../../core/state/delivery/outbox.ts'
import type { CallEventTable, Trx } from '../../../core/state/index.ts'
import type { Entry, Event } from '../../../markup/interpreter/types.ts'
import type { PlaySource } from '../../../media/protocol/schema.ts'
import type { CallContext } from '../../b2bua/context.ts'
import type { MediaSession } from '../../b2bua/media.ts'
import type { WaitOutcome } from '../../b2bua/script-host.ts'
import type { ScriptedCall } from '../../b2bua/scripted-call.ts'
import type { SharedScript } from '../shared-script.ts'
import type { WaitDocument } from '../wait-document.ts'
import { type KeeperNote, LEFT } from './notes.ts'

/** A call of another machine, as a room or queue of this node has it. */

const AGAIN_MS = 500

export type GuestServices = Pick<CallContext, 'state' | 'clock' | 'log' | 'bus'>

interface GuestOptions {
  readonly visit: string
  readonly machine_id: string
  readonly row: CallRow
  readonly session: MediaSession
  readonly say: (note: KeeperNote) => void
  /** The room or queue has told it that it left. */
  readonly left: () => void
}

export class Guest implements SharedScript {
  readonly visit: string
  readonly machine_id: string
  readonly host: SharedScript['host']
  readonly waiting: GuestWaiting
  /** On the monotonic clock: when its node last named the visit. */
  present_ms: number
  readonly #call: GuestCall
  readonly #leg: { readonly id: string; readonly session: MediaSession; ended: boolean }
  readonly #options: GuestOptions

  constructor(services: GuestServices, options: GuestOptions) {
    const { visit, machine_id, session, say } = options
    this.visit = visit
    this.machine_id = machine_id
    this.present_ms = services.clock.monotonic_ms()
    this.#options = options
    this.#leg = { id: visit, session, ended: false }
    this.#call = new GuestCall(services, options)
    this.host = { call: this.#call, leg: this.#leg }
    this.waiting = new GuestWaiting(visit, services.clock, say)
  }

  readonly emit = (event: Event): void => {
    const { visit, say, left } = this.#options
    say({ kind: 'event', visit, event })
    if (LEFT.has(event.type)) queueMicrotask(left)
  }

  /** Another document replaces the one that has brought the call here. */
  update(entry: Entry): boolean {
    this.#options.say({ kind: 'update', visit: this.visit, entry })
    return true
  }

  /** The call has hung up. */
  hungUp(status: string): void {
    this.#leg.ended = true
    this.#call.endedAs(status)
  }

  /** Closes the internal leg. */
  async close(): Promise<void> {
    this.waiting.end()
    this.#leg.ended = true
    await this.#leg.session.closeLeg(this.visit)
    await this.#leg.session.release()
  }
}

/** What a guest hears before it is in the mix. Its own node plays it. */
class GuestWaiting {
  readonly #visit: string
  readonly #clock: Clock
  readonly #say: (note: KeeperNote) => void
  #current: { readonly wait: number; readonly document: WaitDocument } | null = null
  #again: Timer | null = null
  #next = 1
  #over = false

  constructor(visit: string, clock: Clock, say: (note: KeeperNote) => void) {
    this.#visit = visit
    this.#clock = clock
    this.#say = say
  }

  hear(sources: PlaySource[]): void {
    if (!this.#over) this.#say({ kind: 'hear', visit: this.#visit, sources })
  }

  run(document: WaitDocument): void {
    if (this.#over) return
    const wait = this.#next++
    this.#current = { wait, document }
    const { kind, entry, parameters } = document
    this.#say({ kind: 'run', visit: this.#visit, wait, document: { kind, entry, parameters: parameters() } })
  }

  /** Tells its node what has changed for a document that runs for as long as the call waits. */
  tell(): void {
    if (this.#current?.document.kind !== 'queue_wait') return
    this.#say({ kind: 'facts', visit: this.#visit, parameters: this.#current.document.parameters() })
  }

  /** Its node has played a document. */
  waited(wait: number, outcome: WaitOutcome | 'replaced'): void {
    if (this.#current?.wait !== wait) return
    const { document } = this.#current
    this.#current = null
    if (outcome === 'replaced') {
      document.replaced?.()
      return
    }
    document.done(outcome)
    if (document.again && outcome === 'finished' && !this.#over)
      this.#again = this.#clock.after(AGAIN_MS, () => this.run(document))
  }

  stop(): void {
    this.#again?.cancel()
    this.#again = null
    const current = this.#current
    this.#current = null
    if (!this.#over) this.#say({ kind: 'quiet', visit: this.#visit })
    current?.document.replaced?.()
  }

  end(): void {
    this.#over = true
    this.stop()
  }
}

/** The call of a guest. Its own node writes what becomes of it; the room's rows and callbacks are written here. */
class GuestCall implements ScriptedCall {
  readonly sid: string
  readonly project_id: string
  readonly request: CallRequest
  readonly session: MediaSession
  readonly clock: Clock
  readonly log: Log
  readonly answered = true
  divertsBecause = 'unconditional'
  #row: CallRow
  #ended = false
  #runs = 0
  #last: Promise<unknown> = Promise.resolve()
  readonly #services: GuestServices
  readonly #options: Pick<GuestOptions, 'visit' | 'say'>

  constructor(services: GuestServices, options: GuestOptions) {
    const { row, session, visit } = options
    this.sid = row.sid
    this.project_id = row.project_id
    this.request = readCallRequest(row.request)
    this.session = session
    this.clock = services.clock
    this.log = services.log.child({ call_id: row.sid, visit })
    this.#row = row
    this.#services = services
    this.#options = options
  }

  get row_now(): CallRow {
    return this.#row
  }

  get facts(): CallFacts {
    return callFactsOf(this.#row, this.request)
  }

  get ended(): boolean {
    return this.#ended
  }

  endedAs(status: string): void {
    this.#ended = true
    this.#row = { ...this.#row, status: status as CallRow['status'] }
  }

  parameters(): Record<string, string> {
    return standardParameters(this.facts)
  }

  nextRun(): number {
    return ++this.#runs
  }

  persist(work: (trx: Trx) => Promise<unknown>): Promise<void> {
    const settled = this.#last
      .then(() => this.#services.state.transaction(work))
      .then(
        () => undefined,
        err => this.log.error({ err }, 'a change of the call was not saved'),
      )
    this.#last = settled
    return settled
  }

  async persistCallbacks(work: (trx: Trx) => Promise<unknown>): Promise<void> {
    await this.persist(work)
    this.#services.bus.ring('outbox')
  }

  event(kind: CallEventTable['kind'], number: number | null, detail: Readonly<Record<string, unknown>>): void {
    const at_ms = this.clock.now()
    void this.persist(trx => addCallEvent(trx, { call_sid: this.sid, kind, number, detail: shownFacts(detail) }, at_ms))
  }

  documentFailed(): void {
    // The call's own node knows what becomes of its document.
  }

  watchMedia(): () => void {
    return () => undefined
  }

  onEnd(_listener: (ending: Ending) => void): void {
    // Nothing that a room or queue starts on a guest needs the end of its call.
  }

  end(): Promise<void> {
    this.#options.say({ kind: 'end', visit: this.#options.visit })
    return Promise.resolve()
  }
}

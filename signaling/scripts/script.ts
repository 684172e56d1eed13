import { type CookieJar, createCookieJar } from '../../core/domain/webhooks/cookies.ts'
import type { Timer } from '../../core/runtime/clock.ts'
import { startRun, step } from '../../markup/interpreter/step.ts'
import type {
  Command,
  DocumentTarget,
  Entry,
  Event,
  Run,
  RunKind,
  StartFacts,
  StepResult,
} from '../../markup/interpreter/types.ts'
import { eventLine, startLine } from '../../markup/replay/replay.ts'
import type { KeyWay } from '../b2bua/leg.ts'
import type { MediaEvent } from '../b2bua/media.ts'
import type { CallScript, ScriptEntry, ScriptHost } from '../b2bua/script-host.ts'
import type { InboundRequest } from '../drachtio/types.ts'
import { type CommandHandlers, commandHandlers, Pauses, Timers } from './carry-out.ts'
import { Children } from './children.ts'
import type { ScriptContext } from './context.ts'
import type { DocumentRequester } from './documents.ts'
import { enginesOf } from './engines.ts'
import { startFacts } from './facts.ts'
import { LegPlayer } from './player.ts'
import { Recognitions } from './recognitions.ts'
import { CallRecorder } from './recorder.ts'
import { Referrals } from './referrals.ts'
import { Relays } from './relays.ts'
import { RunLog } from './run-log.ts'
import { Siprec } from './siprec.ts'
import { Streams } from './streams.ts'
import { Waiting } from './waiting.ts'

/** How long a script may outlive its leg, to make the last request of a Record or Dial. */
const AFTERLIFE_MS = 30_000

/** Carries out one run on one leg: turns commands into media, SIP and HTTP requests, and their results into events. */
export class Script implements CallScript {
  readonly ctx: ScriptContext
  readonly host: ScriptHost
  readonly cookies: CookieJar
  /** Plays what the leg hears in a queue or room before it is joined. */
  readonly waiting: Waiting
  readonly #entry: ScriptEntry
  readonly #timers: Timers
  readonly #pauses: Pauses
  readonly #player: LegPlayer
  readonly #recorder: CallRecorder
  readonly #children: Children
  readonly #referrals: Referrals
  readonly #streams: Streams
  readonly #relays: Relays
  readonly #recognitions: Recognitions
  readonly #siprec: Siprec
  readonly #handlers: CommandHandlers
  readonly #abort = new AbortController()
  readonly #log: RunLog
  readonly #queue: Event[] = []
  #run: Run | null = null
  #stepping = false
  #collecting = false
  #done = false
  #gone = false
  #afterlife: Timer | null = null

  constructor(ctx: ScriptContext, host: ScriptHost, entry: ScriptEntry, cookies: CookieJar = createCookieJar()) {
    this.ctx = ctx
    this.host = host
    this.#entry = entry
    this.cookies = cookies
    const { sid, log } = host.call
    const { clock } = host.call
    this.#log = new RunLog(ctx.config, { name: `${sid}-${host.call.nextRun()}`, log, clock })
    const emit = (event: Event): void => this.emit(event)
    this.#player = new LegPlayer(ctx, host, emit)
    this.waiting = new Waiting((...of) => this.another(...of), host, this.#player, cookies)
    this.#recorder = new CallRecorder(ctx, host, emit)
    this.#children = new Children(this, emit)
    this.#referrals = new Referrals(ctx, host, emit)
    this.#streams = new Streams(ctx, host, emit)
    this.#relays = new Relays(ctx, host, emit)
    this.#recognitions = new Recognitions(ctx, host, emit)
    this.#siprec = new Siprec(ctx, host, emit)
    this.#timers = new Timers(clock)
    this.#pauses = new Pauses(ctx.calls, sid)
    this.#handlers = commandHandlers({
      script: this,
      player: this.#player,
      recorder: this.#recorder,
      children: this.#children,
      referrals: this.#referrals,
      streams: this.#streams,
      recognitions: this.#recognitions,
      relays: this.#relays,
      siprec: this.#siprec,
      timers: this.#timers,
      pauses: this.#pauses,
      requester: () => this.#requester(),
      collect: on => {
        this.#collecting = on
      },
      over: outcome => this.#over(outcome),
    })
  }

  /** Creates another script in the same context: what a child hears, or the music of a queue. */
  another(host: ScriptHost, entry: ScriptEntry, cookies?: CookieJar): Script {
    return new Script(this.ctx, host, entry, cookies)
  }

  get kind(): RunKind {
    return this.#entry.kind
  }

  get done(): boolean {
    return this.#done
  }

  get recorder(): CallRecorder {
    return this.#recorder
  }

  get children(): Children {
    return this.#children
  }

  start(): void {
    const facts = startFacts(this.ctx, this.host, this.#entry)
    for (const detail of enginesOf(this.ctx, this.host.call).missing) this.host.call.event('warning', null, { detail })
    this.#take(facts, startRun(facts))
  }

  /** Replaces the instructions of a live call, and its fallback if one is given. False when the script is over. */
  update(entry: Entry, fallback?: DocumentTarget): boolean {
    if (this.#done || this.#gone) return false
    if (this.kind === 'call') this.host.call.documentFailed(null)
    this.emit({ type: 'update', entry, ...(fallback && { fallback }) })
    return true
  }

  digit(digit: string, by: KeyWay): void {
    if (this.#collecting || this.#children.bridged !== null) this.emit({ type: 'digit', digit })
    this.waiting.digit(digit)
    if (by === 'info') this.#children.passKey(digit)
  }

  media(event: MediaEvent): void {
    this.#player.media(event)
    this.#streams.media(event)
    this.#relays.media(event)
    this.#recognitions.media(event)
    if (event.event === 'leg.voice') this.ctx.rooms.voice(this, event.speaking)
    this.waiting.media(event)
  }

  referred(leg: 'self' | string, request: InboundRequest): void {
    if (this.#done || this.#children.bridged === null) request.respond(603)
    else this.#referrals.received(leg, request)
  }

  notified(request: InboundRequest): void {
    this.#referrals.notified(request)
  }

  /** The leg has ended, for any reason. The run may still make a last request. */
  legEnded(headers: Readonly<Record<string, string>>): void {
    if (this.#gone) return
    this.#gone = true
    this.#children.callerLeft(headers)
    this.waiting.end()
    // Emit this before the streams end: a Connect whose stream ends first would continue with its action.
    this.emit({ type: 'hangup' })
    this.#player.drop()
    this.#streams.drop()
    this.#relays.drop()
    this.#recognitions.drop()
    this.#siprec.drop()
    this.#leaveShared()
    if (this.#done) return
    this.#afterlife = this.host.call.clock.after(AFTERLIFE_MS, () => this.#finish())
  }

  /** Stops the run and all that it started, without an event. */
  drop(): void {
    this.#finish()
  }

  emit(event: Event): void {
    if (this.#done) return
    this.#queue.push(event)
    if (this.#stepping || !this.#run) return
    this.#stepping = true
    try {
      for (let next = this.#queue.shift(); next && this.#run && !this.#done; next = this.#queue.shift())
        this.#stepped(next, step(this.#run, next))
    } finally {
      this.#stepping = false
    }
  }

  #stepped(event: Event, result: StepResult): void {
    if (result.unexpected === null) this.#log.add(eventLine(event, result))
    this.#apply(result)
  }

  #take(facts: StartFacts, begun: StepResult): void {
    this.#log.add(startLine(facts, begun))
    this.#stepping = true
    try {
      this.#apply(begun)
    } finally {
      this.#stepping = false
    }
    const waiting = this.#queue.splice(0)
    for (const event of waiting) this.emit(event)
  }

  #apply(result: StepResult): void {
    this.#run = result.run
    if (result.unexpected !== null)
      this.host.call.log.error({ detail: result.unexpected }, 'an event came that no script waits for')
    for (const command of result.commands) this.#carryOut(command)
  }

  #carryOut(command: Command): void {
    const handler = this.#handlers[command.type] as (command: Command) => void
    try {
      handler(command)
    } catch (err) {
      this.host.call.log.error({ err, command: command.type }, 'a command of the script failed')
    }
  }

  #over(outcome: Extract<Command, { type: 'done' }>['outcome']): void {
    this.#finish()
    if (this.host.done) {
      const reported = outcome === 'rejected' || outcome === 'transferred' ? 'finished' : outcome
      this.host.done(reported)
    } else if (outcome === 'transferred' || outcome === 'failed' || outcome === 'finished') this.host.hangup()
  }

  #finish(): void {
    if (this.#done) return
    this.#done = true
    this.#afterlife?.cancel()
    this.#timers.clear()
    this.#pauses.unhush()
    this.#abort.abort()
    this.waiting.end()
    if (!this.#gone) this.#player.drop()
    this.#leaveShared()
    this.#children.drop()
    this.#referrals.drop()
  }

  /** Leaves all rooms and queues, which must not hold a script that is over. */
  #leaveShared(): void {
    const { rooms, queues, visits } = this.ctx
    rooms.leave(this)
    queues.leave(this, 'hangup')
    queues.stopDequeue(this)
    visits.leave(this, this.#gone ? 'hangup' : 'leave')
  }

  #requester(): DocumentRequester {
    const parameters = (): Readonly<Record<string, string>> => this.host.parameters?.() ?? {}
    return { ctx: this.ctx, call: this.host.call, cookies: this.cookies, signal: this.#abort.signal, parameters }
  }
}

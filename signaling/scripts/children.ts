import { customHeaders } from '../../core/domain/calls/custom-headers.ts'
import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import type { DialChild, EndChild, Event, TransferChild, Whisper } from '../../markup/interpreter/types.ts'
import type { KeyWay, Leg } from '../b2bua/leg.ts'
import type { OutboundCall } from '../b2bua/outbound-call.ts'
import { answeredHost } from '../b2bua/script-host.ts'
import type { ApplicationCall } from './application-call.ts'
import type { ChildRequest } from './child-placing.ts'
import { detectMachine, tellDetected } from './detection.ts'
import type { RunningScript } from './running-script.ts'

interface Child {
  readonly name: string
  readonly command: DialChild
  call: OutboundCall | ApplicationCall | null
  /** The cause of a requested end; kept because the request may come before the call exists. */
  wanted: EndChild['cause'] | null
  transferred: boolean
  ended: boolean
}

const END_CAUSES = {
  timeout: 'ring_timeout',
  lost: 'lost',
  canceled: 'caller_hung_up',
  completed: 'script',
} as const

/** Why the caller is sent on after a Dial with this outcome (RFC 5806 §4.1). */
const DIVERTS_AFTER: Readonly<Record<string, string>> = {
  busy: 'user-busy',
  'no-answer': 'no-answer',
  failed: 'unavailable',
}

/** The child calls of one script. */
export class Children {
  readonly #script: RunningScript
  readonly #emit: (event: Event) => void
  readonly #children = new Map<string, Child>()
  #bridged: string | null = null
  /** The child whose early media this leg hears. */
  #early: string | null = null
  #country: string | null = null
  #callerGave: Readonly<Record<string, string>> = {}

  constructor(script: RunningScript, emit: (event: Event) => void) {
    this.#script = script
    this.#emit = emit
  }

  /** The child whose media is joined to this leg. */
  get bridged(): string | null {
    return this.#bridged
  }

  leg(name: string): Leg | null {
    return this.#children.get(name)?.call?.leg ?? null
  }

  /** The country of the last number dialled, for the ring tone. */
  country(): string {
    return this.#country ?? 'us'
  }

  dial(command: DialChild): void {
    const child: Child = { name: command.child, command, call: null, wanted: null, transferred: false, ended: false }
    this.#children.set(child.name, child)
    if (command.target.kind === 'number')
      this.#country = parseNumber(command.target.number, DEFAULT_COUNTRY)?.country ?? null
    void this.#place(child)
  }

  end(name: string, cause: EndChild['cause']): void {
    const child = this.#children.get(name)
    if (!child || child.ended) return
    child.wanted = cause
    this.#stop(child, cause)
  }

  /** Keeps the Reason header of a caller who leaves (RFC 3326). The CANCEL to each ringing child has its causes. */
  callerLeft(headers: Readonly<Record<string, string>>): void {
    this.#callerGave = headers
  }

  relayEarly(name: string): void {
    const { host } = this.#script
    const leg = this.leg(name)
    if (!leg) return
    this.#early = name
    const join = async (): Promise<void> => {
      host.leg.prefer = leg
      if (!host.leg.answered && !(await host.early())) return
      if (this.#early !== name) return
      await leg.session.hub.request('bridge', { a: host.leg.id, b: leg.id })
    }
    join().catch(err => host.call.log.info({ err }, 'early media could not be relayed'))
  }

  /** Separates this leg from the child whose early media it hears. */
  endEarly(): void {
    const { leg, call } = this.#script.host
    if (this.#early === null) return
    this.#early = null
    leg.session.hub
      .request('unbridge', { leg_id: leg.id })
      .catch(err => call.log.debug({ err }, 'a leg was not taken off early media'))
  }

  whisper(command: Whisper): void {
    const child = this.#children.get(command.child)
    const leg = child?.call?.leg
    if (!child?.call || !leg) {
      this.#emit({ type: 'whisper_ended', child: command.child, outcome: 'failed' })
      return
    }
    const { call } = child
    const script = this.#script.another(
      {
        ...answeredHost(call, leg, () => undefined),
        parameters: () => answerParameters(child),
        done: outcome =>
          this.#emit({
            type: 'whisper_ended',
            child: child.name,
            outcome: outcome === 'finished' ? 'finished' : outcome === 'failed' ? 'failed' : 'hangup',
          }),
      },
      { kind: 'whisper', entry: { kind: 'request', url: command.url, method: command.method }, fallback: null },
    )
    call.run(script)
  }

  bridge(name: string): void {
    const { host } = this.#script
    const leg = this.leg(name)
    if (!leg) return
    this.#early = null
    host.leg.prefer = leg
    leg.session.hub.request('bridge', { a: host.leg.id, b: leg.id }).then(
      () => {
        this.#bridged = name
        this.#emit({ type: 'bridged', child: name })
      },
      err => {
        host.call.log.warn({ err }, 'the legs could not be joined')
        this.end(name, 'completed')
      },
    )
  }

  /** Detaches the child from this script and runs a new script on it. */
  transfer(command: TransferChild): void {
    const child = this.#children.get(command.child)
    const leg = child?.call?.leg
    if (!child?.call || !leg || child.ended) return
    const { call } = child
    this.#letGo(child, leg)
    call.run(
      this.#script.another(
        answeredHost(call, leg, () => void call.end({ cause: 'script' })),
        {
          kind: 'call',
          entry: { kind: 'request', url: command.url, method: command.method, parameters: command.parameters },
          fallback: null,
        },
        this.#script.cookies,
      ),
    )
  }

  /** Takes a child out of the bridge. It no longer ends with this script. */
  #letGo(child: Child, leg: Leg): void {
    child.transferred = true
    this.#children.delete(child.name)
    if (this.#bridged === child.name) this.#bridged = null
    leg.session.hub
      .request('unbridge', { leg_id: leg.id })
      .catch(err => this.#script.host.call.log.debug({ err }, 'two legs were not separated'))
  }

  /** The API gave the child another document, so for this script the child has ended. */
  #left(child: Child): void {
    const { call } = child
    const leg = call?.leg
    if (!call || !leg || child.ended || child.transferred) return
    this.#letGo(child, leg)
    this.#emit({
      type: 'child_ended',
      child: child.name,
      status: 'completed',
      call_sid: call.sid,
      duration_seconds: Math.floor(call.elapsedMs() / 1000),
      sip_code: 200,
      sip_call_id: call.row_now.sip_call_id,
      headers: {},
      number: null,
      detail: 'it was given a document of its own',
    })
  }

  /** Passes a key that came by INFO on this leg to the bridged child. */
  passKey(digit: string): void {
    const leg = this.#bridged === null ? null : this.leg(this.#bridged)
    if (leg?.answered && !leg.ended) this.#script.host.leg.passKey(digit, leg)
  }

  /** Ends the remaining children with the script. A transferred child is no longer among them. */
  drop(): void {
    for (const child of this.#children.values()) {
      child.wanted ??= 'completed'
      if (!child.ended) void child.call?.end({ cause: child.call.answered ? 'script' : 'caller_hung_up' })
    }
  }

  async #place(child: Child): Promise<void> {
    const { host } = this.#script
    const { name } = child
    const call_sid = (): string => child.call?.sid ?? ''
    const asked: ChildRequest = {
      command: child.command,
      prefer: host.leg,
      created: call => {
        child.call = call
        // Digits that this script sends on the child's leg report their end there.
        call.watchMedia(event => {
          if (event.event === 'digits.sent') this.#script.media(event)
        })
      },
      watcher: {
        initiated: () => this.#emit({ type: 'child_progress', child: name, state: 'initiated', call_sid: call_sid() }),
        ringing: () => this.#emit({ type: 'child_progress', child: name, state: 'ringing', call_sid: call_sid() }),
        early: () => this.#emit({ type: 'child_progress', child: name, state: 'early_media', call_sid: call_sid() }),
        answered: leg => {
          this.#detect(child, leg)
          this.#emit({ type: 'child_answered', child: name, call_sid: call_sid() })
        },
        digit: (digit, by) => this.#keyOfChild(child, digit, by),
        refer: request => this.#script.referred(name, request),
        left: () => this.#left(child),
        ended: () => this.#ended(child),
      },
    }
    const placed = await this.#script.ctx.children.place(host.call, asked).catch(err => {
      host.call.log.error({ err }, 'a child could not be placed')
      return { refused: { sip_code: 500, number: null, detail: 'internal' } }
    })
    if (placed && 'refused' in placed) return this.#refused(child, placed.refused)
    if (child.wanted !== null) this.#stop(child, child.wanted)
  }

  #stop({ call }: Child, cause: EndChild['cause']): void {
    void call?.end({ cause: END_CAUSES[cause], headers: cause === 'canceled' ? this.#callerGave : {} })
  }

  #detect({ call, command }: Child, leg: Leg): void {
    const { machine_detection } = command
    if (!machine_detection || !call) return
    void detectMachine(call, leg, machine_detection).then(
      detected => detected && machine_detection.callback && tellDetected(call, detected, machine_detection.callback),
    )
  }

  /** Passes a key of the child that came by INFO to this leg. The bridge passes RFC 4733 keys. */
  #keyOfChild(child: Child, digit: string, by: KeyWay): void {
    const { leg } = this.#script.host
    if (by === 'info' && this.#bridged === child.name && leg.answered) this.leg(child.name)?.passKey(digit, leg)
  }

  #refused(child: Child, why: { sip_code: number | null; number: number | null; detail: string }): void {
    child.ended = true
    this.#children.delete(child.name)
    this.#emit({
      type: 'child_ended',
      child: child.name,
      status: why.sip_code === 480 ? 'no-answer' : 'failed',
      call_sid: child.call?.sid ?? null,
      duration_seconds: null,
      sip_code: why.sip_code,
      sip_call_id: null,
      headers: {},
      number: why.number,
      detail: why.detail,
    })
  }

  #ended(child: Child): void {
    const { call } = child
    if (!call || child.ended) return
    child.ended = true
    if (this.#bridged === child.name) this.#bridged = null
    if (child.transferred) return
    this.#children.delete(child.name)
    const final = call.final
    this.#script.host.call.divertsBecause = DIVERTS_AFTER[final?.status ?? 'failed'] ?? 'unconditional'
    this.#emit({
      type: 'child_ended',
      child: child.name,
      status: final?.status ?? 'failed',
      call_sid: call.sid,
      duration_seconds: call.answered ? (call.row_now.duration_seconds ?? 0) : null,
      sip_code: final?.sip_code ?? null,
      sip_call_id: call.row_now.sip_call_id,
      headers: customHeaders(call.endHeaders),
      number: null,
      detail: call.detail,
    })
  }
}

/** The parameters about the answer, for the whisper document of a SIP address (voice-compat.md §7.1, §12.1). */
function answerParameters({ command, call }: Child): Record<string, string> {
  const answer = call?.answer ?? null
  if (command.target.kind !== 'sip' || !call || !answer) return {}
  const { sip_call_id } = call.row_now
  return {
    ...(sip_call_id === null ? {} : { SipCallId: sip_call_id }),
    SipSourceIp: answer.address,
    ...Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [`SipHeader_${name}`, value])),
  }
}

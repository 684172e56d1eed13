import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { handshakeSignature } from '../../core/runtime/voice-request.ts'
import type { Event, RelayEnded, StartRelay } from '../../markup/interpreter/types.ts'
import { type MediaEvent, MediaRefusal } from '../b2bua/media.ts'
import type { ScriptHost } from '../b2bua/script-host.ts'
import type { ScriptContext } from './context.ts'
import { type EngineServices, enginesOf } from './engines.ts'

/** Milliseconds of one turn, by part. */
type Turn = Readonly<Record<(typeof PARTS)[number], number>>

interface Session {
  readonly id: string
  readonly relay_id: string
  readonly began_ms: number
  /** `at`: when the first sound of the answer was played. */
  readonly turns: (Turn & { readonly at: string })[]
}

/** The parts of a turn's latency, in order, and their sum. */
const PARTS = ['detector_ms', 'recognizer_ms', 'customer_ms', 'voice_ms', 'playout_ms', 'total_ms'] as const
/** The turns of a session that its call keeps: the first ones. */
const MAX_TURNS = 100

type Outcome = Pick<RelayEnded, 'status' | 'hand_off' | 'number' | 'detail'>

/** The fault of a session that could not begin. */
const NOT_STARTED = 64102
const STATUSES = { stopped: 'completed', ended: 'ended', failed: 'failed' } as const

/** What sessions use: engines, figures, and the account's token, which signs the handshake. */
type RelayServices = EngineServices & Pick<ScriptContext, 'authToken' | 'metrics'>

/** Hands one leg to a relay application (voice-compat.md §12.6). The media worker talks to it. */
export class Relays {
  readonly #ctx: RelayServices
  readonly #host: ScriptHost
  readonly #emit: (event: Event) => void
  #session: Session | null = null

  constructor(ctx: RelayServices, host: ScriptHost, emit: (event: Event) => void) {
    this.#ctx = ctx
    this.#host = host
    this.#emit = emit
  }

  start({ type: _, id, url, ...settings }: StartRelay): void {
    const { call, leg } = this.#host
    const relay_id = `VX${newId.uuid().replaceAll('-', '')}`
    const session: Session = { id, relay_id, began_ms: call.clock.monotonic_ms(), turns: [] }
    this.#session = session
    const auth_token = this.#ctx.authToken(call.project_id)
    const { stt, tts } = enginesOf(this.#ctx, call).chosen
    leg.session.hub
      .request('relay.start', {
        ...(stt === null ? {} : { stt_engine: stt }),
        ...(tts === null ? {} : { tts_engine: tts }),
        ...settings,
        leg_id: leg.id,
        relay_id,
        account_sid: call.facts.account_sid,
        call_sid: call.sid,
        url,
        headers: auth_token === null ? {} : { 'X-Twilio-Signature': handshakeSignature(auth_token, url) },
        setup: setupFacts(call.parameters()),
        languages: settings.languages.map(language => ({ ...language })),
        hints: [...settings.hints],
        parameters: { ...settings.parameters },
      })
      .catch(error => {
        const detail = error instanceof MediaRefusal ? error.detail : String(error)
        this.#over(session, { status: 'failed', hand_off: null, number: NOT_STARTED, detail })
      })
  }

  stop(id: string): void {
    const { leg, call } = this.#host
    const session = this.#session
    if (session?.id !== id) return
    leg.session.hub
      .request('relay.stop', { leg_id: leg.id, relay_id: session.relay_id })
      .catch(err => call.log.debug({ err }, 'a conversation relay was not stopped'))
  }

  media(event: MediaEvent): void {
    const session = this.#session
    if (!('relay_id' in event) || !session || event.relay_id !== session.relay_id) return
    if (event.event === 'relay.warning')
      this.#host.call.event('warning', event.code, { detail: event.detail, relay: session.relay_id })
    if (event.event === 'relay.turn') this.#turn(session, event)
    if (event.event !== 'relay.ended') return
    const { reason, hand_off, error_code: number, detail } = event
    this.#over(session, { status: STATUSES[reason], hand_off, number, detail })
  }

  /** The leg has ended, and the worker ends its session. */
  drop(): void {
    if (this.#session) this.#over(this.#session, { status: 'completed', hand_off: null, number: null, detail: null })
  }

  #turn(session: Session, figures: Turn): void {
    const { clock } = this.#host.call
    const { metrics } = this.#ctx
    for (const part of PARTS) metrics.agent_turns.observe({ part: part.replace('_ms', '') }, figures[part] / 1000)
    const kept = Object.fromEntries(PARTS.map(part => [part, figures[part]])) as Record<(typeof PARTS)[number], number>
    if (session.turns.length < MAX_TURNS) session.turns.push({ at: iso(clock.now()), ...kept })
  }

  #over(session: Session, outcome: Outcome): void {
    if (this.#session !== session) return
    this.#session = null
    const { relay_id: session_id, turns } = session
    if (turns.length > 0) this.#host.call.event('state', null, { what: 'agent_turns', session_id, turns })
    const lasted_ms = this.#host.call.clock.monotonic_ms() - session.began_ms
    const duration_seconds = Math.floor(lasted_ms / 1000)
    this.#emit({ type: 'relay_ended', id: session.id, session_id, duration_seconds, ...outcome })
  }
}

/** Returns the facts of the call in the `setup` message. */
function setupFacts(parameters: Readonly<Record<string, string>>): Record<string, string | null> {
  const named = (name: string): string | null => parameters[name]?.slice(0, 1024) ?? null
  const from = named('From')
  return {
    accountSid: named('AccountSid'),
    callSid: named('CallSid'),
    parentCallSid: named('ParentCallSid'),
    applicationSid: named('ApplicationSid'),
    from,
    to: named('To'),
    forwardedFrom: named('ForwardedFrom'),
    callerName: named('CallerName'),
    direction: named('Direction'),
    callType: from?.startsWith('client:') ? 'CLIENT' : from?.startsWith('sip:') ? 'SIP' : 'PSTN',
    callStatus: named('CallStatus'),
  }
}

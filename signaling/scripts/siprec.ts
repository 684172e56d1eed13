import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import type { Event, StartSiprec } from '../../markup/interpreter/types.ts'
import { type LegPolicy, MediaRefusal } from '../b2bua/media.ts'
import type { ScriptHost } from '../b2bua/script-host.ts'
import type { Dialog, DialogHandler, InviteResult } from '../drachtio/types.ts'
import { isMadeUp } from '../trunks/health.ts'
import { activityBegins, activityEnds } from './live-activity.ts'
import { requireConsent } from './recording-consent.ts'
import type { ScriptServices } from './services.ts'
import { mergeOffers, metadata, splitAnswer } from './siprec-body.ts'
import { queueCallback } from './tell.ts'

interface Session {
  readonly sid: string
  readonly command: StartSiprec
  /** Our media legs to the recording server, one per track. */
  readonly legs: readonly { readonly leg_id: string; readonly what: 'received' | 'sent' }[]
  dialog: Dialog | null
  cancel: (() => void) | null
}

const WHAT = {
  inbound_track: ['received'],
  outbound_track: ['sent'],
  both_tracks: ['received', 'sent'],
} as const

const POLICY: LegPolicy = {
  codecs: ['PCMU', 'PCMA'],
  security: 'rtp',
  source_validation: 'relaxed',
  sources: [],
  signalled_from: null,
  telephone_event: false,
}

const BOUNDARY = 'strowger-siprec'

type SiprecServices = Pick<ScriptServices, 'config' | 'state' | 'calls' | 'sip' | 'peer_addresses'>

/**
 * The session recording client of RFC 7866. Each session is an INVITE to a configured recording server, with a sendonly
 * stream per track and the metadata of RFC 7865. The streams copy what the leg receives and hears.
 */
export class Siprec {
  readonly #services: SiprecServices
  readonly #host: Pick<ScriptHost, 'call' | 'leg'>
  readonly #emit: (event: Event) => void
  readonly #sessions = new Map<string, Session>()

  constructor(services: SiprecServices, host: Pick<ScriptHost, 'call' | 'leg'>, emit: (event: Event) => void) {
    this.#services = services
    this.#host = host
    this.#emit = emit
  }

  /** `made`: the sid of a session that the API has begun. */
  start(command: StartSiprec, made?: string): void {
    const sid = made ?? newId.sid('SR')
    const legs = WHAT[command.track].map((what, index) => ({ leg_id: `${sid}-${index}`, what }))
    const session: Session = { sid, command, legs, dialog: null, cancel: null }
    this.#sessions.set(command.id, session)
    const about = { sid, kind: 'siprec', name: command.name, made: made !== undefined } as const
    activityBegins(this.#services.calls, this.#host.call, { ...about, stop: () => this.stop(command.id) })
    this.#begin(session).catch(error => {
      const detail =
        error instanceof MediaRefusal ? error.detail : error instanceof Error ? error.message : String(error)
      this.#over(session, detail)
    })
  }

  stop(id: string): void {
    const session = this.#sessions.get(id)
    if (session) this.#over(session, null)
  }

  /** Ends all sessions, because the leg has ended. */
  drop(): void {
    for (const session of [...this.#sessions.values()]) this.#over(session, null)
  }

  async #begin(session: Session): Promise<void> {
    const { call, leg } = this.#host
    const { hub } = call.session
    await requireConsent(this.#services, call)
    const connector = this.#services.config.siprec.find(({ name }) => name === session.command.connector)
    if (!connector) throw new Error(`no recording server "${session.command.connector}" is configured`)
    const offers: string[] = []
    for (const { leg_id } of session.legs) {
      await call.session.openLeg(leg_id, POLICY, 'rtp', () => undefined)
      offers.push((await hub.request('leg.local_offer', { leg_id, direction: 'sendonly' })).sdp)
    }
    const started_at = iso(call.clock.now())
    const { from, to } = call.facts
    const body = [
      `--${BOUNDARY}\r\nContent-Type: application/sdp\r\n\r\n${mergeOffers(offers)}`,
      `--${BOUNDARY}\r\nContent-Type: application/rs-metadata+xml\r\nContent-Disposition: recording-session\r\n\r\n${metadata({ sid: session.sid, call_sid: call.sid, from, to, tracks: session.legs.map(({ what }) => what), started_at, parameters: session.command.parameters })}`,
      `--${BOUNDARY}--\r\n`,
    ].join('\r\n')
    const { dialog, response } = await this.#place(session, connector.uri, body)
    session.dialog = dialog
    if (!this.#sessions.has(session.command.id)) return void dialog.bye()
    const answers = splitAnswer(response.content().sdp)
    for (const [index, { leg_id, what }] of session.legs.entries()) {
      const sdp = answers[index]
      if (sdp === undefined) throw new Error('the recording server does not take every stream')
      await hub.request('leg.remote_answer', { leg_id, sdp })
      await hub.request('copy.start', { leg_id: leg.id, to_leg_id: leg_id, what })
    }
    this.#tell(session, 'siprec-started', null)
  }

  /** Sends the INVITE to the recording server's addresses in turn until one responds. @throws unless it accepts */
  async #place(session: Session, uri: string, body: string): Promise<Extract<InviteResult, { kind: 'answered' }>> {
    const { call } = this.#host
    const { sip, peer_addresses } = this.#services
    const found = await peer_addresses.find({ uri })
    if (found.kind !== 'found') throw new Error(found.detail)
    let why = ''
    for (const address of found.addresses) {
      if (!this.#sessions.has(session.command.id)) break
      const headers = {
        Require: 'siprec',
        'Content-Type': `multipart/mixed;boundary=${BOUNDARY}`,
        'X-Strowger-Call-Sid': call.sid,
      }
      const invite = sip.invite({ uri, proxy: address.proxy, headers, body }, { handler: this.#handlerOf(session) })
      session.cancel = () => invite.cancel()
      const result = await invite.result
      session.cancel = null
      if (result.kind === 'answered') {
        peer_addresses.answered(address)
        return result
      }
      why = result.kind === 'refused' ? `the recording server answered ${result.response.status}` : result.detail
      const silent = result.kind === 'refused' && (result.response.status === 503 || isMadeUp(result.response))
      if (!silent) break
      peer_addresses.failedAt(address)
    }
    throw new Error(why)
  }

  #handlerOf(session: Session): DialogHandler {
    return (request, { server_end }) => {
      if (server_end !== null || request.method === 'BYE') {
        if (server_end === null) request.respond(200)
        session.dialog = null
        this.#over(session, server_end !== null ? 'the recording server is gone' : null)
      } else if (request.method !== 'ACK') request.respond(request.method === 'INVITE' ? 488 : 200)
    }
  }

  #over(session: Session, fault: string | null): void {
    if (!this.#sessions.delete(session.command.id)) return
    const { call } = this.#host
    activityEnds(this.#services.calls, call, session.sid)
    session.cancel?.()
    void session.dialog?.bye()
    for (const { leg_id } of session.legs) void call.session.closeLeg(leg_id)
    this.#tell(session, fault === null ? 'siprec-stopped' : 'siprec-error', fault)
    if (fault !== null) call.event('warning', null, { detail: `recording server: ${fault}`, siprec: session.sid })
    this.#emit({ type: 'activity_ended', id: session.command.id, number: null, detail: fault ?? 'stopped' })
  }

  #tell({ sid, command }: Session, event: string, error: string | null): void {
    if (!command.status_callback) return
    const { call } = this.#host
    void queueCallback(call, command.status_callback, {
      AccountSid: call.facts.account_sid,
      CallSid: call.sid,
      SiprecSid: sid,
      ...(command.name === null ? {} : { SiprecName: command.name }),
      SiprecEvent: event,
      ...(error === null ? {} : { SiprecError: error }),
      Timestamp: iso(call.clock.now()),
    })
  }
}

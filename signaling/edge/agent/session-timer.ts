import type { Draft, SipMessage } from '../sip/message.ts'
import { parseDigits } from '../sip/uri.ts'
import type { AgentCore } from './core.ts'
import type { Leg } from './leg.ts'

// Session timers (RFC 4028), mostly invisible to the application (drachtio-control-protocol.md §13).

const MIN_SE = 90

interface SessionExpires {
  readonly seconds: number
  readonly refresher: 'uac' | 'uas' | undefined
}

/** Reads Session-Expires. */
export function parseSessionExpires(value: string | undefined): SessionExpires | undefined {
  if (value === undefined) return undefined
  const [seconds, ...params] = value.split(';')
  const n = parseDigits((seconds ?? '').trim(), 2 ** 31 - 1)
  if (n === undefined) return undefined
  let refresher: 'uac' | 'uas' | undefined
  for (const param of params) {
    const [name, given] = param.split('=')
    if (name?.trim().toLowerCase() !== 'refresher') continue
    const who = given?.trim().toLowerCase()
    if (who === 'uac' || who === 'uas') refresher = who
  }
  return { seconds: n, refresher }
}

/** RFC 4028 §9: an interval below our minimum gets 422. */
export function sessionTooSmall(request: SipMessage): boolean {
  const asked = parseSessionExpires(request.get('session-expires'))
  return asked !== undefined && asked.seconds < MIN_SE
}

/** Our 2xx to an INVITE goes out: completes its Session-Expires and starts the timer. */
export function armAfterAnswer(core: AgentCore, leg: Leg, invite: SipMessage, answer: Draft): void {
  const said = parseSessionExpires(answer.get('session-expires'))
  if (said) {
    arm(core, leg, Math.max(MIN_SE, said.seconds), said.refresher === 'uas' ? 'us' : 'peer', answer.body)
    return
  }
  const asked = parseSessionExpires(invite.get('session-expires'))
  if (!asked) {
    disarm(leg)
    return
  }
  const refresher = asked.refresher ?? core.settings.session_refresher
  if (refresher === 'none') return
  const seconds = Math.max(MIN_SE, asked.seconds)
  answer.set('Session-Expires', `${seconds};refresher=${refresher}`)
  arm(core, leg, seconds, refresher === 'uas' ? 'us' : 'peer', answer.body)
}

/** A 2xx to our INVITE arrived. */
export function armAfterResponse(core: AgentCore, leg: Leg, response: SipMessage, offer: string): void {
  const said = parseSessionExpires(response.get('session-expires'))
  if (!said || said.seconds === 0) {
    disarm(leg)
    return
  }
  arm(core, leg, said.seconds, said.refresher === 'uas' ? 'peer' : 'us', offer)
}

/** The peer sent a re-INVITE or UPDATE: whatever it carries, the session lives. */
export function refreshedByPeer(core: AgentCore, leg: Leg): void {
  if (leg.session) arm(core, leg, leg.session.interval_seconds, leg.session.refresher, '')
}

function disarm(leg: Leg): void {
  leg.session?.timer.cancel()
  leg.session = undefined
}

function arm(core: AgentCore, leg: Leg, seconds: number, refresher: 'us' | 'peer', sdp: string): void {
  leg.session?.timer.cancel()
  if (sdp !== '') leg.sdp = sdp
  const { wheel } = core.stack.transactions
  if (refresher === 'us') {
    // RFC 4028 §10: at half the interval; a little spread keeps calls of one second apart.
    const spread = (Math.random() - 0.5) * Math.min(10, seconds / 4)
    const timer = wheel.after((seconds / 2 + spread) * 1000, () => refresh(core, leg))
    leg.session = { interval_seconds: seconds, refresher, timer }
  } else {
    const timer = wheel.after(seconds * 1000, () => core.hangUp(leg, 'Session timer expired', 'session-expired'))
    leg.session = { interval_seconds: seconds, refresher, timer }
  }
}

function again(core: AgentCore, leg: Leg): void {
  if (leg.session && !leg.ending) arm(core, leg, leg.session.interval_seconds, leg.session.refresher, '')
}

function refresh(core: AgentCore, leg: Leg): void {
  const session = leg.session
  if (!session || leg.ending) return
  if (leg.incoming || (leg.outgoing && !leg.outgoing.finished)) {
    // An exchange is under way, which refreshes the session if it succeeds.
    session.timer = core.stack.transactions.wheel.after(2_000, () => refresh(core, leg))
    return
  }
  const { dialog } = leg
  const seq = dialog.nextSeq()
  const failed = (): void => core.hangUp(leg, 'Session timer expired', 'session-expired')
  core.stack.request(
    'INVITE',
    dialog.nextHop(),
    () => {
      const draft = dialog
        .draft('INVITE', seq)
        .add('Contact', dialog.contact)
        .add('Session-Expires', `${session.interval_seconds};refresher=uac`)
        .add('Min-SE', String(MIN_SE))
      if (leg.sdp !== '') {
        draft.add('Content-Type', 'application/sdp')
        draft.body = leg.sdp
      }
      return draft
    },
    {
      response: response => {
        if (response.status < 200 || leg.ending) return
        if (response.status < 300) {
          core.stack.request('ACK', dialog.nextHop(), () => dialog.draft('ACK', seq), {
            response: () => undefined,
            timeout: () => undefined,
            unreachable: () => undefined,
          })
          again(core, leg)
        } else if (response.status === 491 || response.status === 500) again(core, leg)
        else failed()
      },
      timeout: failed,
      unreachable: failed,
    },
  )
}

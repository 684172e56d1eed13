import { readSeconds, readSessionExpires } from '../../../core/domain/sip/values.ts'
import type { Draft, SipMessage } from '../sip/message.ts'
import { UNHEARD } from '../transaction/client.ts'
import type { Address } from '../transport/types.ts'
import { ackOf } from './compose.ts'
import type { AgentCore } from './core.ts'
import type { AgentLeg, SessionTimer } from './leg.ts'
import { requestInDialog } from './own-requests.ts'

// Session timers (RFC 4028). They are mostly invisible to applications (drachtio-control-protocol.md §13).

const MIN_SE = 90
/** How long to wait before another attempt when a refresh could not be made. */
const BUSY_MS = 2_000
/** Also a challenge that stays: the application refreshes the session itself, and may know more. */
const PASSING: ReadonlySet<number> = new Set([401, 407, 491, 500, 503, 504])

/** Reports whether the requested interval is below our minimum, so that the answer is 422 (RFC 4028 §9). */
export function sessionTooSmall(request: SipMessage): boolean {
  const asked = readSessionExpires(request.get('session-expires'))
  return asked !== null && asked.seconds < MIN_SE
}

/**
 * Starts the timer of our 2xx to an INVITE or UPDATE, after it has completed the Session-Expires of one to an INVITE.
 * An application completes that to an UPDATE itself; otherwise the session stays as it is.
 */
export function armAfterAnswer(core: AgentCore, leg: AgentLeg, request: SipMessage, answer: Draft): void {
  leg.peer_updates = request.method === 'UPDATE' || request.lists('allow', 'update')
  const said = readSessionExpires(answer.get('session-expires'))
  if (said) {
    arm(core, leg, Math.max(MIN_SE, said.seconds), said.refresher === 'uas' ? 'us' : 'peer', answer.body)
    return
  }
  if (request.method === 'UPDATE') return
  const asked = readSessionExpires(request.get('session-expires'))
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

/** Starts the timer that a 2xx to our INVITE requires. */
export function armAfterResponse(core: AgentCore, leg: AgentLeg, response: SipMessage, offer: string): void {
  leg.peer_updates = response.lists('allow', 'update')
  const said = readSessionExpires(response.get('session-expires'))
  if (!said || said.seconds === 0) {
    disarm(leg)
    return
  }
  arm(core, leg, said.seconds, said.refresher === 'uas' ? 'peer' : 'us', offer)
}

/** Restarts the timer that the 2xx to an application's UPDATE refreshes. */
export function armAfterUpdate(core: AgentCore, leg: AgentLeg, response: SipMessage): void {
  const { session } = leg
  if (session) armWithin(core, leg, session, response)
}

/** Restarts the timer because of the peer's own re-INVITE or UPDATE. Either proves that the session is alive. */
export function refreshedByPeer(core: AgentCore, leg: AgentLeg): void {
  if (leg.session) arm(core, leg, leg.session.interval_seconds, leg.session.refresher, '')
}

function disarm(leg: AgentLeg): void {
  leg.session?.timer.cancel()
  leg.session = undefined
}

function arm(core: AgentCore, leg: AgentLeg, seconds: number, refresher: 'us' | 'peer', sdp: string): void {
  leg.session?.timer.cancel()
  if (sdp !== '') leg.sdp = sdp
  const { wheel } = core.stack.transactions
  const expires_at = core.clock.monotonic_ms() + seconds * 1000
  // RFC 4028 §10: refresh at half the interval. Jitter spreads the refreshes of calls that began together.
  const spread = (Math.random() - 0.5) * Math.min(10, seconds / 4)
  const timer =
    refresher === 'us'
      ? wheel.after((seconds / 2 + spread) * 1000, () => refresh(core, leg))
      : wheel.after(seconds * 1000, () => expired(core, leg))
  const min_se = leg.session?.min_se ?? 0
  leg.session = { interval_seconds: seconds, refresher, expires_at, timer, min_se, doubled: false, refreshing: false }
}

function expired(core: AgentCore, leg: AgentLeg): void {
  const { session } = leg
  if (session && leg.incoming) {
    // A re-INVITE that its application has not judged may be the refresh.
    session.timer = core.stack.transactions.wheel.after(BUSY_MS, () => expired(core, leg))
    return
  }
  core.hangUp(leg, 'Session timer expired')
}

/** Tries again after a delay. If the session would expire before that, ends it when it expires. */
function later(core: AgentCore, leg: AgentLeg, delay_ms: number): void {
  const { session } = leg
  if (!session || leg.ending) return
  const left_ms = session.expires_at - core.clock.monotonic_ms()
  const due = (): void => (left_ms > delay_ms ? refresh(core, leg) : expired(core, leg))
  session.timer = core.stack.transactions.wheel.after(Math.min(delay_ms, Math.max(left_ms, 0)), due)
}

/**
 * Refreshes the session (RFC 4028 §7.4, §10). Sends an UPDATE without a body if the peer allows UPDATE, because it
 * leaves the media untouched. Otherwise sends a re-INVITE with the current SDP.
 */
function refresh(core: AgentCore, leg: AgentLeg): void {
  const { session, dialog } = leg
  if (!session || leg.ending) return
  if (leg.incoming || (leg.outgoing && !leg.outgoing.finished)) {
    // An exchange in progress refreshes the session if it succeeds.
    later(core, leg, BUSY_MS)
    return
  }
  const method = leg.peer_updates ? 'UPDATE' : 'INVITE'
  // RFC 3311 §5.2: an UPDATE without an offer collides with none.
  session.refreshing = method === 'INVITE'
  const over = (): void => {
    session.refreshing = false
    expired(core, leg)
  }
  const build = (draft: Draft): Draft => {
    draft
      .add('Contact', dialog.contact)
      .add('Supported', 'timer')
      .add('Session-Expires', `${session.interval_seconds};refresher=uac`)
      .add('Min-SE', String(Math.max(MIN_SE, session.min_se)))
    if (method === 'INVITE' && leg.sdp !== '') {
      draft.add('Content-Type', 'application/sdp')
      draft.body = leg.sdp
    }
    return draft
  }
  requestInDialog(core.stack, leg, method, build, {
    response: (response, from, sent) => {
      if (response.status < 200) return
      session.refreshing = false
      if (method === 'INVITE' && response.status < 300) {
        core.stack.request('ACK', dialog.nextHop(), () => ackOf(dialog, sent), UNHEARD)
      }
      if (leg.session !== session || leg.ending) return
      if (response.status < 300) refreshed(core, leg, session, response, from)
      else refused(core, leg, session, response)
    },
    timeout: over,
    unreachable: over,
  })
}

function refreshed(core: AgentCore, leg: AgentLeg, session: SessionTimer, response: SipMessage, from: Address): void {
  leg.dialog.refreshTarget(response, from, false)
  armWithin(core, leg, session, response)
}

function armWithin(core: AgentCore, leg: AgentLeg, session: SessionTimer, response: SipMessage): void {
  const said = readSessionExpires(response.get('session-expires'))
  const refresher = said?.refresher === 'uas' ? 'peer' : 'us'
  arm(core, leg, said?.seconds || session.interval_seconds, refresher, '')
}

// Handles a failed refresh. After a transient failure the session stays (RFC 3261 §14.1) and the refresh is tried again
// before it expires. A permanent failure, or a peer that does not know the call, ends it.
function refused(core: AgentCore, leg: AgentLeg, session: SessionTimer, response: SipMessage): void {
  const { status } = response
  if (status === 422) {
    const asked = readSeconds(response.get('min-se')) ?? 0
    // RFC 4028 §7.3: try again with the peer's minimum, which must be above our interval.
    if (asked > session.interval_seconds) {
      session.interval_seconds = asked
      session.min_se = asked
      refresh(core, leg)
    } else if (!session.doubled) {
      // The peer names no minimum that could help, so this is a guess.
      session.doubled = true
      session.interval_seconds *= 2
      refresh(core, leg)
    } else later(core, leg, Number.POSITIVE_INFINITY)
  } else if (leg.peer_updates && (status === 405 || status === 501)) {
    leg.peer_updates = false
    refresh(core, leg)
  } else if (PASSING.has(status)) later(core, leg, BUSY_MS)
  else expired(core, leg)
}

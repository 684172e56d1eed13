// Client transactions as pure steps: RFC 3261 figures 5 (INVITE) and 6 (others), with the changes of RFC 6026 figure 1.
// The state "Calling" of figure 5 is `trying` here. client.ts carries out the effects.

export type ClientState = 'trying' | 'proceeding' | 'completed' | 'accepted' | 'terminated'

export interface ClientRules {
  readonly invite: boolean
  /** The transport retransmits lost data itself. */
  readonly reliable: boolean
  /** Timer B or F in ms. */
  readonly patience_ms: number
  /** RFC 3261 table 4, in ms. */
  readonly t1: number
  readonly t2: number
  readonly t4: number
}

export type ClientEvent =
  | { readonly kind: 'begin' }
  | { readonly kind: 'response'; readonly status: number }
  /** Timer A or E, set to `waited_ms`, fired. */
  | { readonly kind: 'resend'; readonly waited_ms: number }
  /** Timer B or F fired; after a final response, Timer D, K or M. */
  | { readonly kind: 'deadline' }
  | { readonly kind: 'unreachable' }

export type ClientEffect =
  | 'send'
  | 'send_again'
  /** Acknowledges a failure (RFC 3261 §17.1.1.3). */
  | 'ack'
  | 'ack_again'
  /** Checks whether the silent destination's port is open. */
  | 'probe'
  | 'stop_timers'
  | 'tell_response'
  | 'tell_timeout'
  | 'tell_unreachable'
  /** Removes the transaction from memory. */
  | 'end'
  | { readonly resend_ms: number }
  | { readonly deadline_ms: number }

interface ClientStep {
  readonly state: ClientState
  readonly effects: readonly ClientEffect[]
  /** The response is a retransmission. */
  readonly again: boolean
}

/** Effects without a delay are the same for all transactions. */
const TOLD: readonly ClientEffect[] = ['tell_response']
const TOLD_IN_TIME: readonly ClientEffect[] = ['stop_timers', 'tell_response']
const NONE: readonly ClientEffect[] = []

export function clientStep(rules: ClientRules, state: ClientState, event: ClientEvent): ClientStep {
  if (state === 'terminated') return { state, effects: NONE, again: event.kind === 'response' }
  switch (event.kind) {
    case 'begin':
      return to(
        state,
        rules.reliable
          ? [{ deadline_ms: rules.patience_ms }, 'send']
          : [{ deadline_ms: rules.patience_ms }, { resend_ms: rules.t1 }, 'send'],
      )
    case 'response':
      return rules.invite ? inviteResponse(rules, state, event.status) : plainResponse(rules, state, event.status)
    case 'resend':
      return resend(rules, state, event.waited_ms)
    case 'deadline':
      return deadline(rules, state)
    case 'unreachable':
      return state === 'trying' ? to('terminated', ['end', 'tell_unreachable']) : to(state, [])
  }
}

function inviteResponse(rules: ClientRules, state: ClientState, status: number): ClientStep {
  const final = state === 'completed' || state === 'accepted'
  if (status < 200) return final ? again(state) : to('proceeding', TOLD_IN_TIME)
  if (status < 300) {
    if (state === 'completed') return again(state)
    // A further 2xx comes from another fork, or its ACK was lost. The transaction user distinguishes these cases.
    if (state === 'accepted') return again(state, TOLD)
    return to('accepted', ['stop_timers', { deadline_ms: 64 * rules.t1 }, 'tell_response'])
  }
  if (state === 'accepted') return again(state)
  if (state === 'completed') return again(state, ['ack_again'])
  if (rules.reliable) return to('terminated', ['stop_timers', 'ack', 'end', 'tell_response'])
  return to('completed', ['stop_timers', 'ack', { deadline_ms: 64 * rules.t1 }, 'tell_response'])
}

function plainResponse(rules: ClientRules, state: ClientState, status: number): ClientStep {
  if (state === 'completed') return again(state)
  if (status < 200) return to('proceeding', TOLD)
  if (rules.reliable) return to('terminated', ['stop_timers', 'end', 'tell_response'])
  return to('completed', ['stop_timers', { deadline_ms: rules.t4 }, 'tell_response'])
}

function resend({ invite, t2 }: ClientRules, state: ClientState, waited_ms: number): ClientStep {
  if (state === 'trying') {
    const resend_ms = invite ? 2 * waited_ms : Math.min(2 * waited_ms, t2)
    return to(state, ['send_again', 'probe', { resend_ms }])
  }
  return !invite && state === 'proceeding' ? to(state, ['send_again', { resend_ms: t2 }]) : to(state, [])
}

function deadline({ invite }: ClientRules, state: ClientState): ClientStep {
  if (state === 'completed' || state === 'accepted') return to('terminated', ['end'])
  // A ringing INVITE has no deadline here; its user decides how long to wait.
  if (invite && state === 'proceeding') return to(state, [])
  return to('terminated', ['end', 'tell_timeout'])
}

const to = (state: ClientState, effects: readonly ClientEffect[]): ClientStep => ({ state, effects, again: false })

const again = (state: ClientState, effects: readonly ClientEffect[] = NONE): ClientStep => ({
  state,
  effects,
  again: true,
})

import type { CallStatus } from '../../core/state/index.ts'

/** The change that a request wants to make to an existing call. */
export type LiveChange = 'redirect' | 'complete' | 'cancel' | 'delete'

type Change =
  | { readonly command: 'redirect' | 'hangup' | 'cancel' }
  /** The request succeeds without a command. */
  | { readonly command: null }
  | { readonly refused: true }

/**
 * Decides whether a call in this state accepts a change (voice-compat.md section 4). `ending` means that an accepted
 * hang-up or cancel is still pending: no redirect replaces it, and a repeated request to end the call succeeds.
 */
export function liveChange(wanted: LiveChange, status: CallStatus, ending: boolean): Change {
  const unanswered = status === 'queued' || status === 'ringing'
  if (!unanswered && status !== 'in-progress') return wanted === 'delete' ? { command: null } : { refused: true }
  switch (wanted) {
    case 'redirect':
      return unanswered || ending ? { refused: true } : { command: 'redirect' }
    case 'cancel':
      if (!unanswered) return { refused: true }
      return { command: ending ? null : 'cancel' }
    case 'complete':
    case 'delete':
      return { command: ending ? null : 'hangup' }
  }
}

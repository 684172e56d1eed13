import type { CallStatus } from '../../core/state/index.ts'

/** What a request wants of a call that exists. */
export type Wanted = 'redirect' | 'complete' | 'cancel' | 'delete'

type Change =
  | { readonly command: 'redirect' | 'hangup' | 'cancel' }
  /** Nothing is to be done, and that is fine. */
  | { readonly command: null }
  | { readonly refused: true }

/**
 * Whether a call in this state takes the change (voice-compat.md section 4). `ending`: a hang-up or cancel was accepted
 * and has not been carried out: nothing replaces it, and asking for the same again is granted.
 */
export function liveChange(wanted: Wanted, status: CallStatus, ending: boolean): Change {
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

import type { DocumentTarget, Entry, RunKind } from '../../markup/interpreter/types.ts'
import type { InboundRequest } from '../drachtio/types.ts'
import type { KeyWay, Leg } from './leg.ts'
import type { MediaEvent } from './media.ts'
import type { ScriptedCall } from './scripted-call.ts'

/** The interfaces between a call and the scripts that run on it; `scripts/` implements them. */

/** The document that a script starts with, and its fallback. */
export interface ScriptEntry {
  readonly kind: RunKind
  readonly entry: Entry
  readonly fallback: DocumentTarget | null
}

export type WaitOutcome = 'finished' | 'hangup' | 'leave' | 'failed' | 'gone'

/** The call and leg that a script runs on, and the operations that only their owner can perform. */
export interface ScriptHost {
  readonly call: ScriptedCall
  readonly leg: Leg
  readonly direction: 'inbound' | 'outbound'
  /** Sends 200 OK to the caller. @throws when it cannot be sent; the call has ended then */
  answer(): Promise<void>
  reject(sip_code: number, status: 'busy' | 'no-answer' | 'failed'): void
  hangup(): void
  /** Opens early media to an unanswered caller; false when the caller cannot have it. */
  early(): Promise<boolean>
  ring(): void
  /** Parameters that a queue or conference adds to those of the call in the script's requests. */
  parameters?(): Readonly<Record<string, string>>
  /** Reports the end of a whisper or wait document. */
  done?(outcome: WaitOutcome): void
}

/** A script on a leg: its call passes it keys, requests and media events. */
export interface CallScript {
  readonly kind: RunKind
  readonly done: boolean
  start(): void
  /** Replaces the instructions of a live call, and its fallback if one is given. False when the script is over. */
  update(entry: Entry, fallback?: DocumentTarget): boolean
  digit(digit: string, by: KeyWay): void
  media(event: MediaEvent): void
  /** A REFER of the script's own leg; the script answers it. */
  referred(leg: 'self', request: InboundRequest): void
  /** A NOTIFY about a REFER of ours; the script answers it. */
  notified(request: InboundRequest): void
  /** The leg has ended. The script may still make a last request. `headers`: a Reason header of who ended it. */
  legEnded(headers: Readonly<Record<string, string>>): void
  /** Stops the script at once. */
  drop(): void
}

/** Creates scripts. The caller stores the script and then starts it, because its first step may end the call. */
export interface Scripts {
  create(host: ScriptHost, entry: ScriptEntry): CallScript
}

/** How the outbound policy records an admitted call. */
export interface PolicyRecording {
  readonly channels: number
  readonly retention_days: number
}

export interface PolicyRecorder {
  /** Records the leg of `party`, and `other` on a separate channel. */
  byPolicy(party: Pick<ScriptHost, 'call' | 'leg'>, other: Leg | null, policy: PolicyRecording): void
}

/** The host of a script on an answered leg: answering and ringing do nothing, and a rejection hangs up. */
export const answeredHost = (
  call: ScriptedCall,
  leg: Leg,
  hangup: () => void,
  direction: ScriptHost['direction'] = 'outbound',
): ScriptHost => ({
  call,
  leg,
  direction,
  answer: () => Promise.resolve(),
  reject: hangup,
  hangup,
  early: () => Promise.resolve(false),
  ring: () => undefined,
})

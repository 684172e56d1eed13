import type { Ending } from '../../core/domain/calls/endings.ts'
import type { InboundRequest } from '../drachtio/types.ts'
import type { KeyWay, Leg } from './leg.ts'

/** The events of an outbound call, for the code that placed it. */
export interface OutboundWatcher {
  initiated?(): void
  ringing?(): void
  /** Early media can be heard on `leg`. */
  early?(leg: Leg): void
  answered(leg: Leg): void
  /** The far end pressed a key while no script ran on this call. */
  digit?(digit: string, by: KeyWay): void
  refer?(request: InboundRequest): void
  /** The call has been redirected to its own document; you no longer own it. */
  left?(): void
  ended?(final: Ending): void
}

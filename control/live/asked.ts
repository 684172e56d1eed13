import type { Trx } from '../../core/state/index.ts'
import type { Services } from '../http/services.ts'

/**
 * What runs, changed for /v1 and the voice-calls API alike: both check who asks and read the fields. The functions of
 * this folder hold the rules. They return refusals by reason, which each API words in its own form.
 */
export interface LiveRequest {
  readonly trx: Trx
  readonly services: Pick<Services, 'settings'>
  readonly project_id: string
  readonly now_ms: number
}

import type { Data } from '../lib/data.ts'
import type { Trunk } from '../lib/types.ts'

export interface TrunkTab {
  readonly trunk: Trunk
  readonly of: Data<Trunk>
}

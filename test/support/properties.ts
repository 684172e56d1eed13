import fc from 'fast-check'
import { SEED } from './seed.ts'

fc.configureGlobal({ seed: SEED })

/** fast-check, which draws the same in each run. */
export { fc }

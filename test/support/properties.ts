import fc from 'fast-check'
import { SEED } from './seed.ts'

fc.configureGlobal({ seed: SEED })

/** fast-check, which draws the same in each run. */
export { fc }

/** The surrogates, which are no characters. */
const SURROGATES = { first: 0xd800, count: 0x800 }
const CHARACTERS = 0x110000 - SURROGATES.count

/**
 * One character, any of Unicode's. The unit `binary` of fast-check is the same, but it makes a table of all of them,
 * which costs each process one to two seconds of CPU time and 100 MB.
 */
export const anyCharacter = fc
  .nat({ max: CHARACTERS - 1 })
  .map(at => String.fromCodePoint(at < SURROGATES.first ? at : at + SURROGATES.count))

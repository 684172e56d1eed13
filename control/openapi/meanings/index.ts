import { CALLS } from './calls.ts'
import { CONFIGURATION } from './configuration.ts'
import { INSTALLATION } from './installation.ts'
import { MONEY } from './money.ts'
import { NAMES } from './names.ts'
import { PEOPLE } from './people.ts'
import { VOICE } from './voice.ts'
import { VOICE_ACCOUNT } from './voice-account.ts'

/**
 * Descriptions of properties and parameters that have none beside their schema. A key is `Resource.property`, or
 * `property` where the name means the same in every resource.
 */
const MEANINGS: Readonly<Record<string, string>> = {
  ...NAMES,
  ...CONFIGURATION,
  ...CALLS,
  ...MONEY,
  ...PEOPLE,
  ...INSTALLATION,
  ...VOICE,
  ...VOICE_ACCOUNT,
}

/** Returns what a property means. `resource` is the nearest named schema around it; null outside of all. */
export const meaningOf = (resource: string | null, property: string): string | undefined =>
  MEANINGS[`${resource}.${property}`] ?? MEANINGS[property]

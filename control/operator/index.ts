import { audit } from './audit.ts'
import { carriers } from './carriers.ts'
import { exports } from './exports.ts'
import { fraud } from './fraud.ts'
import { installation } from './installation.ts'
import { invitations } from './invitations.ts'
import { keys } from './keys.ts'
import { limits } from './limits.ts'
import { members } from './members.ts'
import { money } from './money.ts'
import { margins } from './money-margins.ts'
import { numbers } from './numbers.ts'
import { organizations } from './organizations.ts'
import { priceBooks } from './price-books.ts'
import { projects } from './projects.ts'
import { sources } from './sources.ts'
import { voiceAccounts } from './voice-accounts.ts'

/** Every endpoint of /operator/v1, in the order of the reference. */
export const OPERATOR_ROUTES = [
  ...organizations,
  ...invitations,
  ...members,
  ...projects,
  ...voiceAccounts,
  ...money,
  ...margins,
  ...exports,
  ...numbers,
  ...carriers,
  ...priceBooks,
  ...fraud,
  ...sources,
  ...limits,
  ...installation,
  ...audit,
  ...keys,
]

import { audit } from './audit.ts'
import { carrierTests } from './carrier-tests.ts'
import { carrierTraffic } from './carrier-traffic.ts'
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
import { numberImports } from './number-imports.ts'
import { numberOffers } from './number-offers.ts'
import { numbers } from './numbers.ts'
import { organizations } from './organizations.ts'
import { costBooks, priceBooks } from './price-books.ts'
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
  ...numberImports,
  ...numberOffers,
  ...carriers,
  ...carrierTraffic,
  ...carrierTests,
  ...priceBooks,
  ...costBooks,
  ...fraud,
  ...sources,
  ...limits,
  ...installation,
  ...audit,
  ...keys,
]

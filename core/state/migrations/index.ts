import type { Migration } from 'kysely'
import * as initial from './0001-initial/index.ts'
import * as laterAdditions from './0001-later-additions.ts'
import * as policiesOfServices from './0002-policies-of-services.ts'
import * as inboundPrices from './0003-inbound-prices.ts'
import * as truths from './0004-truths.ts'
import * as priceBookDrafts from './0005-price-book-drafts.ts'
import * as lockedMembers from './0006-locked-members.ts'
import * as numberCharges from './0007-number-charges.ts'
import * as callCosts from './0008-call-costs.ts'
import * as callExports from './0009-call-exports.ts'
import * as enginesOfApplications from './0010-engines-of-applications.ts'
import * as carrierMedia from './0011-carrier-media.ts'
import * as auditResources from './0012-audit-resources.ts'
import * as callSteps from './0013-call-steps.ts'
import * as filesOfMachines from './0013-files-of-machines.ts'
import * as carriersTests from './0020-carriers-tests.ts'
import * as costBooks from './0021-cost-books.ts'
import * as numberOffers from './0022-number-offers.ts'
import * as highRisks from './0023-high-risks.ts'
import * as hoursAndTransfers from './0024-hours-and-transfers.ts'
import * as voiceControl from './0030-voice-control.ts'
import * as voiceDocuments from './0031-voice-documents.ts'
import * as moreHighRisks from './0034-more-high-risks.ts'
import * as refusedGuessers from './0035-refused-guessers.ts'
import * as callActivities from './0037-call-activities.ts'
import * as numberFallbacks from './0038-number-fallbacks.ts'
import * as recoveryCodes from './0039-recovery-codes.ts'
import * as listeningNotice from './0040-listening-notice.ts'
import * as exportsOfMachines from './0041-exports-of-machines.ts'
import * as delaysOfCalls from './0042-delays-of-calls.ts'
import * as knownMachines from './0043-known-machines.ts'
import * as machines from './0044-machines.ts'
import * as proofOfTheKey from './0045-proof-of-the-key.ts'
import * as attestedNodes from './0047-attested-nodes.ts'
import * as queuesOfNodes from './0048-queues-of-nodes.ts'
import * as rolesOfMachines from './0049-roles-of-machines.ts'
import * as rateBuckets from './0051-rate-buckets.ts'
import * as contractsOfMachines from './0052-contracts-of-machines.ts'
import * as keptConfiguration from './0053-kept-configuration.ts'
import * as sharedCertificates from './0054-shared-certificates.ts'
import * as placesOfReservations from './0055-places-of-reservations.ts'
import * as keysOfRegistrations from './0056-keys-of-registrations.ts'
import * as leasesOfLevels from './0057-leases-of-levels.ts'

/** All migrations in order of name. Never edit a released migration. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-initial': initial,
  '0001-later-additions': laterAdditions,
  '0002-policies-of-services': policiesOfServices,
  '0003-inbound-prices': inboundPrices,
  '0004-truths': truths,
  '0005-price-book-drafts': priceBookDrafts,
  '0006-locked-members': lockedMembers,
  '0007-number-charges': numberCharges,
  '0008-call-costs': callCosts,
  '0009-call-exports': callExports,
  '0010-engines-of-applications': enginesOfApplications,
  '0011-carrier-media': carrierMedia,
  '0012-audit-resources': auditResources,
  '0013-call-steps': callSteps,
  '0013-files-of-machines': filesOfMachines,
  '0020-carriers-tests': carriersTests,
  '0021-cost-books': costBooks,
  '0022-number-offers': numberOffers,
  '0023-high-risks': highRisks,
  '0024-hours-and-transfers': hoursAndTransfers,
  '0030-voice-control': voiceControl,
  '0031-voice-documents': voiceDocuments,
  '0034-more-high-risks': moreHighRisks,
  '0035-refused-guessers': refusedGuessers,
  '0037-call-activities': callActivities,
  '0038-number-fallbacks': numberFallbacks,
  '0039-recovery-codes': recoveryCodes,
  '0040-listening-notice': listeningNotice,
  '0041-exports-of-machines': exportsOfMachines,
  '0042-delays-of-calls': delaysOfCalls,
  '0043-known-machines': knownMachines,
  '0044-machines': machines,
  '0045-proof-of-the-key': proofOfTheKey,
  '0047-attested-nodes': attestedNodes,
  '0048-queues-of-nodes': queuesOfNodes,
  '0049-roles-of-machines': rolesOfMachines,
  '0051-rate-buckets': rateBuckets,
  '0052-contracts-of-machines': contractsOfMachines,
  '0053-kept-configuration': keptConfiguration,
  '0054-shared-certificates': sharedCertificates,
  '0055-places-of-reservations': placesOfReservations,
  '0056-keys-of-registrations': keysOfRegistrations,
  '0057-leases-of-levels': leasesOfLevels,
}

/** From this one on a migration only adds, unless it is a contract (decision 1086). */
const FIRST_ADDITION = '0049'

/** A contract takes away what earlier releases use. Its name says so, so that they refuse what it has left. */
export const isContract = (name: string): boolean => name.endsWith('-contract')

/** The contracts of this version. */
export const CONTRACTS: readonly string[] = Object.keys(MIGRATIONS).filter(isContract)

/** A release that does not know a migration of this kind runs on a database that has it. */
export const isAddition = (name: string): boolean => name >= FIRST_ADDITION && !isContract(name)

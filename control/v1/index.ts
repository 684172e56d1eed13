import type { Route } from '../http/route.ts'
import { admission } from './admission.ts'
import { alerts } from './alerts.ts'
import { audit } from './audit.ts'
import { billing } from './billing.ts'
import { explainedCalls } from './call-explained.ts'
import { faults } from './call-faults.ts'
import { callFiles } from './call-files.ts'
import { calls } from './calls.ts'
import { clientTokens } from './client-tokens.ts'
import { conferences } from './conferences.ts'
import { containments } from './containments.ts'
import { delegations } from './delegations.ts'
import { digestCredentials } from './digest-credentials.ts'
import { exports } from './exports.ts'
import { ipCredentials } from './ip-credentials.ts'
import { liveCalls } from './live-calls.ts'
import { markup } from './markup.ts'
import { numberBlocks } from './number-blocks.ts'
import { numberOrders } from './number-orders.ts'
import { numbers } from './numbers.ts'
import { organization } from './organization.ts'
import { outboundPolicies } from './outbound-policies.ts'
import { platform } from './platform.ts'
import { policyAttachments } from './policy-attachments.ts'
import { projectMetrics } from './project-metrics.ts'
import { projects } from './projects.ts'
import { queues } from './queues.ts'
import { rates } from './rates.ts'
import { recordings } from './recordings.ts'
import { retention } from './retention.ts'
import { series } from './series.ts'
import { subaccounts } from './subaccounts.ts'
import { subtrunks } from './subtrunks.ts'
import { terminationUris } from './termination-uris.ts'
import { destinations } from './trunk-destinations.ts'
import { trunkMetrics } from './trunk-metrics.ts'
import { trunkTests } from './trunk-tests.ts'
import { trunks } from './trunks.ts'
import { voiceAccount } from './voice-account.ts'
import { voiceApplications } from './voice-applications.ts'
import { voiceDocuments } from './voice-documents.ts'
import { webhookEndpoints } from './webhook-endpoints.ts'

/** Every endpoint of /v1, in the order of the API reference. */
export const V1_ROUTES: readonly Route[] = [
  ...projects,
  ...organization,
  ...projectMetrics,
  ...series,
  ...trunks,
  ...trunkMetrics,
  ...destinations,
  ...trunkTests,
  ...ipCredentials,
  ...digestCredentials,
  ...terminationUris,
  ...subtrunks,
  ...delegations,
  ...outboundPolicies,
  ...policyAttachments,
  ...voiceApplications,
  ...voiceDocuments,
  ...voiceAccount,
  ...clientTokens,
  ...numbers,
  ...numberOrders,
  ...numberBlocks,
  ...subaccounts,
  ...rates,
  ...billing,
  ...admission,
  ...calls,
  ...faults,
  ...explainedCalls,
  ...callFiles,
  ...liveCalls,
  ...exports,
  ...conferences,
  ...queues,
  ...recordings,
  ...retention,
  ...markup,
  ...alerts,
  ...containments,
  ...audit,
  ...webhookEndpoints,
  ...platform,
]

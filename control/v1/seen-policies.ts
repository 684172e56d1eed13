import { findPolicy, type PolicyRow } from '../../core/state/configuration/policies.ts'
import { servesSubaccount } from '../../core/state/configuration/policy-attachments.ts'
import type { Db } from '../../core/state/index.ts'
import type { Caller } from '../http/caller.ts'

/**
 * Finds a policy that the caller may attach to a trunk. Policies belong to the project. A key that is restricted to a
 * subaccount may attach the system default and the policies that the project attached to trunks of the subaccount.
 */
export async function policyToAttach(
  db: Db,
  caller: Caller,
  project_id: string,
  id: string,
): Promise<PolicyRow | undefined> {
  const policy = await findPolicy(db, project_id, id)
  if (!policy || caller.subaccount_id === null || policy.system_default === 1) return policy
  return (await servesSubaccount(db, policy.id, caller.subaccount_id)) ? policy : undefined
}

import { findPolicy, type PolicyRow, servesSubaccount } from '../../core/state/configuration/policies.ts'
import type { Db } from '../../core/state/index.ts'
import type { Caller } from '../http/caller.ts'

/**
 * A live policy that the caller may attach to a trunk. Policies belong to the project; a key that is restricted to a
 * subaccount has those that the project gave to a trunk of the subaccount, and the one that services without any get.
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

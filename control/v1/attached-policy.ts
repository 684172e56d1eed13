import type { Service } from '../../core/domain/admission/index.ts'
import { findPolicy } from '../../core/state/configuration/policies.ts'
import { findAttachment } from '../../core/state/configuration/policy-attachments.ts'
import type { Db } from '../../core/state/index.ts'
import { Count64, resource, type Static, Type } from '../http/schema.ts'

/** A service's own policy, as the service shows it. */
export const AttachedPolicy = resource('AttachedPolicy', { id: Type.String(), name: Type.String(), revision: Count64 })

/** Returns the policy that is attached to a service; null when the project's default applies. */
export async function attachedPolicy(
  db: Db,
  project_id: string,
  { type, id }: Service,
): Promise<Static<typeof AttachedPolicy> | null> {
  const attachment = await findAttachment(db, type, id)
  const policy = attachment && (await findPolicy(db, project_id, attachment.policy_id))
  return policy ? { id: policy.id, name: policy.name, revision: policy.revision } : null
}

import type { Role } from '../../core/state/index.ts'
import type { AuditActor } from '../../core/state/people/audit.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import type { Scope } from './access.ts'

/** Who asks: an API key on /v1, a member signed in on /console/api. */
export interface Caller {
  readonly kind: 'api_key' | 'member'
  readonly id: string
  readonly organization_id: string
  /** Project that a key belongs to; null for a member, who reaches every project of the organization. */
  readonly project_id: string | null
  /** Projects of the organization, where the credential came with them. */
  readonly projects?: readonly ProjectRow[]
  readonly role: Role
  readonly scopes: ReadonlySet<Scope>
  /** A key with a subaccount reaches that subaccount's resources alone. */
  readonly subaccount_id: string | null
  readonly operator: boolean
  readonly actor: AuditActor
}

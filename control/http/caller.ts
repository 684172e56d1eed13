import type { AuditActor } from '../../core/state/people/audit.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import type { CallerRole, OperatorScope, Scope } from './access.ts'

/** The authenticated client of a request: an API key on /v1, a signed-in member on /console/api. */
export interface Caller {
  readonly kind: 'api_key' | 'member' | 'operator'
  readonly id: string
  readonly organization_id: string
  /** The project of a key; null for a member, who can access every project of the organization. */
  readonly project_id: string | null
  /** Projects of the organization, when the lookup of the credential loaded them too. */
  readonly projects?: readonly ProjectRow[]
  readonly role: CallerRole
  readonly scopes: ReadonlySet<Scope | OperatorScope>
  /** A key with a subaccount can access only the resources of that subaccount. */
  readonly subaccount_id: string | null
  readonly operator: boolean
  /** When the credential ends; null for one without an end. */
  readonly expires_at?: string | null
  readonly actor: AuditActor
  /** The address of a caller without a credential. Its `id` is what limits count: an IPv4 address, or a whole /64. */
  readonly address?: string
}

import { OPERATOR_SCOPES } from '../../core/domain/access/scopes.ts'
import { newId } from '../../core/runtime/ids.ts'
import { hashSecret } from '../../core/runtime/secrets.ts'
import { listAudit } from '../../core/state/people/audit.ts'
import { insertOperatorKey, type OperatorKeyRow } from '../../core/state/people/operator-keys.ts'
import { type Answer, type ControlPlane, freshKey } from './control-plane.ts'

// Operators, who use /operator/v1 of a control plane.

/** Inserts a key of an operator with all scopes. Returns it as a client sends it. */
export async function operatorKey(
  w: Pick<ControlPlane, 'state'>,
  changes: Partial<OperatorKeyRow> = {},
): Promise<string> {
  const { public_id, secret } = newId.apiKey()
  const row: OperatorKeyRow = {
    id: newId.operatorKey(),
    public_id,
    secret_hash: hashSecret(secret),
    name: 'Ada',
    scopes: JSON.stringify(OPERATOR_SCOPES),
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
    created_at: new Date().toISOString(),
    ...changes,
  }
  await w.state.transaction(trx => insertOperatorKey(trx, row))
  return `ok_live_${public_id}_${secret}`
}

type AskOperator = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>

/** Asks /operator/v1 with a key. Writes get a fresh Idempotency-Key, and `*` for If-Match is the current revision. */
export const asks =
  (w: ControlPlane, key: string): AskOperator =>
  (method, path, body, headers = {}) =>
    w.ask(method, `/operator/v1${path}`, {
      key,
      headers: { ...(method === 'GET' ? {} : { 'Idempotency-Key': freshKey() }), ...headers },
      ...(body === undefined ? {} : { body }),
    })

/** Writes to a resource at its current revision. */
export async function change(ask: AskOperator, method: string, path: string, body: unknown): Promise<Answer> {
  const resource = /^\/\w+\/[^/]+/.exec(path)?.[0] ?? path
  const { headers } = await ask('GET', resource)
  return ask(method, path, body, { 'If-Match': headers.get('etag') ?? '' })
}

export interface Customer {
  readonly organization_id: string
  readonly project_id: string
}

/** Creates an organization with its first project. */
export async function customer(ask: AskOperator, name: string): Promise<Customer> {
  const contact = { time_zone: 'Africa/Lagos', contact_email: `${name.replace(' ', '.')}@customers.example` }
  const { status, body, text } = await ask('POST', '/organizations', { name, ...contact })
  if (status !== 201) throw new Error(text)
  return { organization_id: body.organization.id, project_id: body.project.id }
}

/** The events of an organization's audit trail, oldest first. */
export async function trailOf(w: ControlPlane, organization_id: string) {
  const rows = await listAudit(w.state.db, organization_id, {}, { limit: 500 })
  return rows.reverse().map(({ action, actor_type, actor_name, actor_id, detail }) => ({
    action,
    actor: `${actor_type} ${actor_name} ${actor_id ?? '-'}`,
    detail,
  }))
}

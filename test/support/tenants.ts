import { newId } from '../../core/runtime/ids.ts'
import { seal } from '../../core/runtime/secrets.ts'
import { ensureAlertPolicies } from '../../core/state/alerts/alert-policies.ts'
import { addAdminKey } from '../../core/state/configuration/bootstrap.ts'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import type { State } from '../../core/state/index.ts'
import type { ControlPlane } from './control-plane.ts'

/** A tenant of the platform other than the demo project's. */
interface Tenant {
  readonly project_id: string
  readonly account_sid: string
  readonly auth_token: string
  readonly api_key: string
  readonly numbers: readonly string[]
}

/** Adds an organization with one project, a voice account, a key with all scopes, and `numbers`. */
export async function addTenant(state: State, master_key: Buffer, numbers: readonly string[]): Promise<Tenant> {
  const now = new Date().toISOString()
  const [organization_id, project_id] = [newId.organization(), newId.project()]
  const [account_sid, auth_token] = [newId.account(), newId.authToken()]
  await state.transaction(async trx => {
    await trx
      .insertInto('organization')
      .values({ id: organization_id, name: 'Rival', time_zone: 'Europe/London', created_at: now })
      .execute()
    await ensureAlertPolicies(trx, { id: organization_id, name: 'Rival' }, now)
    const paid = { billing_account_id: `bil_${newId.uuid()}`, billing_assignment_revision: 1 }
    const project = { id: project_id, organization_id, name: 'Rival project', ...paid, billing_effective_from: now }
    await trx
      .insertInto('project')
      .values({ ...project, status: 'active', currency: 'NGN', sandbox: 1, created_at: now })
      .execute()
    const account = { project_id, account_sid, auth_token_sealed: seal(master_key, auth_token), revision: 1 }
    await trx
      .insertInto('voice_account')
      .values({
        ...account,
        key_id: `vak_${newId.uuid()}`,
        status: 'active',
        call_event_history: 'enabled',
        created_at: now,
      })
      .execute()
    const held = { project_id, status: 'held', route_kind: null, route_id: null, quarantined_until: null } as const
    if (numbers.length > 0)
      await trx
        .insertInto('number')
        .values(
          numbers.map(e164 => ({ id: newId.number(), e164, ...held, revision: 1, created_at: now, updated_at: now })),
        )
        .execute()
    await bumpConfiguration(trx)
  })
  const api_key = await addAdminKey(state.db, project_id, now)
  return { project_id, account_sid, auth_token, api_key, numbers }
}

/** Returns the same control plane for another tenant: `ask` and `voice` use that tenant's credentials. */
export function asTenant(w: ControlPlane, tenant: Tenant): ControlPlane {
  const Authorization = `Basic ${Buffer.from(`${tenant.account_sid}:${tenant.auth_token}`).toString('base64')}`
  const account = `/2010-04-01/Accounts/${tenant.account_sid}`
  return {
    ...w,
    demo: { ...w.demo, ...tenant, numbers: [...tenant.numbers] },
    key: tenant.api_key,
    ask: (method, path, request = {}) => w.ask(method, path, { key: tenant.api_key, ...request }),
    voice: (method, path, form, headers = {}) =>
      w.voice(method, path.startsWith('/2010') ? path : `${account}${path}`, form, { Authorization, ...headers }),
  }
}

import { newId } from '../../core/runtime/ids.ts'
import { unseal } from '../../core/runtime/secrets.ts'
import { addAdminKey } from '../../core/state/configuration/bootstrap.ts'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import type { State } from '../../core/state/index.ts'
import { insertOrganization, insertProject } from '../../core/state/people/customers.ts'
import { insertMember } from '../../core/state/people/organizations.ts'
import type { ControlPlane } from './control-plane.ts'
import { hashOnce } from './passwords.ts'

/** A tenant of the platform other than the demo project's. */
interface Tenant {
  readonly project_id: string
  readonly account_sid: string
  readonly auth_token: string
  readonly api_key: string
  readonly numbers: readonly string[]
}

/** Adds an organization with one project, a voice account, a key with all scopes, and `numbers`. */
export async function addTenant(
  state: State,
  master_key: Buffer,
  numbers: readonly string[],
  name = 'Rival',
): Promise<Tenant> {
  const now = new Date().toISOString()
  const made = await state.transaction(async trx => {
    const given = { name, time_zone: 'Europe/London', contact_email: 'desk@rival.test' }
    const { id: organization_id } = await insertOrganization(trx, given, now)
    const terms = { name: `${name} project`, sandbox: true, prepaid: false, credit_minor: 0 }
    const project = await insertProject(trx, { organization_id, ...terms }, { master_key, now })
    const held = { project_id: project.id, status: 'held', route_kind: null, route_id: null } as const
    const rows = numbers.map(e164 => ({
      ...{ id: newId.number(), e164, ...held, quarantined_until: null, revision: 1 },
      ...{ created_at: now, updated_at: now },
    }))
    if (rows.length > 0) await trx.insertInto('number').values(rows).execute()
    await bumpConfiguration(trx)
    return project
  })
  const account = await state.db
    .selectFrom('voice_account')
    .selectAll()
    .where('project_id', '=', made.id)
    .executeTakeFirstOrThrow()
  return {
    project_id: made.id,
    account_sid: account.account_sid,
    auth_token: unseal(master_key, account.auth_token_sealed),
    api_key: await addAdminKey(state.db, made.id, now, null),
    numbers,
  }
}

/** Adds an admin to the project's organization, who signs in to the console. */
export async function addAdmin(state: State, project_id: string, email: string, password: string): Promise<void> {
  const { organization_id } = await state.db
    .selectFrom('project')
    .select('organization_id')
    .where('id', '=', project_id)
    .executeTakeFirstOrThrow()
  const password_hash = await hashOnce(password)
  const row = { id: newId.member(), organization_id, email, password_hash, role: 'org:admin', operator: 0 } as const
  await state.transaction(trx => insertMember(trx, { ...row, created_at: new Date().toISOString() }))
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

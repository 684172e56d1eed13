import { SCOPES } from '../../domain/access/scopes.ts'
import { iso } from '../../runtime/clock.ts'
import { newId } from '../../runtime/ids.ts'
import { hashSecret, unseal } from '../../runtime/secrets.ts'
import { acceptRecordingConsent, TERMS_VERSION } from '../calls/recording-consent.ts'
import type { Db, Trx } from '../db.ts'
import type { State } from '../index.ts'
import { ANY_OPERATOR, type AuditActor, appendAudit, INSTALLATION } from '../people/audit.ts'
import { insertOrganization, insertProject } from '../people/customers.ts'
import { bumpConfiguration } from './bump.ts'

/** The initial project of a fresh installation: just enough for a first call. */
export interface Demo {
  readonly project_id: string
  readonly account_sid: string
  readonly auth_token: string
  readonly numbers: readonly string[]
  readonly email: string
  /** True when this call created the project. */
  readonly created: boolean
}

const DEMO_EMAIL = 'admin@strowger.local'
const DEMO_NUMBERS = Array.from({ length: 10 }, (_, index) => `+23420100000${String(index + 1).padStart(2, '0')}`)

interface BootstrapOptions {
  readonly master_key: Buffer
  readonly now: string
  /** Hashes the password of the demo member. Called only when this call creates the member: a hash takes 0.1 s. */
  readonly hashOfPassword: () => Promise<string>
}

/** Creates the missing ones of organization, project, member, voice account and numbers. Idempotent. */
export async function ensureDemo(state: State, options: BootstrapOptions): Promise<Demo> {
  const standing = await readDemo(state.db, options.master_key)
  if (standing) return standing
  const password_hash = await options.hashOfPassword()
  return state.transaction(async trx => {
    const known = await readDemo(trx, options.master_key)
    if (known) return known
    await insertDemo(trx, options, password_hash)
    const made = await readDemo(trx, options.master_key)
    if (!made) throw new Error('the demo project is not there after it was made')
    return { ...made, created: true }
  })
}

async function readDemo(db: Db, master_key: Buffer): Promise<Demo | undefined> {
  const row = await db
    .selectFrom('project')
    .innerJoin('organization', 'organization.id', 'project.organization_id')
    .innerJoin('voice_account', 'voice_account.project_id', 'project.id')
    .innerJoin('member', 'member.organization_id', 'project.organization_id')
    .select(['project.id', 'voice_account.account_sid', 'voice_account.auth_token_sealed', 'member.email'])
    // Only the bootstrap makes an organization without a contact: a customer's project is never taken for the demo.
    .where('organization.contact_email', 'is', null)
    .orderBy('project.created_at')
    .orderBy('member.created_at')
    .executeTakeFirst()
  if (!row) return undefined
  const numbers = await db
    .selectFrom('number')
    .select('e164')
    .where('project_id', '=', row.id)
    .where('status', '=', 'held')
    .orderBy('e164')
    .execute()
  return {
    project_id: row.id,
    account_sid: row.account_sid,
    auth_token: unseal(master_key, row.auth_token_sealed),
    numbers: numbers.map(number => number.e164),
    email: row.email,
    created: false,
  }
}

async function insertDemo(trx: Trx, { master_key, now }: BootstrapOptions, password_hash: string): Promise<void> {
  const given = { name: 'Demo', time_zone: 'Africa/Lagos', contact_email: null }
  const { id: organization_id } = await insertOrganization(trx, given, now)
  const terms = { name: 'Demo project', sandbox: true, prepaid: false, credit_minor: 0 }
  const { id: project_id } = await insertProject(trx, { organization_id, ...terms }, { master_key, now })
  await trx
    .insertInto('member')
    .values({
      id: newId.member(),
      organization_id,
      email: DEMO_EMAIL,
      password_hash,
      role: 'org:admin',
      operator: 1,
      created_at: now,
    })
    .execute()
  await trx
    .insertInto('number')
    .values(
      DEMO_NUMBERS.map(e164 => ({
        id: newId.number(),
        e164,
        project_id,
        status: 'held' as const,
        route_kind: null,
        route_id: null,
        quarantined_until: null,
        revision: 1,
        created_at: now,
        updated_at: now,
      })),
    )
    .execute()
  const consent = { project_id, accepted_at: now, accepted_by: DEMO_EMAIL, terms_version: TERMS_VERSION }
  await acceptRecordingConsent(trx, consent)
  await bumpConfiguration(trx)
}

/** How long a key of `bootstrap` lasts. Keys that stay are made by the API or the console, with a name. */
export const BOOTSTRAP_KEY_HOURS = 24

/** Creates a key with all scopes for a person at the command line, which ends after BOOTSTRAP_KEY_HOURS. */
export function addBootstrapKey(state: State, project_id: string, now: string, by: AuditActor): Promise<string> {
  return state.transaction(async trx => {
    const id = newId.key()
    const key = await addAdminKey(trx, project_id, now, iso(Date.parse(now) + BOOTSTRAP_KEY_HOURS * 3_600_000), id)
    const { organization_id } = await trx
      .selectFrom('project')
      .select('organization_id')
      .where('id', '=', project_id)
      .executeTakeFirstOrThrow()
    const event = {
      project_id,
      at: now,
      category: 'operator',
      kind: 'credentials',
      action: 'api_key.created',
      summary: 'Created an API key by bootstrap',
      detail: null,
      resource: { type: 'api_key', id, name: `bootstrap ${now}`, href: null },
      trunk_id: null,
      from_revision: null,
      to_revision: null,
      request_id: null,
      changes: [],
    } as const
    await appendAudit(trx, { ...event, id: newId.auditEvent(), organization_id: INSTALLATION, actor: by })
    await appendAudit(trx, { ...event, id: newId.auditEvent(), organization_id, actor: ANY_OPERATOR })
    return key
  })
}

/** Creates a key with all scopes. Returns the whole key once; the state keeps only a hash of its secret part. */
export async function addAdminKey(
  db: Db | Trx,
  project_id: string,
  now: string,
  expires_at: string | null,
  id = newId.key(),
): Promise<string> {
  const { public_id, secret } = newId.apiKey()
  await db
    .insertInto('api_key')
    .values({
      id,
      project_id,
      public_id,
      secret_hash: hashSecret(secret),
      name: `bootstrap ${now}`,
      role: 'org:admin',
      scopes: JSON.stringify(SCOPES),
      subaccount_id: null,
      expires_at,
      retires_at: null,
      rotated_from_id: null,
      revoked_at: null,
      last_used_at: null,
      created_at: now,
    })
    .execute()
  return `sk_live_${public_id}_${secret}`
}

const SANDBOX_CARRIER_ID = 'car_sandbox'

const sandboxTarget = (machine_id: string): string => `${SANDBOX_CARRIER_ID}_${machine_id}`

/**
 * Writes the sandbox carrier as an ordinary carrier with one route for every number, and a target for each machine. It
 * has no sources, because it only receives calls. That of this machine listens on `port`; null: it has none.
 */
export async function putSandboxCarrier(
  state: State,
  options: { readonly machine_id: string; readonly host: string; readonly port: number | null; readonly now: string },
): Promise<void> {
  const { machine_id, host, port, now } = options
  const id = SANDBOX_CARRIER_ID
  await state.transaction(async trx => {
    // Before there were several machines, the only target had a name without one.
    const own = [sandboxTarget(machine_id), `${id}_target`]
    await trx.deleteFrom('carrier_target').where('carrier_id', '=', id).where('id', 'in', own).execute()
    if (port !== null) {
      const sip_uri = `sip:${host.includes(':') ? `[${host}]` : host}:${port}`
      const target = { id: sandboxTarget(machine_id), carrier_id: id, sip_uri, transport: 'udp' } as const
      await trx
        .insertInto('carrier_target')
        .values({ ...target, priority: 0, weight: 100, enabled: 1 })
        .execute()
    }
    const targets = await trx.selectFrom('carrier_target').select('id').where('carrier_id', '=', id).execute()
    await trx.deleteFrom('carrier_route').where('carrier_id', '=', id).execute()
    await trx.deleteFrom('carrier').where('id', '=', id).execute()
    if (targets.length > 0) {
      const codecs = JSON.stringify(['PCMU', 'PCMA'])
      const carrier = {
        id,
        name: 'Sandbox carrier',
        codecs,
        enabled: 1,
        sandbox: 1,
        revision: 1,
        created_at: now,
      } as const
      await trx.insertInto('carrier').values(carrier).execute()
      await trx
        .insertInto('carrier_route')
        .values({ id: `${id}_route`, carrier_id: id, prefix: '', priority: 1000, cost_minor: 0 })
        .execute()
    }
    await bumpConfiguration(trx)
  })
}

/** Leaves out the sandbox carriers of other machines where this machine has its own. */
export function ownSandbox<Target extends { readonly id: string; readonly carrier_id: string }>(
  targets: readonly Target[],
  machine_id: string,
): readonly Target[] {
  const own = sandboxTarget(machine_id)
  if (!targets.some(({ id }) => id === own)) return targets
  return targets.filter(({ id, carrier_id }) => carrier_id !== SANDBOX_CARRIER_ID || id === own)
}

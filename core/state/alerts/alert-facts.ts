import { sql } from 'kysely'
import type { AlertScope, ApplyFacts, BalanceFacts, HealthFacts, SpendFacts } from '../../domain/alerts/index.ts'
import { dayOf, daysAnywhere } from '../../domain/rating/day.ts'
import { iso } from '../../runtime/clock.ts'
import { spentBetween } from '../calls/counters.ts'
import { appliedState, NODE_SILENCE_MS } from '../configuration/apply.ts'
import { evidenceOf } from '../configuration/target-evidence.ts'
import type { Db } from '../db.ts'
import { readTogether, statement } from '../port.ts'

/** The facts that alerts are judged by, read from rows that calls and nodes write anyway. */

interface Project {
  readonly id: string
  readonly name: string
  readonly currency: string
  readonly billing_account_id: string
}

export async function balanceFacts(db: Db, project: Project): Promise<BalanceFacts> {
  const row = await db
    .selectFrom('billing_account')
    .selectAll()
    .where('id', '=', project.billing_account_id)
    .where('prepaid', '=', 1)
    .executeTakeFirst()
  return { account: row ?? null, currency: project.currency }
}

interface Now {
  readonly now_ms: number
  readonly time_zone: string
}

/**
 * Reads the spend of every level of a project that may have a daily cap, today (with the caps) or this month, and that
 * of the trunk that a policy names.
 */
export async function spendFacts(
  db: Db,
  project: Project,
  { now_ms, time_zone }: Now,
  { monthly, scope }: { readonly monthly: boolean; readonly scope: AlertScope },
): Promise<SpendFacts> {
  const named = await spendLevels(db, project, scope)
  const ids = named.map(({ id }) => id)
  const spentIn = ({ first, last }: ReturnType<typeof daysAnywhere>) =>
    spentBetween(db, ids, monthly ? `${first.slice(0, 7)}-01` : first, last)
  const today = (): string => dayOf(now_ms, time_zone)
  let spent = await spentIn(daysAnywhere(now_ms))
  if (spent.size > 0) spent = await spentIn({ first: today(), last: today() })
  return {
    currency: project.currency,
    get period() {
      return monthly ? today().slice(0, 7) : today()
    },
    levels: named.map(level => ({
      ...level,
      spent_minor: spent.get(level.id) ?? 0,
      cap_minor: monthly ? null : level.cap_minor,
    })),
  }
}

type SpendLevel = Omit<SpendFacts['levels'][number], 'spent_minor'>

interface Of {
  readonly id: string
}

const CEILING = statement((db, { id }: Of) =>
  db.selectFrom('project_ceiling').select('daily_spend_cap_minor').where('project_id', '=', id),
)
const SUBACCOUNTS = statement((db, { id }: Of) =>
  db.selectFrom('subaccount').select(['id', 'name', 'daily_spend_cap_minor']).where('project_id', '=', id),
)
const NAMED_TRUNK = statement((db, { id, trunk_id }: Of & { readonly trunk_id: string }) =>
  db.selectFrom('trunk').select(['id', 'name']).where('project_id', '=', id).where('id', '=', trunk_id),
)
const CAPPED_SUBTRUNKS = statement((db, { id }: Of) =>
  db
    .selectFrom('subtrunk as s')
    .innerJoin('trunk as t', 't.id', 's.trunk_id')
    .select(['s.id', 's.name', 's.daily_spend_cap_minor', 't.id as trunk_id', 't.name as trunk_name'])
    .where('s.project_id', '=', id)
    .where('s.status', '!=', 'released')
    .where('s.daily_spend_cap_minor', 'is not', null),
)
const CAPPED_POLICIES = statement((db, { id }: Of) =>
  db
    .selectFrom('outbound_policy')
    .select(['id', 'name', 'daily_spend_limit_minor'])
    .where('project_id', '=', id)
    .where('status', '=', 'active')
    .where('daily_spend_limit_minor', 'is not', null),
)

async function spendLevels(db: Db, project: Project, scope: AlertScope): Promise<SpendLevel[]> {
  const of_project = { id: project.id, name: project.name, type: 'organization' } as const
  const { id } = project
  const [[ceiling], subaccounts, trunks, subtrunks, policies] = await readTogether(
    db,
    CEILING({ id }),
    SUBACCOUNTS({ id }),
    NAMED_TRUNK({ id, trunk_id: scope.type === 'trunk' ? (scope.id ?? '') : '' }),
    CAPPED_SUBTRUNKS({ id }),
    CAPPED_POLICIES({ id }),
  )
  return [
    {
      id: project.id,
      name: project.name,
      level: 'project',
      subject: of_project,
      cap_minor: ceiling?.daily_spend_cap_minor ?? null,
    },
    ...subaccounts.map(({ id, name, daily_spend_cap_minor }) => ({
      id,
      name,
      level: 'subaccount' as const,
      subject: { id, name, type: 'subaccount' as const },
      cap_minor: daily_spend_cap_minor,
    })),
    // A trunk has no cap of its own: it belongs to its policy, which other services may share.
    ...trunks.map(({ id, name }) => ({
      id,
      name,
      level: 'trunk' as const,
      subject: { id, name, type: 'trunk' as const },
      cap_minor: null,
    })),
    ...subtrunks.map(({ id, name, daily_spend_cap_minor, trunk_id, trunk_name }) => ({
      id,
      name,
      level: 'subtrunk' as const,
      cap_minor: daily_spend_cap_minor,
      subject: { id: trunk_id, name: trunk_name, type: 'trunk' as const },
    })),
    ...policies.map(({ id, name, daily_spend_limit_minor }) => ({
      id,
      name,
      level: 'policy' as const,
      subject: of_project,
      cap_minor: daily_spend_limit_minor,
    })),
  ]
}

const aliveNodes = (db: Db, now_ms: number) =>
  db
    .selectFrom('node')
    .select('id')
    .where('kind', '=', 'signaling')
    .where('heartbeat_at', '>=', iso(now_ms - NODE_SILENCE_MS))
    .execute()

/**
 * Reads live nodes' evidence of enabled targets of enabled trunks, and the webhook endpoints that fail or are in
 * `watched`. A target that one node reaches is healthy.
 */
export async function healthFacts(
  db: Db,
  project_id: string,
  now_ms: number,
  watched: readonly string[],
): Promise<HealthFacts> {
  const now = iso(now_ms)
  const alive = new Set((await aliveNodes(db, now_ms)).map(node => node.id))
  if (alive.size === 0) return { available: false, targets: [], endpoints: [], now }
  const targets = await db
    .selectFrom('termination_target')
    .innerJoin('trunk', 'trunk.id', 'termination_target.trunk_id')
    .select(['termination_target.id', 'termination_target.sip_uri', 'trunk.id as trunk_id', 'trunk.name'])
    .where('trunk.project_id', '=', project_id)
    .where('trunk.status', '=', 'enabled')
    .where('termination_target.enabled', '=', 1)
    .execute()
  const evidence = (
    await evidenceOf(
      db,
      targets.map(target => target.id),
    )
  ).filter(row => alive.has(row.node_id))
  const known = targets.map(target => {
    const rows = evidence.filter(row => row.target_id === target.id)
    const best = rows.find(row => row.state === 'healthy') ?? rows.find(row => row.state === 'unknown') ?? rows[0]
    return { target, best }
  })
  const count = (trunk_id: string, state?: string): number =>
    known.filter(({ target, best }) => target.trunk_id === trunk_id && (!state || best?.state === state)).length
  return {
    available: true,
    targets: known.map(({ target, best }) => ({
      id: target.id,
      name: target.sip_uri,
      trunk: { id: target.trunk_id, name: target.name },
      enabled_targets: count(target.trunk_id),
      degraded_targets: count(target.trunk_id, 'degraded'),
      state: best?.state ?? 'unknown',
      misses: best?.misses ?? 0,
      last_code: best?.last_code ?? null,
      checked_at: best?.checked_at ?? now,
    })),
    endpoints: await endpointFacts(db, project_id, watched),
    now,
  }
}

/** Reads the enabled endpoints that leave deliveries unanswered, and those in `watched`. */
async function endpointFacts(
  db: Db,
  project_id: string,
  watched: readonly string[],
): Promise<HealthFacts['endpoints']> {
  // The literal state matches the partial index of waiting deliveries.
  const waiting = await db
    .selectFrom('webhook_delivery')
    .select(eb => [
      'endpoint_id',
      eb.fn.min('created_at').as('since'),
      eb.fn.max('attempts').as('misses'),
      eb.fn.max('last_attempt_at').as('failed_at'),
      eb.fn.max('last_error').as('last_error'),
    ])
    .where('state', '=', sql.lit('pending'))
    .where('attempts', '>', 0)
    .where('project_id', '=', project_id)
    .groupBy('endpoint_id')
    .execute()
  const ids = [...waiting.map(row => row.endpoint_id), ...watched]
  if (ids.length === 0) return []
  const rows = await db
    .selectFrom('webhook_endpoint')
    .select(['id', 'url'])
    .where('id', 'in', ids)
    .where('project_id', '=', project_id)
    .where('enabled', '=', 1)
    .where('deleted_at', 'is', null)
    .execute()
  const endpoints = []
  for (const { id, url } of rows) {
    const last = await db
      .selectFrom('webhook_delivery')
      .select('delivered_at')
      .where('endpoint_id', '=', id)
      .where('delivered_at', 'is not', null)
      .orderBy('position', 'desc')
      .limit(1)
      .executeTakeFirst()
    const fails = waiting.find(row => row.endpoint_id === id)
    endpoints.push({
      id,
      name: hostOf(url),
      failing_since: fails?.since ?? null,
      misses: Number(fails?.misses ?? 0),
      failed_at: fails?.failed_at ?? null,
      last_error: fails?.last_error ?? null,
      delivered_at: last?.delivered_at ?? null,
    })
  }
  return endpoints
}

/** A URL's path may hold a secret, and alerts are sent by mail: the host names the endpoint. */
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : 'with a malformed URL')

/** Reads the trunks whose saved revision a live node could not apply, and trunks with open alerts. */
export async function applyFacts(
  db: Db,
  project_id: string,
  now_ms: number,
  watched: readonly string[],
): Promise<Omit<ApplyFacts, 'overruled'>> {
  if ((await aliveNodes(db, now_ms)).length === 0) return { available: false, trunks: [] }
  const trunks = await db
    .selectFrom('trunk')
    .select(['id', 'name', 'revision'])
    .where('project_id', '=', project_id)
    .where('status', '!=', 'released')
    .where(eb =>
      eb.or([
        eb('id', 'in', watched.length > 0 ? [...watched] : ['']),
        eb(
          'id',
          'in',
          eb.selectFrom('apply_report').select('apply_report.resource_id').where('apply_report.state', '=', 'failed'),
        ),
      ]),
    )
    .execute()
  const found = []
  for (const trunk of trunks) {
    const { state, effective_revision, error } = await appliedState(db, trunk, now_ms)
    found.push({ ...trunk, effective_revision, failed: state === 'failed', error })
  }
  return { available: true, trunks: found }
}

/** Returns the time of day in the organization's time zone, `HH:MM`. */
export const clockOf = (epoch_ms: number, time_zone: string): string =>
  new Intl.DateTimeFormat('en-GB', {
    timeZone: time_zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).format(epoch_ms)

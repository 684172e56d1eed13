import type { PolicyFacts } from '../../domain/admission/index.ts'
import { prefixesOf } from '../../domain/policies/destinations.ts'
import type { Rate } from '../../domain/rating/types.ts'
import type { AdmissionRequest } from './request.ts'
import { marks, number, type Query, type Row, sized, text, textOrNull } from './steps.ts'

/**
 * What the state knows of a destination: rules, containments, price and routes, each asked for every prefix at once.
 */

export const NO_PRICE = { price_book: null, rate: null } as const

const RULES = sized(
  count => `select op, kind, value, prefix, label from policy_rule where policy_id = ? and prefix in (${marks(count)})`,
)

export function readRules(query: Query, policies: readonly Row[], digits: string): PolicyFacts[] {
  const prefixes = prefixesOf(digits)
  const result: PolicyFacts[] = []
  for (const policy of policies) {
    const id = text(policy, 'id')
    const rules = query(RULES(prefixes.length), id, ...prefixes)
    // Among matching rules an allow answers the question already.
    const allow =
      rules.some(rule => text(rule, 'op') === 'allow') ||
      query("select 1 as one from policy_rule where policy_id = ? and op = 'allow' limit 1", id).length > 0
    result.push({
      id,
      name: text(policy, 'name'),
      has_allow: allow,
      rules: rules.map(rule => ({
        op: text(rule, 'op') === 'allow' ? 'allow' : 'deny',
        kind: text(rule, 'kind') === 'country' ? 'country' : 'prefix',
        value: text(rule, 'value'),
        prefix: text(rule, 'prefix'),
        label: textOrNull(rule, 'label'),
      })),
    })
  }
  return result
}

const CONTAINMENTS = sized(
  count => `select id, prefix, case_ref from containment where project_id = ? and prefix in (${marks(count)})
    and released_at is null and starts_at <= ? and expires_at > ? and (trunk_id is null or trunk_id = ?)`,
)

export function readContainments(
  query: Query,
  { project_id, now_ms }: AdmissionRequest,
  trunk_id: string | null,
  digits: string,
) {
  const prefixes = prefixesOf(digits)
  const now = new Date(now_ms).toISOString()
  const rows = query(CONTAINMENTS(prefixes.length), project_id, ...prefixes, now, now, trunk_id)
  return rows.map(row => ({ id: text(row, 'id'), prefix: text(row, 'prefix'), case_ref: text(row, 'case_ref') }))
}

// The project's own book before the operator's; of several in force the newest.
const PRICES = sized(
  count => `select b.id, b.name, b.revision, r.id as rate_id, r.prefix, r.label, r.rate_micro, r.rate_unit,
      r.increment_initial_seconds, r.increment_additional_seconds
    from price_book b left join rate r on r.price_book_id = b.id and r.prefix in (${marks(count)})
    where b.id = (select id from price_book where (project_id = ? or project_id is null) and direction = 'outbound'
      and effective_from <= ? order by (project_id is null), effective_from desc, id desc limit 1)`,
)

export function readPrice(
  query: Query,
  { project_id, now_ms }: AdmissionRequest,
  digits: string | null,
): { price_book: Row | null; rate: Rate | null } {
  const prefixes = digits === null ? ['none'] : prefixesOf(digits)
  const rows = query(PRICES(prefixes.length), ...prefixes, project_id, new Date(now_ms).toISOString())
  let row: Row | null = null
  for (const each of rows)
    if (textOrNull(each, 'rate_id') !== null && (!row || text(each, 'prefix').length > text(row, 'prefix').length))
      row = each
  const rate: Rate | null = row
    ? {
        id: text(row, 'rate_id'),
        prefix: text(row, 'prefix'),
        label: text(row, 'label'),
        rate_micro: number(row, 'rate_micro'),
        rate_unit: text(row, 'rate_unit') === 'second' ? 'second' : 'minute',
        increment_initial_seconds: number(row, 'increment_initial_seconds'),
        increment_additional_seconds: number(row, 'increment_additional_seconds'),
      }
    : null
  return { price_book: rows[0] ?? null, rate }
}

const CARRIER_ROUTES = sized(
  count => `select count(*) as n from carrier_route r join carrier c on c.id = r.carrier_id
    where r.prefix in (${marks(count)}) and c.enabled = 1 and c.sandbox = ?
    and exists (select 1 from carrier_target t where t.carrier_id = c.id and t.enabled = 1)`,
)

export function countRoutes(
  query: Query,
  request: AdmissionRequest,
  trunk_id: string | null,
  project: Row,
  digits: string,
): number {
  const known = request.own_targets ?? null
  const own =
    known ??
    (trunk_id === null
      ? 0
      : number(
          query('select count(*) as n from termination_target where trunk_id = ? and enabled = 1', trunk_id)[0] ?? {},
          'n',
        ))
  if (own > 0) return own
  const prefixes = prefixesOf(digits)
  const carriers = query(CARRIER_ROUTES(prefixes.length), ...prefixes, number(project, 'sandbox'))
  return number(carriers[0] ?? {}, 'n')
}

import type { Over, PolicyFacts } from '../../../domain/admission/index.ts'
import { compileSources } from '../../../domain/identity/sources.ts'
import { prefixesOf } from '../../../domain/policies/destinations.ts'
import { type Rate, SIP_CLASS } from '../../../domain/rating/types.ts'
import { isPeer } from '../../../domain/routing/index.ts'
import { marks, numberOf, type Query, type Row, sized, textOf, textOrNull } from '../query.ts'
import type { AdmissionRequest } from './request.ts'

/**
 * Reads a destination's rules, containments, price and routes, each with one query for all prefixes.
 */

const NO_PRICE = { price_book: null, rate: null } as const

const RULES = sized(
  count => `select op, kind, value, prefix, label from policy_rule where policy_id = ? and prefix in (${marks(count)})`,
)

export function readRules(query: Query, policies: readonly Row[], digits: string): PolicyFacts[] {
  const prefixes = prefixesOf(digits)
  const result: PolicyFacts[] = []
  for (const policy of policies) {
    const id = textOf(policy, 'id')
    const rules = query(RULES(prefixes.length), id, ...prefixes)
    // A matching allow rule already proves that the policy has one.
    const allow =
      rules.some(rule => textOf(rule, 'op') === 'allow') ||
      query("select 1 as one from policy_rule where policy_id = ? and op = 'allow' limit 1", id).length > 0
    result.push({
      id,
      name: textOf(policy, 'name'),
      has_allow: allow,
      rules: rules.map(rule => ({
        op: textOf(rule, 'op') === 'allow' ? 'allow' : 'deny',
        kind: textOf(rule, 'kind') === 'country' ? 'country' : 'prefix',
        value: textOf(rule, 'value'),
        prefix: textOf(rule, 'prefix'),
        label: textOrNull(rule, 'label'),
      })),
    })
  }
  return result
}

// A containment is in force from the moment that it is written: a call that came before and is decided now is refused.
const CONTAINMENTS = sized(
  count => `select id, prefix, case_ref from containment where project_id = ? and prefix in (${marks(count)})
    and released_at is null and expires_at > ? and (trunk_id is null or trunk_id = ?)`,
)

/** Reads the containments in force on a destination. Most projects never had one. */
export function readContainments(
  query: Query,
  { project_id, now_ms }: AdmissionRequest,
  project: Row,
  { trunk_id, digits }: { readonly trunk_id: string | null; readonly digits: string },
) {
  if (numberOf(project, 'has_containments') === 0) return []
  const prefixes = prefixesOf(digits)
  const now = new Date(now_ms).toISOString()
  const rows = query(CONTAINMENTS(prefixes.length), project_id, ...prefixes, now, trunk_id)
  return rows.map(row => ({ id: textOf(row, 'id'), prefix: textOf(row, 'prefix'), case_ref: textOf(row, 'case_ref') }))
}

// The project's own book takes precedence over the operator's, and the newest over older ones in force.
const BOOK = `select id, name, revision from price_book where (project_id = ? or project_id is null)
    and carrier_id is null and direction = ? and effective_from <= ?
  order by (project_id is null), effective_from desc, revision desc limit 1`
const RATE_COLUMNS = `id, prefix, label, rate_micro, rate_unit, increment_initial_seconds, increment_additional_seconds`
const RATE_OF_CLASS = `select ${RATE_COLUMNS} from rate where price_book_id = ? and prefix = ?`
const RATE_UP_TO = `select ${RATE_COLUMNS}
    from rate where price_book_id = ? and prefix <= ? order by prefix desc limit 1`

/**
 * Reads what this side of a call costs. An outbound leg has the price of its destination; an inbound call that a
 * carrier brings has that of the called number. All else stays on the platform and is free (docs/http.md).
 */
export function readPrice(
  query: Query,
  { project_id, now_ms, part, from_carrier }: AdmissionRequest,
  over: Over,
  digits: string | null,
): { price_book: Row | null; rate: Rate | null } {
  if (part === 'on_net' || (part === 'inbound' && !from_carrier)) return NO_PRICE
  const price_book = query(BOOK, project_id, part, new Date(now_ms).toISOString())[0] ?? null
  const book_id = price_book && textOf(price_book, 'id')
  const row =
    book_id === null || over === 'client'
      ? null
      : over === 'sip'
        ? (query(RATE_OF_CLASS, book_id, SIP_CLASS)[0] ?? null)
        : digits !== null
          ? longestRate(query, book_id, digits)
          : null
  return { price_book, rate: row && rateOf(row) }
}

const rateOf = (row: Row): Rate => ({
  id: textOf(row, 'id'),
  prefix: textOf(row, 'prefix'),
  label: textOf(row, 'label'),
  rate_micro: numberOf(row, 'rate_micro'),
  rate_unit: textOf(row, 'rate_unit') === 'second' ? 'second' : 'minute',
  increment_initial_seconds: numberOf(row, 'increment_initial_seconds'),
  increment_additional_seconds: numberOf(row, 'increment_additional_seconds'),
})

const COST_BOOK = `select id from price_book where carrier_id = ? and direction = ? and effective_from <= ?
  order by effective_from desc, revision desc limit 1`

/** Reads what a carrier takes for a destination by its cost book in force at a time; null when no book says it. */
export function readCost(
  query: Query,
  carrier_id: string,
  call: { readonly direction: 'outbound' | 'inbound'; readonly digits: string; readonly at: string },
): Rate | null {
  const book = query(COST_BOOK, carrier_id, call.direction, call.at)[0]
  const row = book ? longestRate(query, textOf(book, 'id'), call.digits) : null
  return row && rateOf(row)
}

/**
 * Finds the rate of the longest prefix. It is the last entry that does not sort after the digits. If that entry is not
 * a prefix, the search repeats with the digits that both share. This takes two or three index lookups instead of one
 * per digit.
 */
function longestRate(query: Query, price_book_id: string, digits: string): Row | null {
  let up_to = digits
  while (up_to !== '') {
    const [row] = query(RATE_UP_TO, price_book_id, up_to)
    if (!row) return null
    const prefix = textOf(row, 'prefix')
    if (digits.startsWith(prefix)) return row
    let common = 0
    while (prefix[common] === up_to[common]) common++
    up_to = up_to.slice(0, common)
  }
  return null
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
  const own = request.own_targets ?? (trunk_id === null ? 0 : countTargets(query, trunk_id))
  if (own > 0) return own
  const prefixes = prefixesOf(digits)
  const carriers = query(CARRIER_ROUTES(prefixes.length), ...prefixes, numberOf(project, 'sandbox'))
  return numberOf(carriers[0] ?? {}, 'n')
}

const TARGETS = `select sip_uri, (select max(e.address) from target_evidence e where e.target_id = t.id) as seen_at
    from termination_target t where trunk_id = ? and enabled = 1`
const SOURCES = `select cidr from trunk_source where trunk_id = ? and enabled = 1 and standing <> 'pending_approval'`

/**
 * Counts a trunk's enabled targets except the peer itself, for a request that no node brought. A node that places a
 * call counts them from its own configuration and evidence (`own_targets`).
 */
function countTargets(query: Query, trunk_id: string): number {
  const targets = query(TARGETS, trunk_id)
  if (targets.length === 0) return 0
  const sources = query(SOURCES, trunk_id).map(row => ({
    cidr: textOf(row, 'cidr'),
    selector_precedence: 0,
    owner: null,
  }))
  const index = compileSources(sources)
  return targets.filter(row => !isPeer(index, textOf(row, 'sip_uri'), textOrNull(row, 'seen_at'))).length
}

import {
  type AdmissionFacts,
  type HolderFacts,
  type Over,
  type ServiceType,
  type TrunkFacts,
  WAYS,
} from '../../../domain/admission/index.ts'
import { highRiskOf } from '../../../domain/fraud/high-risk.ts'
import { type CallerFacts, type CallerOwnership, ownershipOf } from '../../../domain/identity/caller.ts'
import { DEFAULT_COUNTRY } from '../../../domain/numbers/default-country.ts'
import {
  type CalledNumber,
  normalizeNumber,
  type ParsedNumber,
  parseCalled,
  parseNumber,
} from '../../../domain/numbers/parse.ts'
import { isWithin, localTimeOf, localTimeText } from '../../../domain/policies/calling-hours.ts'
import { dayOf } from '../../../domain/rating/day.ts'
import { ceilings } from '../ceilings/index.ts'
import { levelLimits } from '../ceilings/levels.ts'
import { minuteOf, type SlotUsage } from '../ceilings/slots.ts'
import { availableOf } from '../ceilings/spend.ts'
import { type Second, secondAt } from '../ceilings/window.ts'
import { numberOf, type Query, type Row, textOf, textOrNull } from '../query.ts'
import { countRoutes, readContainments, readPrice, readRules } from './destination.ts'
import type { AdmissionRequest } from './request.ts'

/** All facts of a decision, and what taking slots and money needs in addition. */
export interface Gathered {
  readonly facts: AdmissionFacts
  readonly project: Row
  readonly trunk: Row | null
  readonly subtrunk: Row | null
  readonly subaccount: Row | null
  /** The service's policy, and its trunk's when the service is a subtrunk with its own policy. */
  readonly policies: readonly Row[]
  readonly price_book: Row | null
  readonly egress_trunk_id: string | null
  readonly day: string
  readonly minute: number
  readonly second: Second
  /** Usage of the levels, as read. */
  readonly usage: SlotUsage
  /** Whether the payer has an account in which money is reserved. */
  readonly has_account: boolean
}

/** Reads the facts. Nothing is cached, so that a change takes effect with the next call. */
export function gatherFacts(query: Query, given: AdmissionRequest, store_ms: number): Gathered {
  const project = readProject(query, given.project_id)
  const named = readTrunks(query, given)
  const { trunk } = named
  const subtrunk = named.subtrunk ?? (trunk && numberOf(trunk, 'shared') === 1 ? shareOf(query, given, trunk) : null)
  // A peer authenticates as its trunk. Its number determines the subtrunk that a call uses.
  const request: AdmissionRequest =
    subtrunk && !named.subtrunk ? { ...given, service: { type: 'subtrunk', id: textOf(subtrunk, 'id') } } : given
  const subaccount = readSubaccount(query, trunk)
  const policies = readPolicies(query, request, trunk, subtrunk)
  const country = trunk ? (textOrNull(trunk, 'country') ?? DEFAULT_COUNTRY) : DEFAULT_COUNTRY
  const outbound = request.part === 'outbound'
  const over = overOf(request)
  const called = readCalled(query, request, over, country)
  const { caller, egress_trunk_id } = readCaller(query, request, country, trunk, subtrunk)
  const digits = outbound ? (called.number?.digits ?? null) : null
  const { price_book, rate } = readPrice(query, request, over, called.number?.digits ?? null)
  const day = dayOf(request.now_ms, textOf(project, 'time_zone'))
  const limits = levelLimits({ project, subaccount, trunk, subtrunk, policies })
  const [minute, second] = [minuteOf(store_ms), secondAt(store_ms)]
  const usage = ceilings.usage(query, limits, { day, minute, second, priced: outbound || rate !== null })
  const account = outbound || rate ? readAccount(query, project) : null
  const facts: AdmissionFacts = {
    direction: request.part,
    over,
    service: { ...request.service, name: textOf(subtrunk ?? trunk ?? project, 'name') },
    holders: holdersOf(project, subaccount, trunk, subtrunk),
    switched_off_by: switchedOffBy(policies),
    closed_by: closedBy(policies, request.now_ms, textOf(project, 'time_zone')),
    trunk: trunk ? trunkFacts(trunk) : null,
    transport: request.transport,
    offer: request.offer,
    called,
    caller,
    risk: outbound && called.number ? riskOf(project, called.number) : null,
    policies: digits ? readRules(query, policies, digits) : [],
    containments: digits ? readContainments(query, request, project, { trunk_id: egress_trunk_id, digits }) : [],
    billing: numberOf(project, 'sandbox') === 1 ? 'free' : 'rated',
    price_book: price_book ? { id: textOf(price_book, 'id'), name: textOf(price_book, 'name') } : null,
    rate,
    routes: over === 'network' && digits ? countRoutes(query, request, egress_trunk_id, project, digits) : 0,
    levels: usage.levels,
    balance: balanceOf(project, account),
  }
  return {
    facts,
    project,
    trunk,
    subtrunk,
    subaccount,
    policies,
    price_book,
    egress_trunk_id,
    day,
    minute,
    second,
    usage,
    has_account: account !== null,
  }
}

const one = (rows: readonly Row[]): Row | null => rows[0] ?? null

/**
 * Returns what a leg goes over. An outbound leg needs a way that its service may use: a call of a script, for example,
 * is never taken for one of a trunk.
 */
function overOf({ part, way, service }: AdmissionRequest): Over {
  if (part !== 'outbound') return 'network'
  const known = way === null ? null : WAYS[way]
  const allowed: readonly ServiceType[] = known?.services ?? []
  if (!known || !allowed.includes(service.type)) throw new Error(`no ${service.type} makes a call by ${way}`)
  return known.over
}

/** Names the policy whose attachment has outbound calls off. */
const switchedOffBy = (policies: readonly Row[]): string | null => {
  const off = policies.find(policy => policy['outbound_enabled'] === 0)
  return off ? `"${textOf(off, 'name')}"` : null
}

function riskOf(project: Row, called: ParsedNumber): AdmissionFacts['risk'] {
  const risk = highRiskOf(called)
  if (!risk) return null
  const open: unknown = JSON.parse(textOf(project, 'open_risks'))
  return { name: risk.name, label: risk.label, open: Array.isArray(open) && open.includes(risk.name) }
}

/** Returns the first policy whose calling hours do not have this moment, in the time zone of the organization. */
function closedBy(policies: readonly Row[], now_ms: number, time_zone: string): AdmissionFacts['closed_by'] {
  for (const policy of policies) {
    const hours = textOrNull(policy, 'calling_hours')
    if (hours === null) continue
    const now = localTimeOf(now_ms, time_zone)
    if (!isWithin(JSON.parse(hours), now))
      return { policy: textOf(policy, 'name'), local_time: `${localTimeText(now)} (${time_zone})` }
  }
  return null
}

function readProject(query: Query, project_id: string): Row {
  const project = one(
    query(
      `select p.id, p.name, p.status, p.currency, p.sandbox, p.open_risks, p.billing_account_id, o.time_zone,
        c.concurrency, c.cps, c.daily_spend_cap_minor, c.velocity_cap_minor, c.max_call_duration_seconds,
        c.max_destination_rate_minor, exists (select 1 from containment n where n.project_id = p.id) as has_containments
      from project p join organization o on o.id = p.organization_id left join project_ceiling c on c.project_id = p.id
      where p.id = ?`,
      project_id,
    ),
  )
  if (!project) throw new Error(`there is no project ${project_id}`)
  return project
}

const ACCOUNT = 'select id, name, prepaid, balance_minor, credit_minor, held_minor from billing_account where id = ?'

function readAccount(query: Query, project: Row): Row | null {
  const { tally } = query
  const account = one((tally?.read ?? query)(ACCOUNT, textOf(project, 'billing_account_id')))
  return account && tally ? tally.payer(account) : account
}

function readTrunks(
  query: Query,
  { service, project_id }: AdmissionRequest,
): { trunk: Row | null; subtrunk: Row | null } {
  if (service.type !== 'trunk' && service.type !== 'subtrunk') return { trunk: null, subtrunk: null }
  const subtrunk =
    service.type === 'subtrunk'
      ? (one(query('select * from subtrunk where id = ? and project_id = ?', service.id, project_id)) ??
        gone(service.id))
      : null
  const trunk_id = subtrunk ? textOrNull(subtrunk, 'trunk_id') : service.id
  const trunk =
    trunk_id === null
      ? null
      : one(
          query(
            `select t.id, t.name, t.status, t.subaccount_id, t.direction, t.require_tls, t.media_security, t.codecs,
              t.concurrency, t.cps, t.max_call_duration_seconds, t.revision, s.country, s.default_caller,
              exists (select 1 from subtrunk b where b.trunk_id = t.id) as shared
            from trunk t left join trunk_setting s on s.trunk_id = t.id
            where t.id = ? and t.project_id = ?`,
            trunk_id,
            project_id,
          ),
        )
  return { trunk: trunk ?? (trunk_id === null ? null : gone(trunk_id)), subtrunk }
}

function readSubaccount(query: Query, trunk: Row | null): Row | null {
  const id = trunk && textOrNull(trunk, 'subaccount_id')
  return id === null ? null : one(query('select * from subaccount where id = ?', id))
}

const SHARES = `select s.* from subtrunk s where s.trunk_id = ? and s.status <> 'released' and (
    exists (select 1 from delegation d where d.subtrunk_id = s.id and d.status <> 'detaching'
      and d."start" <= ? and d."end" >= ? and length(d."start") = length(?))
    or exists (select 1 from number n where n.e164 = ? and n.route_kind = 'subtrunk' and n.route_id = s.id)) limit 1`

/**
 * Finds the subtrunk that the trunk's own number is delegated or routed to. The own number is the called one of an
 * inbound request, otherwise the one that diverts the call, or else the caller's.
 */
function shareOf(query: Query, request: AdmissionRequest, trunk: Row): Row | null {
  const own = request.part === 'inbound' ? request.called : (request.diverting ?? request.caller)
  const country = textOrNull(trunk, 'country') ?? DEFAULT_COUNTRY
  const e164 = /^\+[0-9]+$/.test(own) ? own : parseNumber(own, country)?.e164
  return e164 === undefined ? null : one(query(SHARES, textOf(trunk, 'id'), e164, e164, e164, e164))
}

// Stands for a service deleted since the INVITE. Its status refuses new calls.
const gone = (id: string): Row => ({ id, name: id, status: 'released', codecs: '[]', direction: 'both', revision: 0 })

const POLICY = `p.id, p.name, p.revision, p.concurrency, p.cps, p.daily_spend_limit_minor, p.max_call_duration_seconds,
    p.max_destination_rate_minor, p.calling_hours, p.recording_mode, p.recording_retention_days`

/**
 * Returns the policies of an outbound call's service, the trunk's before its subtrunk's own. A service without an
 * attachment has the project's default. Other calls have none: the ceilings of a policy count outbound calls alone.
 */
function readPolicies(query: Query, request: AdmissionRequest, trunk: Row | null, subtrunk: Row | null): Row[] {
  if (request.part !== 'outbound') return []
  const { service, project_id } = request
  const parent_id = subtrunk && trunk ? textOf(trunk, 'id') : service.id
  const attached = query(ATTACHED, service.id, parent_id, project_id)
  const of = (type: ServiceType, id: string) =>
    attached.find(row => textOf(row, 'service_type') === type && textOf(row, 'service_id') === id)
  const own = of(service.type, service.id)
  const parent = subtrunk && trunk ? of('trunk', parent_id) : own
  const first = parent ?? one(query(DEFAULT_POLICY, project_id))
  const found = first ? [first] : []
  return own && own !== parent ? [...found, own] : found
}

const ATTACHED = `select ${POLICY}, a.service_type, a.service_id, a.outbound_enabled
  from policy_attachment a join outbound_policy p on p.id = a.policy_id
  where a.service_id in (?, ?) and p.status = 'active' and p.project_id = ?`
const DEFAULT_POLICY = `select ${POLICY} from outbound_policy p
  where p.project_id = ? and p.system_default = 1 and p.status = 'active'`

function readCalled(query: Query, { called, project_id }: AdmissionRequest, over: Over, country: string): CalledNumber {
  const code = normalizeNumber(called)?.replace(/^\+/, '')
  // The user part of a SIP URI may be the peer's extension. No public number is that short.
  if (over !== 'network' && (code === undefined || code.length <= 6)) return { given: called, country, number: null }
  // Every short code is shorter than the shortest E.164 number.
  if (code === undefined || code.length > 6) return parseCalled(called, country)
  const rows = query(
    `select code, sends_to from short_code where code = ? and (project_id = ? or project_id is null)
    order by (project_id is null) desc`,
    code,
    project_id,
  )
  return parseCalled(called, country, new Map(rows.map(row => [textOf(row, 'code'), textOf(row, 'sends_to')])))
}

interface ReadCallerResult {
  readonly caller: CallerFacts
  readonly egress_trunk_id: string | null
}

function readCaller(
  query: Query,
  request: AdmissionRequest,
  country: string,
  trunk: Row | null,
  subtrunk: Row | null,
): ReadCallerResult {
  const own_trunk_id = trunk ? textOf(trunk, 'id') : null
  const given = request.caller
  if (request.part === 'inbound') {
    const e164 = parseNumber(given, country)?.e164 ?? null
    return { caller: { given, e164, ownership: 'owned' }, egress_trunk_id: own_trunk_id }
  }
  // Our numbers are stored in E.164: one that is found as given needs no parsing.
  const exact = given.startsWith('+') ? one(readNumber(query, given)) : null
  const e164 = exact ? given : (parseNumber(given, country)?.e164 ?? null)
  const row = exact ?? (e164 !== null && e164 !== given ? one(readNumber(query, e164)) : null)
  const held = isHeld(row, request.project_id)
  const standing = held && row && trunk ? serviceStanding(query, row, trunk, subtrunk) : NO_NUMBERS
  const ownership: CallerOwnership = ownershipOf(e164, {
    of_project: held,
    forwarded: request.forwarded_caller === true,
    ...standing,
  })
  const stand_in = ownership === 'owned' || ownership === 'forwarded' ? null : defaultCaller(query, trunk, request)
  const caller: CallerFacts = stand_in ? { given, e164: stand_in, ownership: 'default' } : { given, e164, ownership }
  return { caller, egress_trunk_id: own_trunk_id ?? (held && row ? trunkOfNumber(query, row) : null) }
}

const readNumber = (query: Query, e164: string): Row[] =>
  query('select e164, project_id, status, route_kind, route_id from number where e164 = ?', e164)

const NO_NUMBERS = { of_service: false, service_has_numbers: false } as const

/**
 * The one rule of who may present a number: the project that holds it now, whatever was configured while another did
 * (a trunk's default caller, an application, a token, a running script).
 */
const isHeld = (number_row: Row | null, project_id: string): boolean =>
  number_row !== null && textOrNull(number_row, 'project_id') === project_id && textOf(number_row, 'status') === 'held'

function defaultCaller(query: Query, trunk: Row | null, { project_id }: AdmissionRequest): string | null {
  const e164 = trunk && textOrNull(trunk, 'default_caller')
  return e164 !== null && isHeld(one(readNumber(query, e164)), project_id) ? e164 : null
}

function serviceStanding(
  query: Query,
  row: Row,
  trunk: Row,
  subtrunk: Row | null,
): { of_service: boolean; service_has_numbers: boolean } {
  const e164 = textOf(row, 'e164')
  const route = textOrNull(row, 'route_id')
  if (subtrunk) {
    const id = textOf(subtrunk, 'id')
    if (route === id) return { of_service: true, service_has_numbers: true }
    const blocks = query(`select "start", "end" from delegation where subtrunk_id = ? and status <> 'detaching'`, id)
    const within = blocks.some(
      block =>
        e164.length === textOf(block, 'start').length && e164 >= textOf(block, 'start') && e164 <= textOf(block, 'end'),
    )
    // A subtrunk owns only the numbers that are delegated to it.
    return { of_service: within, service_has_numbers: true }
  }
  const id = textOf(trunk, 'id')
  if (route === id) return { of_service: true, service_has_numbers: true }
  const any = query("select 1 as one from number where route_kind = 'trunk' and route_id = ? limit 1", id)
  return { of_service: false, service_has_numbers: any.length > 0 }
}

/** Returns the trunk that a number is routed to, if that trunk takes calls. */
function trunkOfNumber(query: Query, row: Row): string | null {
  const route = textOrNull(row, 'route_id')
  if (route === null) return null
  const kind = textOrNull(row, 'route_kind')
  if (kind !== 'trunk' && kind !== 'subtrunk') return null
  const trunk = one(
    kind === 'trunk'
      ? query("select id from trunk where id = ? and status = 'enabled'", route)
      : query(
          "select t.id from subtrunk s join trunk t on t.id = s.trunk_id where s.id = ? and t.status = 'enabled'",
          route,
        ),
  )
  return trunk ? textOf(trunk, 'id') : null
}

function balanceOf(project: Row, account: Row | null): AdmissionFacts['balance'] {
  const available_minor = account ? availableOf(account) : null
  const name = account && available_minor !== null ? textOf(account, 'name') : textOf(project, 'billing_account_id')
  return { name, available_minor }
}

function holdersOf(project: Row, subaccount: Row | null, trunk: Row | null, subtrunk: Row | null): HolderFacts[] {
  const holder = (kind: HolderFacts['kind'], row: Row, enabled: string): HolderFacts => ({
    kind,
    id: textOf(row, 'id'),
    name: textOf(row, 'name'),
    status: textOf(row, 'status'),
    enabled: textOf(row, 'status') === enabled,
  })
  return [
    holder('project', project, 'active'),
    ...(subaccount ? [holder('subaccount', subaccount, 'enabled')] : []),
    ...(trunk ? [holder('trunk', trunk, 'enabled')] : []),
    ...(subtrunk ? [holder('subtrunk', subtrunk, 'enabled')] : []),
  ]
}

function trunkFacts(trunk: Row): TrunkFacts {
  const direction = textOf(trunk, 'direction')
  return {
    name: textOf(trunk, 'name'),
    direction: direction === 'inbound' || direction === 'outbound' ? direction : 'both',
    require_tls: numberOf(trunk, 'require_tls') === 1,
    media_security: textOf(trunk, 'media_security') === 'sdes_srtp_required' ? 'sdes_srtp_required' : 'rtp',
    codecs: JSON.parse(textOf(trunk, 'codecs')) as string[],
  }
}

export function revisionsOf(gathered: Gathered): Record<string, number> {
  const { trunk, subtrunk, subaccount, policies, price_book } = gathered
  // V8 stores an object without a prototype as a dictionary. Otherwise each trunk's ids would make a new hidden class.
  const revisions: Record<string, number> = Object.create(null)
  for (const row of [trunk, subtrunk, subaccount, ...policies, price_book])
    if (row) revisions[textOf(row, 'id')] = numberOf(row, 'revision')
  return revisions
}

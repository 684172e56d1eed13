import { alertEvaluation } from '../../../control/alerts/evaluate.ts'
import type { Route } from '../../../control/http/route.ts'
import { callExports } from '../../../control/reconcilers/call-exports.ts'
import { newId } from '../../../core/runtime/ids.ts'
import { insertMember } from '../../../core/state/people/organizations.ts'
import { saveSecurity } from '../../../core/state/people/second-factors.ts'
import { insertTestAlert, insertTestContainment } from '../../support/alerts.ts'
import { addCarrier } from '../../support/carriers.ts'
import { type Answer, type ControlPlane, freshKey } from '../../support/control-plane.ts'
import { operatorKey } from '../../support/operators.ts'

/** What one successful request to a route of /operator/v1 needs. */
interface OperatorMade {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
  /** Whose trail tells the write too; absent for writes of the installation alone. */
  readonly organization_id?: string
}

type Ask = (method: string, path: string, body?: object, etag?: string) => Promise<Answer>

/** What recipes make things with. */
export interface Kitchen {
  readonly w: ControlPlane
  readonly ask: Ask
}

type Recipe = (kitchen: Kitchen) => Promise<OperatorMade>

let made = 0
const unique = (): number => ++made

async function customer({ ask }: Kitchen) {
  const contact = { time_zone: 'UTC', contact_email: `c${unique()}@customers.example` }
  const { body } = await ask('POST', '/organizations', { name: `Customer ${made}`, ...contact })
  return { organization_id: body.organization.id as string, project_id: body.project.id as string }
}

/** A recipe on a new organization, or on its project. */
const onCustomer =
  (of: 'organization_id' | 'project_id', body?: object): Recipe =>
  async kitchen => {
    const ids = await customer(kitchen)
    return { params: { [of]: ids[of] }, organization_id: ids.organization_id, ...(body ? { body } : {}) }
  }

const onCarrier =
  (body?: object): Recipe =>
  async ({ ask }) => {
    const answer = await ask('POST', '/carriers', carrierBody())
    return { params: { carrier_id: answer.body.id }, ...(body ? { body } : {}) }
  }

const carrierBody = () => ({ name: `Carrier ${unique()}`, sources: [], targets: [], routes: [] })

async function stocked({ ask }: Kitchen): Promise<string> {
  const first = `+23420${String(30_000_000 + unique())}`
  await ask('POST', '/numbers', { first })
  const { body } = await ask('GET', `/numbers?prefix=${encodeURIComponent(first)}`)
  return body.data[0].id
}

async function trunkOf({ w }: Kitchen, sources: readonly string[] = []) {
  const { organization_id } = await w.state.db
    .selectFrom('project')
    .select('organization_id')
    .where('id', '=', w.demo.project_id)
    .executeTakeFirstOrThrow()
  const { body } = await w.ask('POST', '/v1/trunks', {
    headers: { 'Idempotency-Key': freshKey() },
    body: {
      ...{ name: `Trunk ${unique()}`, direction: 'both', auth_mode: 'ip_allow_list', sources, targets: [] },
      ...{ codecs: ['PCMA'], media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
    },
  })
  return { id: body.trunk.id as string, source_id: body.trunk.authentication.sources[0]?.id, organization_id }
}

const onSource: Recipe = async kitchen => {
  const { source_id, organization_id } = await trunkOf(kitchen, [`10.${unique() % 250}.0.0/16`])
  return { params: { source_id }, organization_id }
}

const onContainment =
  (body?: object): Recipe =>
  async kitchen => {
    const { organization_id } = await trunkOf(kitchen)
    const containment_id = await insertTestContainment(kitchen.w)
    return { params: { containment_id }, organization_id, ...(body ? { body } : {}) }
  }

const onNode: Recipe = async ({ w }) => {
  const at = new Date(w.clock.now()).toISOString()
  const id = `node_${unique()}`
  await w.state.db
    .insertInto('node')
    .values({ id, kind: 'signaling', pid: 1, started_at: at, heartbeat_at: at })
    .execute()
  return { params: { node_id: id } }
}

const reason = { reason: 'a test' }

async function onMember(kitchen: Kitchen): Promise<OperatorMade> {
  const { organization_id } = await customer(kitchen)
  const member = { id: newId.member(), organization_id, email: `m${unique()}@customers.example` }
  const person = { role: 'org:admin', password_hash: '', operator: 0, created_at: new Date().toISOString() } as const
  await kitchen.w.state.transaction(trx => insertMember(trx, { ...member, ...person }))
  return { params: { member_id: member.id }, organization_id, body: reason }
}
const CSV = 'prefix,label,rate,unit,initial,additional\n234,Nigeria,100,minute,60,60\n'

const numberList = (): string => `number\n+23420${40_000_000 + unique()}\n`

/** Recipes of routes that need more than their path. */
export const OPERATOR_RECIPES: Readonly<Record<string, Recipe>> = {
  'post /organizations': async kitchen => ({
    body: { name: `Customer ${unique()}`, time_zone: 'UTC', contact_email: `n${made}@customers.example` },
    organization_id: await anyOf(kitchen),
  }),
  'patch /organizations/{organization_id}': onCustomer('organization_id', { name: 'Renamed' }),
  'post /organizations/{organization_id}/suspend': onCustomer('organization_id', reason),
  'post /organizations/{organization_id}/resume': async kitchen => {
    const { organization_id } = await customer(kitchen)
    const { headers } = await kitchen.ask('GET', `/organizations/${organization_id}`)
    const path = `/organizations/${organization_id}/suspend`
    await kitchen.ask('POST', path, reason, headers.get('etag') ?? '')
    return { params: { organization_id }, organization_id, body: reason }
  },
  'post /organizations/{organization_id}/invitations': async kitchen => ({
    ...(await onCustomer('organization_id')(kitchen)),
    body: { email: `i${unique()}@customers.example` },
  }),
  'delete /organizations/{organization_id}/invitations/{invitation_id}': async kitchen => {
    const { organization_id } = await customer(kitchen)
    const { body } = await kitchen.ask('GET', `/organizations/${organization_id}/invitations`)
    return { params: { organization_id, invitation_id: body.data[0].id }, organization_id }
  },
  'post /members/{member_id}/lock': async kitchen => onMember(kitchen),
  'post /members/{member_id}/unlock': async kitchen => {
    const made = await onMember(kitchen)
    await kitchen.ask('POST', `/members/${made.params?.['member_id']}/lock`, reason)
    return made
  },
  'post /members/{member_id}/appoint-operator': async kitchen => onMember(kitchen),
  'post /members/{member_id}/dismiss-operator': async kitchen => {
    const made = await onMember(kitchen)
    await kitchen.ask('POST', `/members/${made.params?.['member_id']}/appoint-operator`, reason)
    return made
  },
  'post /members/{member_id}/reset-second-factor': async kitchen => {
    const made = await onMember(kitchen)
    await saveSecurity(kitchen.w.state.db, made.params?.['member_id'] ?? '', { totp_enabled: 1, totp_sealed: 'x' })
    return made
  },
  'post /password-resets': async kitchen => {
    const { params, organization_id = '' } = await onMember(kitchen)
    return { body: { member_id: params?.['member_id'], ...reason }, organization_id }
  },
  'post /projects': async kitchen => {
    const { organization_id } = await customer(kitchen)
    return { body: { organization_id, name: 'Second' }, organization_id }
  },
  // Of all projects, the first ones are others in each world: lists are in the order of ids.
  'get /projects': async kitchen => {
    const { organization_id } = await customer(kitchen)
    return { query: { organization_id } }
  },
  'patch /projects/{project_id}': onCustomer('project_id', { name: 'Renamed' }),
  'patch /projects/{project_id}/voice-account': onCustomer('project_id', { call_event_history: 'disabled' }),
  'put /projects/{project_id}/ceilings': onCustomer('project_id', {
    ...{ concurrency: 3, cps: 1, daily_spend_cap_minor: null, velocity_cap_minor: null },
    ...{ max_call_duration_seconds: null, max_destination_rate_minor: null },
  }),
  'post /projects/{project_id}/disable': onCustomer('project_id', reason),
  'post /projects/{project_id}/enable': async kitchen => {
    const { organization_id, project_id } = await customer(kitchen)
    const { headers } = await kitchen.ask('GET', `/projects/${project_id}`)
    await kitchen.ask('POST', `/projects/${project_id}/disable`, reason, headers.get('etag') ?? '')
    return { params: { project_id }, organization_id, body: reason }
  },
  'post /projects/{project_id}/go-live': async kitchen => {
    const { w, ask } = kitchen
    const { organization_id, project_id } = await customer(kitchen)
    const target = { sip_uri: 'sip:203.0.113.9', transport: 'udp', priority: 1, weight: 1 } as const
    const tls = { tls_verification: 'required', tls_fingerprint: null } as const
    const routes = [{ prefix: '', priority: 10, cost_minor: 5 }]
    const carrier = { ...carrierBody(), codecs: ['PCMA'], targets: [{ ...target, ...tls }], routes }
    await addCarrier(w.state, carrier, new Date().toISOString())
    await ask('POST', '/price-books/imports', { name: `Book ${unique()}`, csv: CSV, confirm_leaps: true })
    const number = await stocked(kitchen)
    const { headers } = await ask('GET', `/numbers/${number}`)
    await ask('POST', `/numbers/${number}/assign`, { project_id }, headers.get('etag') ?? '')
    await ask('POST', `/projects/${project_id}/top-ups`, { amount_minor: 1000, reason: 'paid' })
    return { params: { project_id }, organization_id, body: reason }
  },
  'post /projects/{project_id}/top-ups': onCustomer('project_id', { amount_minor: 100, ...reason }),
  'post /projects/{project_id}/corrections': onCustomer('project_id', { amount_minor: -100, ...reason }),
  'post /numbers': async () => ({ body: { first: `+23420${40_000_000 + unique()}` } }),
  'get /numbers/{number_id}': async kitchen => ({ params: { number_id: await stocked(kitchen) } }),
  'post /numbers/{number_id}/assign': async kitchen => {
    const { organization_id, project_id } = await customer(kitchen)
    return { params: { number_id: await stocked(kitchen) }, organization_id, body: { project_id } }
  },
  'post /numbers/{number_id}/take-back': async kitchen => {
    const { organization_id, project_id } = await customer(kitchen)
    const number_id = await stocked(kitchen)
    const { headers } = await kitchen.ask('GET', `/numbers/${number_id}`)
    await kitchen.ask('POST', `/numbers/${number_id}/assign`, { project_id }, headers.get('etag') ?? '')
    return { params: { number_id }, organization_id, body: reason }
  },
  'post /carriers': async () => ({ body: carrierBody() }),
  'post /carriers/apply': async () => ({ body: { carriers: [carrierBody()] } }),
  'patch /carriers/{carrier_id}': onCarrier({ codecs: ['PCMU'] }),
  'post /carriers/{carrier_id}/drain': onCarrier(reason),
  'post /carriers/{carrier_id}/resume': async kitchen => {
    const { params } = await onCarrier()(kitchen)
    const at = `/carriers/${params?.['carrier_id']}`
    const { headers } = await kitchen.ask('GET', at)
    await kitchen.ask('POST', `${at}/drain`, {}, headers.get('etag') ?? '')
    return { params: params ?? {}, body: reason }
  },
  'get /carriers/{carrier_id}/metrics': async kitchen => ({
    ...(await onCarrier()(kitchen)),
    query: { from: '2026-11-01', to: '2026-11-30' },
  }),
  'get /carriers/{carrier_id}/tests/{run_id}': async kitchen => {
    const { params } = await onCarrier()(kitchen)
    const { body } = await kitchen.ask('POST', `/carriers/${params?.['carrier_id']}/test`)
    return { params: { ...params, run_id: body.id } }
  },
  'put /carriers/{carrier_id}/credentials': onCarrier({ username: 'we', password: 'secret words' }),
  'put /carriers/{carrier_id}/registration': onCarrier({
    registrar: 'sip:registrar.example.com',
    username: 'we',
    password: 'secret words',
  }),
  'post /number-imports': async () => ({ body: { name: `Numbers ${unique()}`, csv: numberList() } }),
  'post /number-offers': async kitchen => {
    const id = await stocked(kitchen)
    const { body } = await kitchen.ask('GET', `/numbers/${id}`)
    const { organization_id, project_id: offered_project_id } = await customer(kitchen)
    return { body: { first: body.e164, offered_to: 'project', offered_project_id }, organization_id }
  },
  'post /cost-books/diff': async kitchen => ({
    body: { csv: CSV, carrier_id: (await onCarrier()(kitchen)).params?.['carrier_id'] },
  }),
  'post /cost-books/imports': async kitchen => ({
    body: { name: `Book ${unique()}`, csv: CSV, carrier_id: (await onCarrier()(kitchen)).params?.['carrier_id'] },
  }),
  'post /price-books/diff': async () => ({ body: { csv: CSV } }),
  'post /price-books/imports': async () => ({ body: { name: `Book ${unique()}`, csv: CSV, confirm_leaps: true } }),
  'post /alerts/{alert_id}/acknowledge': async kitchen => {
    const { organization_id } = await trunkOf(kitchen)
    return { params: { alert_id: await insertTestAlert(kitchen.w) }, organization_id }
  },
  'post /containments': async kitchen => {
    const { organization_id, id } = await trunkOf(kitchen)
    const of = { reason_category: 'destination_risk', reason_detail: 'a test', expires_in_seconds: 3600 }
    return { body: { prefix: `+8835${unique()}`, trunk_id: id, ...of }, organization_id }
  },
  'post /containments/{containment_id}/release': onContainment(reason),
  'post /release-requests/{request_id}/decide': async kitchen => {
    const { params, organization_id = '' } = await onContainment()(kitchen)
    const path = `/v1/containments/${params?.['containment_id']}/release-requests`
    const headers = { 'Idempotency-Key': freshKey() }
    const { body } = await kitchen.w.ask('POST', path, { body: { note: 'It was us.' }, headers })
    return { params: { request_id: body.id }, organization_id, body: { decision: 'approved' } }
  },
  'post /source-approvals/{source_id}/approve': onSource,
  'post /source-approvals/{source_id}/refuse': onSource,
  'get /trunks/{trunk_id}/number-format': async kitchen => ({ params: { trunk_id: (await trunkOf(kitchen)).id } }),
  'patch /trunks/{trunk_id}/number-format': async kitchen => {
    const { id, organization_id } = await trunkOf(kitchen)
    return { params: { trunk_id: id }, organization_id, body: { country: 'GB' } }
  },
  'put /short-codes': async () => ({ body: { code: String(1000 + unique()), sends_to: '+2342010000112' } }),
  'get /margins': async () => ({ query: { from: '2026-11-01', to: '2026-11-30' } }),
  'get /slots': async ({ w }) => ({ query: { level: 'project', id: w.demo.project_id } }),
  'post /nodes/{node_id}/drain': onNode,
  'post /nodes/{node_id}/take-calls': onNode,
  'get /audit/{event_id}': async ({ ask }) => {
    await ask('POST', '/carriers', carrierBody())
    return { params: { event_id: (await ask('GET', '/audit?limit=1')).body.data[0].id } }
  },
  'post /exports': async ({ w }) => {
    await withoutExports(w)
    return { body: { format: 'jsonl' } }
  },
  'post /keys': async () => ({ body: { name: `Key ${unique()}`, scopes: ['operator:read'] } }),
  'delete /keys/{key_id}': async ({ ask }) => {
    const { body } = await ask('POST', '/keys', { name: `Key ${unique()}`, scopes: ['operator:read'] })
    return { params: { key_id: body.key.id } }
  },
}

/** Deletes earlier exports: operators have only a few at a time. */
const withoutExports = ({ state }: ControlPlane) =>
  state.db.deleteFrom('call_export').where('project_id', 'is', null).execute()

/** A completed export with its file. */
const onExport: Recipe = async ({ w, ask }) => {
  await withoutExports(w)
  const { body } = await ask('POST', '/exports', { format: 'csv' })
  const writing = callExports({ niceness: 0 })
  await writing.run(w)
  await writing.stop?.()
  return { params: { export_id: body.id } }
}

/** A new organization's trail is told of its creation: its id is known only afterwards. */
const anyOf = async (kitchen: Kitchen): Promise<string> => (await customer(kitchen)).organization_id

/** Recipes by the last parameter of a path. */
const THINGS: Readonly<Record<string, Recipe>> = {
  organization_id: onCustomer('organization_id'),
  project_id: onCustomer('project_id'),
  carrier_id: onCarrier(),
  containment_id: onContainment(),
  import_id: async ({ ask }) => {
    const { body } = await ask('POST', '/number-imports', { name: `Numbers ${unique()}`, csv: numberList() })
    return { params: { import_id: body.id } }
  },
  export_id: onExport,
  cost_book_id: async kitchen => {
    const { carrier_id } = (await onCarrier()(kitchen)).params ?? {}
    const { body } = await kitchen.ask('POST', '/cost-books/imports', { name: `B ${unique()}`, csv: CSV, carrier_id })
    return { params: { cost_book_id: body.id } }
  },
  price_book_id: async ({ ask }) => {
    const { body } = await ask('POST', '/price-books/imports', { name: `B ${unique()}`, csv: CSV, confirm_leaps: true })
    return { params: { price_book_id: body.id } }
  },
}

/** The path by which a resource's revision is read, by the name of its loader. */
const READ_AT: Readonly<Record<string, string>> = {
  organization: '/organizations/{organization_id}',
  customer: '/projects/{project_id}',
  number: '/numbers/{number_id}',
  carrier: '/carriers/{carrier_id}',
  account: '/projects/{project_id}/voice-account',
  trunk: '/trunks/{trunk_id}/number-format',
}

/** The path with the values of its parameters. */
export const filled = (path: string, params: Readonly<Record<string, string>> = {}): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? name))

/** Reads the ETag that a route asks for; undefined when it asks for none. */
export async function operatorEtag({ ask }: Kitchen, route: Route, made: OperatorMade): Promise<string | undefined> {
  const loader = route.if_match === undefined ? undefined : READ_AT[route.if_match]
  if (loader === undefined) return undefined
  return (await ask('GET', filled(loader, made.params))).headers.get('etag') ?? undefined
}

/** A kitchen on a new control plane. */
export async function kitchenOf(w: ControlPlane, name: string): Promise<Kitchen> {
  await alertEvaluation.run(w)
  const key = await operatorKey(w, { name })
  return {
    w,
    ask: (method, path, body, etag) =>
      w.ask(method, `/operator/v1${path}`, {
        key,
        ...(body ? { body } : {}),
        headers: { 'Idempotency-Key': freshKey(), ...(etag === undefined ? {} : { 'If-Match': etag }) },
      }),
  }
}

export const operatorNameOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string => `${method} ${path}`

export function operatorRecipeOf(route: Route): Recipe {
  const own = OPERATOR_RECIPES[operatorNameOf(route)]
  if (own) return own
  const last = [...route.path.matchAll(/\{(\w+)\}/g)].at(-1)?.[1]
  if (last === undefined) return async () => ({})
  const thing = THINGS[last]
  if (!thing) throw new Error(`there is no recipe for ${operatorNameOf(route)}`)
  return thing
}

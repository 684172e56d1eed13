import type { Route } from '../../control/http/route.ts'
import { CONSOLE_ROUTES } from '../../control/session/index.ts'
import { V1_ROUTES } from '../../control/v1/index.ts'
import { VOICE_ROUTES } from '../../control/voice/index.ts'
import { TERMS_VERSION } from '../../core/state/calls/recording-consent.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import { type Made, nameOf, recipeOf } from '../conformance/control/recipes.ts'
import { type Answer, type ControlPlane, controlPlane, freshKey } from '../support/control-plane.ts'
import t from '../support/harness/index.ts'
import { operatorKey } from '../support/operators.ts'
import { addAdmin, addTenant, asTenant } from '../support/tenants.ts'

/**
 * Tests tenant isolation on every endpoint of three registries. One tenant, the thief, sends requests with its own
 * valid key and puts the other tenant's ids wherever an id can stand: path, query, body. The recipe of a new endpoint
 * (test/conformance/control/recipes.ts) covers it here too.
 */

const OWN_NUMBER = '+2342019999901'
const boundless = { burst: 1_000_000, per_second: 1_000_000 }
const plane = await controlPlane(t, { rate_limit: boundless, bad_credentials: boundless })
const victim = asTenant(plane, { ...plane.demo, api_key: plane.key })
const thief = asTenant(plane, await addTenant(plane.state, plane.settings.master_key, [OWN_NUMBER]))

/** Tables that change without a write by the thief: background workers write them, and keys record their last use. */
const MOVING: ReadonlySet<string> = new Set(['api_key', 'webhook_delivery', 'outbox', 'retention_job'])
/** What each recipe made for the victim, by the name of its place: `trunk_id`, `block_id`, … */
const stolen = new Map<string, Set<string>>()
const made = new Map<Route, Made>()
for (const route of V1_ROUTES) {
  const one = await recipeOf(route)(victim)
  made.set(route, one)
  for (const [name, value] of Object.entries({ ...one.params, ...one.body })) keep(name, value)
}
// A release request exists only after the victim sends one.
for (const [route, one] of made) if (/release-requests$/.test(route.path)) await send(route, one, victim)
for (const e164 of victim.demo.numbers) keep('e164', e164)
await plane.state.db.updateTable('voice_account').set({ voice_api: 'extended' }).execute()
const rows = await rowsOf(victim)

/** Successful answers to the thief. The test that searches them for the victim's words runs after all requests. */
const heard: [what: string, text: string][] = []

/** Ids that only the victim has. An answer that contains one leaks the victim's data. */
const SECRETS = [
  victim.demo.project_id,
  victim.demo.account_sid,
  ...[...stolen.values()].flatMap(set => [...set]),
].filter(word => /^([a-z]{3}_[0-9a-f-]{36}|[A-Z]{2}[0-9a-f]{32})$/.test(word) && !isShared(word))

t.test('the victim has ids and rows to steal', async t => {
  t.ok(SECRETS.length > 50, `${SECRETS.length} ids`)
  t.ok(rows.size > 15, `rows of ${rows.size} tables`)
})

for (const route of V1_ROUTES)
  t.test(`${nameOf(route)}: the thief neither sees nor changes the victim's data`, async t => {
    const theirs = made.get(route)
    if (!theirs) throw new Error('no recipe ran for the route')
    const own = await recipeOf(route)(thief)
    const looks: [what: string, answer: Answer][] = []
    const ask = async (what: string, one: Made) => looks.push([what, await send(route, one)])
    for (const [name, value] of Object.entries(theirs.params ?? {})) {
      const params = { ...own.params, [name]: value }
      await ask(`${name} of the victim`, { ...own, params })
      if (SECRETS.includes(value))
        t.ok((looks.at(-1)?.[1].status ?? 0) >= 400, `${name} of the victim in the path is refused`)
    }
    for (const [name, value] of idsFor(Object.keys(route.query?.properties ?? {})))
      await ask(`?${name}`, {
        ...own,
        query: `${own.query ? `${own.query}&` : ''}${name}=${encodeURIComponent(value)}`,
      })
    for (const [name, value] of idsFor(Object.keys(route.body?.properties ?? {}))) {
      const is_list = Array.isArray(own.body?.[name]) || /s$/.test(name)
      await ask(`body ${name}`, { ...own, body: { ...own.body, [name]: is_list ? [value] : value } })
      const [, answer] = looks.at(-1) ?? []
      // A route that writes nothing may answer, provided that its answer leaks nothing.
      if (route.audit)
        t.ok((answer?.status ?? 0) >= 400, `${name}: ${value} of the victim in the body is refused: ${answer?.text}`)
    }
    await ask('its own', own)
    for (const [what, answer] of looks) {
      t.ok(answer.status < 500, `${what}: ${answer.status} ${answer.status < 500 ? '' : answer.text}`)
      if (answer.status >= 300) continue
      const told = SECRETS.filter(word => answer.text.includes(word))
      t.same(told, [], `${what}: the answer leaks no id of the victim`)
      heard.push([`${nameOf(route)}, ${what}`, answer.text])
    }
  })

t.test('every endpoint of the voice-calls API refuses the victim’s resources with 401, 403 or 404', async t => {
  const placed = await place(thief)
  t.equal(placed.status, 201, placed.text)
  const own = await idsOfKind(thief, 'call')
  for (const route of VOICE_ROUTES) {
    const [, param] = /\{(\w+)\}/.exec(route.path) ?? []
    const { example = {} } = route
    const filled = Object.entries(example).map(([name, value]) => [name, value.replace(/^\$.*/, OWN_NUMBER)])
    const form = route.method === 'POST' ? (Object.fromEntries(filled) as Record<string, string>) : undefined
    const ask = (account: string, id: string) => {
      const deeper = route.path.replace(/\{\w+\}/, id)
      const path = deeper.replace(/\{\w+\}/, first('call_id'))
      return thief.voice(route.method, `/2010-04-01/Accounts/${account}${path}${route.suffix}`, form)
    }
    const ids = param ? await idsOfKind(victim, TABLES[param] ?? param.replace(/_sid$/, '')) : []
    t.equal(ids.length > 0, param !== undefined, `the victim has what ${route.path} names`)
    for (const id of ids)
      for (const account of [thief.demo.account_sid, victim.demo.account_sid]) {
        const { status, text } = await ask(account, id)
        t.ok([401, 403, 404].includes(status), `${route.method} ${route.path} of ${account}, ${id}: ${status} ${text}`)
      }
    if (route.method !== 'GET') continue
    const { status, text } = await ask(thief.demo.account_sid, own[0] ?? '')
    if (status === 200) heard.push([`${route.method} ${route.path}`, text])
    if (!param) t.equal(status, 200, route.path)
  }
  for (const name of ['ApplicationSid', 'From']) {
    const form = { To: '+2348030000001', From: thief.demo.numbers[0] ?? '', Url: 'https://app.example.com/' }
    const value = name === 'From' ? (victim.demo.numbers[0] ?? '') : first('application_id')
    const { status, text } = await thief.voice('POST', '/Calls.json', { ...form, [name]: value })
    t.ok(status >= 400 && status < 500, `a call with the victim's ${name}: ${status} ${text}`)
  }
})

t.test('every console endpoint refuses the victim’s resources to a member of another organization', async t => {
  const headers = await signedIn()
  for (const route of CONSOLE_ROUTES) {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
    if (names.length === 0 && route.method !== 'get') continue
    let path: string = route.path
    for (const name of names) {
      const [id] = await idsOfKind(victim, TABLES[name] ?? name.replace(/_id$/, ''))
      t.ok(id, `the victim has what {${name}} names`)
      path = path.replace(`{${name}}`, id ?? '')
    }
    const body = route.body ? { body: smallest(route.body) } : {}
    const more = { 'Idempotency-Key': freshKey(), 'If-Match': '"1"' }
    const method = route.method.toUpperCase()
    const { status, text } = await plane.ask(method, `/console/api${path}`, {
      ...{ key: null, ...body },
      headers: { ...headers, ...more },
    })
    if (names.length > 0) t.ok([403, 404].includes(status), `${nameOf(route)}: ${status} ${text}`)
    else t.ok(status < 500, `${nameOf(route)}: ${status} ${text}`)
    if (status < 300) heard.push([`${nameOf(route)} of the console`, text])
  }
})

t.test('no answer contains an id, name, number, address or text of the victim’s rows', async t => {
  const words = await wordsOf(victim)
  t.ok(words.size > 300, `${words.size} words`)
  for (const word of [...victim.demo.numbers, first('call_id'), first('recording_id')]) t.ok(words.has(word), word)
  t.ok(heard.length > V1_ROUTES.length / 2, `${heard.length} answers`)
  for (const [what, text] of heard)
    t.same(
      [...partsOf(text)].filter(part => words.has(part)),
      [],
      what,
    )
})

t.test('all requests leave every row of the victim unchanged, and no row has two owners', async t => {
  t.same(await rowsOf(victim), rows)
  t.same(await brokenInvariants(plane.state.db), [])
})

t.test('a suspended customer changes nothing by any endpoint, with a key, the account or a session', async t => {
  const { db } = plane.state
  const { organization_id } = await db
    .selectFrom('project')
    .select('organization_id')
    .where('id', '=', thief.demo.project_id)
    .executeTakeFirstOrThrow()
  const wishes = new Map<Route, Made>()
  for (const route of V1_ROUTES) if (route.method !== 'get') wishes.set(route, await recipeOf(route)(thief))
  const { body: live } = await place(thief)
  const session = await signedIn()
  const key = await operatorKey(plane)
  const at = `/operator/v1/organizations/${organization_id}`
  const { headers } = await plane.ask('GET', at, { key })
  const marks = { 'Idempotency-Key': freshKey(), 'If-Match': headers.get('etag') ?? '' }
  const suspended = await plane.ask('POST', `${at}/suspend`, { key, body: { reason: 'fraud' }, headers: marks })
  t.equal(suspended.status, 200, suspended.text)

  const before = await rowsOf(thief)
  const refuses = (what: string, { status, text }: Answer): void => {
    t.ok(status >= 400 && status < 500, `${what}: ${status} ${text.slice(0, 200)}`)
  }
  for (const [route, made] of wishes) {
    // It stores nothing.
    if (!route.audit) continue
    const { status, body } = await send(route, made)
    const of_project = { code: 'project_disabled', caused_by: 'organization_suspended' }
    const refusal = (route.context ?? 'project') === 'project' ? of_project : { code: 'organization_suspended' }
    t.match([status, body], [409, refusal], nameOf(route))
  }
  for (const route of VOICE_ROUTES) {
    if (route.method === 'GET') continue
    const { example = {} } = route
    const filled = Object.entries(example).map(([name, value]) => [name, value.replace(/^\$.*/, OWN_NUMBER)])
    const path = route.path.replace(/\{\w+\}/g, live.sid)
    const form = route.method === 'POST' ? (Object.fromEntries(filled) as Record<string, string>) : undefined
    refuses(`${route.method} ${route.path}`, await thief.voice(route.method, `${path}${route.suffix}`, form))
  }
  for (const route of CONSOLE_ROUTES) {
    if (route.method === 'get' || route.anonymous || route.while_suspended) continue
    const body = route.body ? { body: smallest(route.body) } : {}
    const headers = { ...session, 'Idempotency-Key': freshKey(), 'If-Match': '"1"' }
    const path = `/console/api${route.path.replace(/\{\w+\}/g, 'nothing')}`
    refuses(nameOf(route), await plane.ask(route.method.toUpperCase(), path, { key: null, ...body, headers }))
  }
  t.same(await rowsOf(thief), before)
})

function keep(name: string, value: unknown): void {
  const values = [value].flat().filter(one => typeof one === 'string')
  if (values.length > 0) stolen.set(name, new Set([...(stolen.get(name) ?? []), ...values]))
}

function first(name: string): string {
  return [...(stolen.get(name) ?? [])][0] ?? 'nothing'
}

/** Reports whether an id belongs to a catalogue that every tenant can read. */
function isShared(word: string): boolean {
  return /^(car|rat|pbk)_/.test(word)
}

/** Returns the victim's value for each field that takes an id or a number. A bare `id` or `ids` gets a trunk's id. */
function idsFor(names: readonly string[]): [name: string, value: string][] {
  return names.flatMap(name => {
    const singular = name.replace(/s$/, '')
    const known = [name, singular, `${singular}_id`]
      .flatMap(key => [...(stolen.get(key) ?? [])])
      .filter(value => SECRETS.includes(value))
    if (/(^|_)ids?$/.test(name)) {
      const [value = first('trunk_id')] = known
      return [[name, name === 'number_block_ids' ? first('block_id') : value] as [string, string]]
    }
    return /^(numbers|start|end)$/.test(name) ? [[name, victim.demo.numbers[0] ?? ''] as [string, string]] : []
  })
}

async function send(route: Route, one: Made, w = thief): Promise<Answer> {
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(one.params?.[name] ?? name))
  return w.ask(route.method.toUpperCase(), `/v1${path}${one.query ? `?${one.query}` : ''}`, {
    ...(one.body === undefined ? {} : { body: one.body }),
    headers: {
      ...(route.if_match !== undefined ? { 'If-Match': one.etag ?? '"1"' } : {}),
      ...(route.method === 'get' ? {} : { 'Idempotency-Key': freshKey() }),
    },
  })
}

/** Maps a path parameter to its table where the names differ. */
const TABLES: Readonly<Record<string, string>> = {
  key_id: 'api_key',
  endpoint_id: 'webhook_endpoint',
  queue_sid: 'call_queue',
  number_sid: 'number',
  application_sid: 'voice_application',
  request_id: 'containment_release_request',
}

/** Signs in an admin of the thief's organization, made at the first call. Returns the session's headers. */
async function signedIn(): Promise<Record<string, string>> {
  const [email, password] = ['thief@rival.test', 'correct horse battery']
  const known = await plane.state.db.selectFrom('member').select('id').where('email', '=', email).executeTakeFirst()
  if (!known) await addAdmin(plane.state, thief.demo.project_id, email, password)
  const answer = await plane.ask('POST', '/console/api/session', { key: null, body: { email, password } })
  const cookie = (answer.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? ''
  return { Cookie: cookie, 'X-CSRF-Token': answer.body.csrf_token }
}

/** Returns a minimal value that a schema accepts. */
function smallest(schema: Schema): unknown {
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf?.[0]) return smallest(schema.anyOf[0])
  if (schema.type === 'string') return schema.pattern?.includes('@') ? 'a@b.test' : 'a'.repeat(schema.minLength ?? 8)
  if (schema.type === 'boolean') return false
  if (schema.type === 'array') return []
  if (schema.type !== 'object') return schema.minimum ?? 1
  return Object.fromEntries((schema.required ?? []).map(name => [name, smallest(schema.properties?.[name] ?? {})]))
}

interface Schema {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly pattern?: string
  readonly minLength?: number
  readonly minimum?: number
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
}

const place = (w: ControlPlane): Promise<Answer> =>
  w.voice('POST', '/Calls.json', {
    ...{ To: '+2348030000001', From: w.demo.numbers[0] ?? '' },
    Url: 'https://app.example.com/',
  })

/** Returns the ids of the tenant's rows in a table. */
async function idsOfKind(w: ControlPlane, kind: string): Promise<string[]> {
  const { own } = await rowsByOwner(w)
  const ids = own.flatMap(({ table, row }) => (table === kind ? [row['sid'] ?? row['id']] : []))
  return ids.filter(id => typeof id === 'string')
}

type Row = Readonly<Record<string, unknown>>
interface OwnedRow {
  readonly table: string
  readonly row: Row
}

/** Splits all rows of the database into the tenant's, including rows that refer to them, and all others. */
async function rowsByOwner({ state, demo }: ControlPlane): Promise<{ own: OwnedRow[]; others: OwnedRow[] }> {
  const tables = await state.db.introspection.getTables()
  let others: OwnedRow[] = []
  for (const { name } of tables)
    for (const row of await state.db
      .selectFrom(name as 'call')
      .selectAll()
      .execute())
      others.push({ table: name, row: row as unknown as Row })
  const own: OwnedRow[] = []
  const project = others.find(({ table, row }) => table === 'project' && row['id'] === demo.project_id)
  const ids = new Set<unknown>([demo.project_id, project?.row['organization_id']])
  for (let more = true; more; ) {
    const [found, rest] = [[] as OwnedRow[], [] as OwnedRow[]]
    for (const one of others) {
      const { project_id } = one.row
      const is_own =
        project_id === undefined ? Object.values(one.row).some(value => ids.has(value)) : ids.has(project_id)
      if (is_own) found.push(one)
      else rest.push(one)
    }
    for (const { row } of found) for (const key of [row['id'], row['sid']]) if (typeof key === 'string') ids.add(key)
    own.push(...found)
    others = rest
    more = found.length > 0
  }
  return { own, others }
}

/** Returns the texts that occur only in the tenant's rows. */
async function wordsOf(w: ControlPlane): Promise<Set<string>> {
  const { own, others } = await rowsByOwner(w)
  const texts = (rows: readonly OwnedRow[]) =>
    rows.flatMap(({ row }) => Object.values(row).filter(value => typeof value === 'string'))
  // Every tenant agrees to the same terms.
  const shared = new Set([...texts(others), TERMS_VERSION])
  return new Set(texts(own).filter(text => text.length > 5 && !/^\d{4}-\d\d-\d\d/.test(text) && !shared.has(text)))
}

/** Returns the texts of an answer, and the ids and numbers in them. */
function partsOf(text: string): Set<string> {
  const parts = new Set(text.match(/[a-z]{3}_[0-9a-f-]{36}|[A-Z]{2}[0-9a-f]{32}|\+\d{7,15}/g) ?? [])
  const walk = (value: unknown): void => {
    if (typeof value === 'string') parts.add(value)
    else if (value !== null && typeof value === 'object') Object.values(value).forEach(walk)
  }
  if (text.startsWith('{') || text.startsWith('[')) walk(JSON.parse(text))
  return parts
}

/** Returns the rows that name the tenant's project, as JSON by table. */
async function rowsOf({ state, demo }: ControlPlane): Promise<Map<string, string>> {
  const tables = await state.db.introspection.getTables()
  const owned = tables.filter(({ columns }) => columns.some(({ name }) => name === 'project_id'))
  const found = new Map<string, string>()
  for (const { name } of owned) {
    if (MOVING.has(name)) continue
    const all = await state.db
      .selectFrom(name as 'call')
      .selectAll()
      .where('project_id', '=', demo.project_id)
      .execute()
    if (all.length > 0) found.set(name, JSON.stringify(all))
  }
  return found
}

import { ROLE_SCOPES, roleAllows, SCOPES } from '../../../control/http/access.ts'
import type { Route } from '../../../control/http/route.ts'
import type { TSchema } from '../../../control/http/schema.ts'
import { fieldErrors } from '../../../control/http/validate.ts'
import { V1_ROUTES } from '../../../control/v1/index.ts'
import { newId } from '../../../core/runtime/ids.ts'
import type { Role } from '../../../core/state/index.ts'
import { type Answer, type ControlPlane, controlPlane, freshKey, type Request } from '../../support/control-plane.ts'
import t, { type Test as Tap } from '../../support/harness/index.ts'
import { signIn } from '../../support/signed-in.ts'
import { type Made, nameOf, RECIPES, recipeOf } from './recipes.ts'

/** Tests the guarantees that all routes of /v1 give, in a loop over the registry. */

const boundless = { burst: 1_000_000, per_second: 1_000_000 }
const w = await controlPlane(t, { rate_limit: boundless, bad_credentials: boundless })
const past = new Date(Date.now() - 60_000).toISOString()
const bad_keys = {
  none: null,
  malformed: 'sk_live_x',
  'a voice auth token': w.demo.auth_token,
  revoked: await w.newKey({ revoked_at: past }),
  expired: await w.newKey({ expires_at: past }),
  'rotated out': await w.newKey({ retires_at: past }),
}
const foreign = await foreignKey(w)
const me = await signIn(w)
const confined = await w.newKey({ subaccount_id: 'sub_of_somebody_else' })
let checks = 0

t.test('every recipe belongs to a route', async t => {
  const named = new Set(V1_ROUTES.map(nameOf))
  t.same(
    Object.keys(RECIPES).filter(name => !named.has(name)),
    [],
  )
})

for (const route of V1_ROUTES)
  t.test(`${route.method.toUpperCase()} ${route.path}`, async t => {
    const recipe = recipeOf(route)
    const good = await recipe(w)
    /** Sends a valid request, modified by `change`. */
    const ask = (made: Made, change: Request & { readonly method?: string } = {}): Promise<Answer> =>
      w.ask(change.method ?? route.method.toUpperCase(), pathOf(route, made), {
        ...(made.body === undefined ? {} : { body: made.body }),
        ...change,
        headers: { ...headersOf(route, made), ...change.headers },
      })
    const refused = async (answer: Promise<Answer>, status: number, code: string, what: string): Promise<Answer> => {
      const got = await answer
      checks += 1
      t.equal(got.status, status, `${what}: ${status}, ${got.text.slice(0, 300)}`)
      t.equal(got.body?.code, code, `${what}: ${code}`)
      t.equal(got.headers.get('content-type'), 'application/problem+json', what)
      t.match(got.body?.request_id, /^req_[0-9a-f]{32}$/, what)
      return got
    }

    for (const [name, key] of Object.entries(bad_keys))
      await refused(ask(good, { key }), 401, 'unauthenticated', `${name} key`)
    if (route.scope !== null) {
      const others = SCOPES.filter(scope => scope !== route.scope && scope !== route.or_scope)
      const key = await w.newKey({ scopes: JSON.stringify(others) })
      await refused(ask(good, { key }), 403, 'scope_required', 'a key without the scope')
    }
    for (const role of Object.keys(ROLE_SCOPES) as Role[])
      if (route.scope !== null && ![route.scope, route.or_scope ?? route.scope].some(one => roleAllows(role, one))) {
        const key = await w.newKey({ role })
        await refused(ask(good, { key }), 403, 'role_forbidden', `a key of role ${role}`)
      }
    await restricted(t, route, good, ask)
    if (loads(route)) await refused(ask(good, { key: foreign }), 404, 'not_found', "another tenant's key")
    if (loads(route)) {
      const params = Object.fromEntries(Object.keys(good.params ?? {}).map(name => [name, 'nothing']))
      await refused(ask({ ...good, params }), 404, 'not_found', 'unknown ids')
    }
    await refused(ask(good, { method: unserved(route) }), 405, 'method_not_allowed', 'method')
    if ((route.context ?? 'project') === 'project') {
      await refused(ask(good, { headers: { 'X-Project-ID': 'x' } }), 400, 'project_invalid', 'no project id')
      const headers = { 'X-Project-ID': newId.project() }
      await refused(ask(good, { headers }), 404, 'project_not_found', 'unknown project')
    }
    await bodies(t, route, good, ask, refused)
    if (route.if_match !== undefined) {
      const without = await ask(good, { headers: { 'If-Match': '' } })
      t.equal(without.status, 400, 'an empty If-Match is malformed')
      await refused(ask({ ...good, etag: '"999999"' }), 412, 'revision_mismatch', 'stale If-Match')
      await refused(ask({ ...good, etag: 'W/"1"' }), 400, 'if_match_invalid', 'weak If-Match')
      await refused(ask({ ...good, etag: '"01"' }), 400, 'if_match_invalid', 'If-Match with a leading zero')
      await refused(ask({ ...good, etag: '*' }), 400, 'if_match_invalid', 'If-Match of anything')
      const { etag: _, ...bare } = good
      await refused(ask(bare), 428, 'precondition_required', 'no If-Match')
    }
    if (route.idempotent) {
      const key = (value: string) => ask(good, { headers: { 'Idempotency-Key': value } })
      await refused(key(' '), 400, 'idempotency_key_required', 'blank Idempotency-Key')
      await refused(key('x'.repeat(129)), 400, 'idempotency_key_required', 'Idempotency-Key of 129 characters')
    }
    const before = await auditCount(w)
    const idempotency = freshKey()
    const first = await ask(good, { headers: { 'Idempotency-Key': idempotency } })
    checks += 1
    t.ok(first.status < 300, `succeeds: ${first.status} ${first.text.slice(0, 400)}`)
    t.ok(String(first.status) in route.replies, 'with a declared status; its body was checked against the schema')
    if (route.method === 'get') return
    if (first.status !== 200) t.equal(await auditCount(w), before + 1, 'leaves one audit event')
    if ((await auditCount(w)) > before) t.ok(w.key.includes(await newestActor(w)), 'by the key that wrote')
    const replay = await ask(good, { headers: { 'Idempotency-Key': idempotency } })
    checks += 1
    t.equal(replay.status, first.status, 'a replay repeats the outcome')
    t.equal(replay.headers.get('idempotent-replayed'), 'true')
    if (first.body) t.same(Object.keys(replay.body), Object.keys(first.body))
    const other = await ask(await recipe(w), { headers: { 'Idempotency-Key': idempotency } })
    if (route.body && !route.path.includes('{')) {
      checks += 1
      t.equal(other.body?.code, 'idempotency_key_reused', 'the same key with another body is refused')
    }
    if (route.if_match !== undefined && first.headers.get('etag') !== good.etag) {
      const again = ask(good, { headers: { 'Idempotency-Key': freshKey() } })
      const late = await again
      checks += 1
      t.ok([404, 409, 412].includes(late.status), `the old revision is stale now: ${late.status}`)
    }
    await bySession(t, route, await recipe(w))
  })

/** The console writes by the same routes, in the name of the person who is signed in. */
async function bySession(t: Pick<Tap, 'ok' | 'same'>, route: Route, made: Made): Promise<void> {
  const before = await auditCount(w)
  const body = made.body as object | undefined
  const answer = await me.ask(route.method.toUpperCase(), pathOf(route, made), body, headersOf(route, made))
  checks += 1
  t.ok(answer.status < 300, `by a session: ${answer.status} ${answer.text.slice(0, 300)}`)
  const told = await w.state.db
    .selectFrom('audit_event')
    .select(['actor_type', 'actor_name'])
    .orderBy('position', 'desc')
    .limit((await auditCount(w)) - before)
    .execute()
  if (answer.status !== 200) t.ok(told.length > 0, 'it leaves an event, too')
  for (const { actor_type, actor_name } of told) t.same([actor_type, actor_name], ['user', w.demo.email])
}

t.test('the loop makes more than ten checks per route', async t => {
  t.comment(`${V1_ROUTES.length} endpoints, ${checks} checks`)
  t.ok(checks > V1_ROUTES.length * 10)
})

function loads(route: Route): boolean {
  return Object.keys(route.loaders).some(param => route.path.includes(`{${param}}`))
}

function pathOf(route: Route, made: Made): string {
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(made.params?.[name] ?? name))
  return `/v1${path}${made.query ? `?${made.query}` : ''}`
}

function headersOf(route: Route, made: Made): Record<string, string> {
  return {
    ...(route.if_match !== undefined && made.etag !== undefined ? { 'If-Match': made.etag } : {}),
    ...(route.method === 'get' ? {} : { 'Idempotency-Key': freshKey() }),
  }
}

/** Returns a method that this route's path does not serve. */
function unserved(route: Route): string {
  const has = new Set(V1_ROUTES.filter(other => other.path === route.path).map(other => other.method))
  return (['put', 'patch', 'delete', 'post'] as const).find(method => !has.has(method))?.toUpperCase() ?? 'OPTIONS'
}

/** Checks that a key restricted to another subaccount finds nothing of the project or is refused. */
async function restricted(
  t: Pick<Tap, 'equal' | 'ok'>,
  route: Route,
  good: Made,
  ask: (made: Made, change?: Request) => Promise<Answer>,
): Promise<void> {
  const answer = await ask(good, { key: confined })
  checks += 1
  const owned = /\{(trunk|subaccount|call|recording)_id\}/.test(route.path)
  if (owned) t.equal(answer.status, 404, 'a restricted key gets 404 for what is outside its subaccount')
  else if (route.restricted_keys !== true)
    t.ok([403, 404].includes(answer.status), `a restricted key does not reach the project: ${answer.status}`)
  else if (route.path === '/trunks' && route.method === 'get') t.equal(answer.body.data.length, 0, 'it sees no trunk')
  else if (/^\/(subaccounts|calls|live-calls)$/.test(route.path)) t.equal(answer.body.data.length, 0, 'it sees nothing')
  else if (route.path.includes('{')) t.equal(answer.status, 404, 'it gets 404 for what is outside its trunks')
}

async function bodies(
  t: Pick<Tap, 'ok' | 'equal'>,
  route: Route,
  good: Made,
  ask: (made: Made, change?: Request) => Promise<Answer>,
  refused: (answer: Promise<Answer>, status: number, code: string, what: string) => Promise<Answer>,
): Promise<void> {
  if (route.method === 'get') return
  const unknown = { ...good.body, colour: 'red' }
  const answer = await refused(ask({ ...good, body: unknown }), 422, 'validation_failed', 'unknown field')
  t.ok(answer.body.errors.some((error: { pointer: string }) => error.pointer === '/colour'))
  await refused(ask(good, { raw: '{"a":' }), 400, 'body_malformed', 'broken JSON')
  await refused(ask(good, { raw: '{"__proto__":{"x":1}}' }), 422, 'validation_failed', 'prototype key')
  const xml = { raw: '<x/>', headers: { 'Content-Type': 'text/xml' } }
  await refused(ask(good, xml), 415, 'unsupported_media_type', 'another content type')
  await refused(ask(good, { raw: JSON.stringify({ x: 'y'.repeat(300_000) }) }), 413, 'body_too_large', 'large body')
  if (!route.body || !good.body) return
  for (const name of route.body.required ?? []) {
    const { [name]: _, ...rest } = good.body
    const missing = await refused(ask({ ...good, body: rest }), 422, 'validation_failed', `without ${name}`)
    t.ok(missing.body.errors.some((error: { pointer: string }) => error.pointer === `/${name}`))
  }
  const before = await auditCount(w)
  for (const [name, schema] of Object.entries(route.body.properties))
    for (const [what, value] of badValues(name, schema)) {
      const body = { ...good.body, [name]: value }
      const odd = await refused(ask({ ...good, body }), 422, 'validation_failed', `${name}: ${what}`)
      t.ok(
        odd.body.errors.some((error: { pointer: string }) => error.pointer.startsWith(`/${name}`)),
        `points at ${name}`,
      )
    }
  t.equal(await auditCount(w), before, 'refused bodies leave no audit event')
}

/** Returns values that this schema forbids, whatever the field means. Dates and addresses have their own tests. */
function badValues(name: string, schema: TSchema): [what: string, value: unknown][] {
  const allows = (value: unknown): boolean => fieldErrors(schema, value).length === 0
  const bad: [string, unknown][] = [['an object of something else', { odd: 1 }]]
  if (!allows(null)) bad.push(['null', null])
  if (allows(1) || allows(0)) bad.push(['beyond 2^53', 2 ** 53 + 2], ['infinite', 1e308], ['fraction', 1.5])
  if (!allows([])) bad.push(['a list', []])
  if (!allows(true)) bad.push(['a flag', true])
  bad.push(['a text of 200,000 characters', 'x'.repeat(200_000)])
  if (name === 'name') bad.push(['121 characters', 'n'.repeat(121)], ['empty', ''], ['a line break', 'a\r\nb'])
  return bad
}

const auditCount = async (w: ControlPlane): Promise<number> => {
  const row = await w.state.db
    .selectFrom('audit_event')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(row.count)
}

/** The public id of the key that the newest event names as its actor; empty when it names no key. */
async function newestActor(w: ControlPlane): Promise<string> {
  const { actor_type, actor_id } = await w.state.db
    .selectFrom('audit_event')
    .select(['actor_type', 'actor_id'])
    .orderBy('position', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow()
  const key = await w.state.db
    .selectFrom('api_key')
    .select('public_id')
    .where('id', '=', actor_id ?? '')
    .executeTakeFirst()
  return actor_type === 'api_key' && key ? key.public_id : 'no key'
}

async function foreignKey(w: ControlPlane): Promise<string> {
  const first = await w.state.db.selectFrom('project').selectAll().executeTakeFirstOrThrow()
  const organization_id = newId.organization()
  const project = { ...first, id: newId.project(), organization_id, name: 'Foreign' }
  await w.state.db
    .insertInto('organization')
    .values({ id: organization_id, name: 'Other', time_zone: 'UTC', created_at: past })
    .execute()
  await w.state.db.insertInto('project').values(project).execute()
  return w.newKey({ project_id: project.id })
}

import t from 'tap'
import type { Route } from '../../control/http/route.ts'
import { V1_ROUTES } from '../../control/v1/index.ts'
import { VOICE_ROUTES } from '../../control/voice/index.ts'
import { brokenInvariants } from '../../core/state/invariants.ts'
import { type Made, RECIPES } from '../conformance/control/recipes.ts'
import { type Answer, type ControlPlane, controlPlane, freshKey } from '../support/control-plane.ts'
import { addTenant, asTenant } from '../support/tenants.ts'

/**
 * Two customers who hate each other, and every endpoint of both registries. The thief asks with its own good key, and
 * with what is the victim's in every place where an id can stand: path, query, body. A new endpoint is covered by its
 * recipe (test/conformance/control/recipes.ts), which it needs anyway.
 */

const plane = await controlPlane(t, { rate_limit: { burst: 1_000_000, per_second: 1_000_000 } })
const victim = asTenant(plane, { ...plane.demo, api_key: plane.key })
const thief = asTenant(plane, await addTenant(plane.state, plane.settings.master_key, ['+2342019999901']))

/** Rows of workers that go on by themselves, and of keys, which tell when they were used. */
const MOVING: ReadonlySet<string> = new Set(['api_key', 'webhook_delivery', 'outbox', 'retention_job'])
/** What each recipe made for the victim, by the name of its place: `trunk_id`, `block_id`, … */
const stolen = new Map<string, Set<string>>()
const made = new Map<Route, Made>()
for (const route of V1_ROUTES) {
  const recipe = RECIPES[nameOf(route)]
  if (!recipe) throw new Error(`${nameOf(route)} has no recipe`)
  const one = await recipe(victim)
  made.set(route, one)
  for (const [name, value] of Object.entries({ ...one.params, ...one.body })) keep(name, value)
}
for (const e164 of victim.demo.numbers) keep('e164', e164)
const rows = await rowsOf(victim)

/** Nobody else has these words: they show when an answer tells of what is the victim's. */
const SECRETS = [
  victim.demo.project_id,
  victim.demo.account_sid,
  ...[...stolen.values()].flatMap(set => [...set]),
].filter(word => /^([a-z]{3}_[0-9a-f-]{36}|[A-Z]{2}[0-9a-f]{32})$/.test(word) && !isShared(word))

t.test('there is something to steal', async t => {
  t.ok(SECRETS.length > 50, `${SECRETS.length} ids`)
  t.ok(rows.size > 15, `rows of ${rows.size} tables`)
})

for (const route of V1_ROUTES)
  t.test(`${nameOf(route)}: the thief neither sees nor changes what is the victim's`, async t => {
    const recipe = RECIPES[nameOf(route)]
    const theirs = made.get(route)
    if (!recipe || !theirs) throw new Error('has no recipe')
    const own = await recipe(thief)
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
      // A question that writes nothing may be answered, as long as it tells nothing.
      if (route.audit)
        t.ok((answer?.status ?? 0) >= 400, `${name}: ${value} of the victim in the body is refused: ${answer?.text}`)
    }
    await ask('its own', own)
    for (const [what, answer] of looks) {
      t.ok(answer.status < 500, `${what}: ${answer.status} ${answer.status < 500 ? '' : answer.text}`)
      if (answer.status >= 300) continue
      const told = SECRETS.filter(word => answer.text.includes(word))
      t.same(told, [], `${what}: the answer tells nothing of the victim's`)
    }
  })

t.test('every endpoint of the voice-calls API answers 404 for what is the victim’s', async t => {
  for (const route of VOICE_ROUTES.filter(({ path }) => path.includes('{'))) {
    const path = route.path
      .replace(/\{call_sid\}/, first('call_id'))
      .replace(/\{recording_sid\}/, first('recording_id'))
    const form = route.method === 'POST' ? { Status: 'completed' } : undefined
    for (const account of [thief.demo.account_sid, victim.demo.account_sid]) {
      const at = `/2010-04-01/Accounts/${account}${path}${route.suffix}`
      const { status, text } = await thief.voice(route.method, at, form)
      t.ok([401, 403, 404].includes(status), `${route.method} ${at}: ${status} ${text}`)
    }
  }
  for (const name of ['ApplicationSid', 'From']) {
    const form = { To: '+2348030000001', From: thief.demo.numbers[0] ?? '', Url: 'https://app.example.com/' }
    const value = name === 'From' ? (victim.demo.numbers[0] ?? '') : first('application_id')
    const { status, text } = await thief.voice('POST', '/Calls.json', { ...form, [name]: value })
    t.ok(status >= 400 && status < 500, `a call with the victim's ${name}: ${status} ${text}`)
  }
  const { text } = await thief.voice('GET', '/Calls.json')
  t.same(
    SECRETS.filter(word => text.includes(word)),
    [],
    'the list of calls tells nothing of the victim’s',
  )
})

t.test('after all of it every row of the victim is as it was, and no row has two owners', async t => {
  t.same(await rowsOf(victim), rows)
  t.same(await brokenInvariants(plane.state.db), [])
})

function nameOf(route: Route): string {
  return `${route.method} ${route.path}`
}

function keep(name: string, value: unknown): void {
  const values = [value].flat().filter(one => typeof one === 'string')
  if (values.length > 0) stolen.set(name, new Set([...(stolen.get(name) ?? []), ...values]))
}

function first(name: string): string {
  return [...(stolen.get(name) ?? [])][0] ?? 'nothing'
}

/** Catalogues that everybody sees. */
function isShared(word: string): boolean {
  return /^(car|rat|pbk)_/.test(word)
}

/** For names of fields that take an id, or a number, the victim's. `ids` of any kind where the name says none. */
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

async function send(route: Route, one: Made): Promise<Answer> {
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(one.params?.[name] ?? name))
  return thief.ask(route.method.toUpperCase(), `/v1${path}${one.query ? `?${one.query}` : ''}`, {
    ...(one.body === undefined ? {} : { body: one.body }),
    headers: {
      ...(route.if_match !== undefined ? { 'If-Match': one.etag ?? '"1"' } : {}),
      ...(route.method === 'get' ? {} : { 'Idempotency-Key': freshKey() }),
    },
  })
}

/** Every row of every table that names the tenant's project, as text. */
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

import { appendFileSync, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { parse } from 'csv-parse/sync'
import { lineFormat } from '../../../control/exports/columns.ts'
import { callExports } from '../../../control/reconcilers/call-exports.ts'
import { presentCall } from '../../../control/v1/call-present.ts'
import { csvCell } from '../../../core/domain/text/csv.ts'
import { iso, systemClock } from '../../../core/runtime/clock.ts'
import { callLines } from '../../../core/state/calls/call-lines.ts'
import { insertCall } from '../../../core/state/calls/running-calls.ts'
import { DATABASE_FILE } from '../../../core/state/index.ts'
import { compiledForRanges } from '../../../core/state/maintenance/row-ranges.ts'
import type { RowReader } from '../../../core/state/port.ts'
import { compiler } from '../../../core/state/sqlite/compiler.ts'
import { defineTextRules, sqliteText } from '../../../core/state/sqlite/text-rules.ts'
import { type ControlPlane, controlPlane, freshKey } from '../../support/control-plane.ts'
import { queuedCall, ranCall, trunkOf } from '../../support/ended-calls.ts'
import { onPostgres } from '../../support/engine.ts'
import t from '../../support/harness/index.ts'
import { asks, operatorKey } from '../../support/operators.ts'
import { signIn } from '../../support/signed-in.ts'
import { addTenant, asTenant } from '../../support/tenants.ts'

// Exports of calls: what is in the file, who gets it, and what happens to a job whose process dies.

const day_ms = 86_400_000
let later_ms = 0
const clock = { ...systemClock, now: () => systemClock.now() + later_ms }
const w = await controlPlane(t, { clock })
const writing = callExports({ niceness: 0 })
t.teardown(() => writing.stop?.())

const trunk = await trunkOf(w, 'Exported')
const formula = '=HYPERLINK("http://x.test")'
const first = await ranCall(w, { seconds: 61, pdd_ms: 1234, hours_ago: 3, call: { trunk_id: trunk } })
const second = await ranCall(w, { hours_ago: 2, cause: 'unreachable', call: { from_number: formula } })
const inbound = await ranCall(w, {
  seconds: 5,
  pdd_ms: 321,
  hours_ago: 1,
  call: { direction: 'inbound', origin: 'carrier' },
})
// As a call of before its row had the delay.
await w.state.db.updateTable('call').set({ pdd_ms: null }).where('sid', '=', first).execute()
await w.state.db
  .insertInto('reservation')
  .values({
    ...{ call_sid: first, project_id: w.demo.project_id, billing_account_id: 'bil_1', billing: 'rated' },
    ...{
      destination: '+2348030000001',
      rate_label: 'Nigeria, "mobile"',
      rate_prefix: '234803',
      rate_micro: 1,
      rate_unit: 'minute',
    },
    ...{ increment_initial_seconds: 60, increment_additional_seconds: 60, currency: 'NGN', day: '2026-01-01' },
    ...{ held_minute: 0, caps: '[]', held_minor: 0, begun_at: '2026-01-01T00:00:00.000Z', billed_seconds: 120 },
    ...{ charge_minor: 28, carrier_id: 'car_1', cost_minor: 11, settled_at: '2026-01-01T00:01:00.000Z' },
  })
  .execute()
const rival = asTenant(w, await addTenant(w.state, w.settings.master_key, ['+2342019999901']))
const theirs = await ranCall(rival, { seconds: 9, call: { project_id: rival.demo.project_id } })

const begin = (of: ControlPlane, body: object, key?: string) =>
  of.ask('POST', '/v1/exports', {
    body,
    headers: { 'Idempotency-Key': freshKey() },
    ...(key === undefined ? {} : { key }),
  })

/** Begins an export, carries it out and returns its text. */
async function exported(body: object): Promise<string> {
  const { status, body: job, text } = await begin(w, body)
  t.equal(status, 201, text)
  await writing.run(w)
  t.match((await w.ask('GET', `/v1/exports/${job.id}`)).body, { state: 'completed', progress_percent: 100 })
  const file = await w.ask('GET', `/v1/exports/${job.id}/file`)
  t.equal(file.status, 200, file.text)
  t.equal((await w.ask('DELETE', `/v1/exports/${job.id}`)).status, 204)
  return file.text
}

const lines = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))

t.test(
  'JSON Lines have ended calls, oldest first, with record and price; the filter is that of the history',
  async t => {
    const all = lines(await exported({ format: 'jsonl' }))
    t.same(
      all.map(({ id }) => id),
      [first, second, inbound],
    )
    t.match(all[0], { duration_seconds: 61, pdd_ms: 1234, price_minor: 28, billed_seconds: 120, currency: 'NGN' })
    t.match(all[1], { from: formula, price_minor: null, pdd_ms: null })
    t.match(all[2], { pdd_ms: 321 })
    const { body } = await w.ask('GET', '/v1/calls?direction=inbound')
    const filtered = lines(await exported({ format: 'jsonl', filter: { direction: 'inbound' } }))
    t.same(
      filtered.map(({ id }) => id),
      body.data.map(({ id }: { id: string }) => id),
    )
    const none = await exported({ format: 'jsonl', filter: { before: '2020-01-01T00:00:00Z' } })
    t.equal(none, '')
  },
)

t.test('the destinations of a trunk have the figures of its outbound calls by prefix', async t => {
  const path = `/v1/trunks/${trunk}/destinations`
  const { body } = await w.ask('GET', path)
  t.match(body, { complete: true })
  t.same(body.data, [
    {
      ...{ prefix: '+234803', label: 'Nigeria, "mobile"', attempts: 1, answered: 1, asr_pct: 100, acd_seconds: 61 },
      ...{ pdd_ms: 1234, duration_seconds: 61, billed_seconds: 120, charge_minor: 28 },
    },
  ])
  const older = await w.ask('GET', `${path}?before=2020-01-01T00:00:00Z`)
  t.same(older.body.data, [])
  const long = await w.ask('GET', `${path}?since=2020-01-01T00:00:00Z`)
  t.equal(long.status, 422, 'at most 31 days')
  t.equal((await rival.ask('GET', path)).status, 404)
})

t.test('CSV has the same fields as columns, and a formula of a caller is text', async t => {
  const text = await exported({ format: 'csv' })
  const rows = parse(text, { columns: true }) as Record<string, string>[]
  const [json] = lines(await exported({ format: 'jsonl' }))
  t.same(Object.keys(rows[0] ?? {}), Object.keys(json))
  t.match(rows[0], { id: first, price_minor: '28', destination: 'Nigeria, "mobile"' })
  t.equal(rows[1]?.['from'], `'${formula}`)
  t.notOk(/(^|,|")[=+@-]/m.test(text.replace(/\r\n[^,]*/g, '')), 'no cell begins as a formula')
})

t.test('a process that takes over goes on where the stored progress ends, and cuts off what is beyond it', async t => {
  const whole = await exported({ format: 'csv' })
  const { body: job } = await begin(w, { format: 'csv' })
  const killed = callExports({ slice_rows: 1, niceness: 0 })
  await killed.run(w)
  await killed.stop?.()
  const path = join(w.settings.data_dir, 'exports', `${job.id}.csv`)
  const { body: half } = await w.ask('GET', `/v1/exports/${job.id}`)
  t.match(half, { state: 'running', rows: 1 })
  t.ok(half.progress_percent > 0 && half.progress_percent < 100, `${half.progress_percent} %`)
  appendFileSync(path, 'what a killed process wrote after the progress was stored')
  await writing.run(w)
  t.equal(readFileSync(path, 'utf8'), whole)
  t.equal(statSync(path).mode & 0o777, 0o600)
  await w.ask('DELETE', `/v1/exports/${job.id}`)
  t.equal((await w.ask('GET', `/v1/exports/${job.id}`)).status, 404)
  await writing.run(w)
  t.notOk(existsSync(path), 'the file of a deleted export is removed')
})

t.test('the slices of a job wake exports alone, and none of the tasks that look at every call', async t => {
  const { body: job } = await begin(w, { format: 'csv' })
  const heard: string[] = []
  const rung = (topic: 'jobs' | 'exports' | 'nodes') =>
    new Promise<void>(resolve => {
      const unheard = w.bus.on(topic, () => {
        heard.push(topic)
        resolve()
        unheard()
      })
    })
  void rung('jobs')
  const again = rung('exports')
  const one_row = callExports({ niceness: 0, slice_rows: 1 })
  await one_row.run(w)
  await again
  const last = rung('nodes')
  w.bus.ring('nodes')
  await last
  t.same(heard, ['exports', 'nodes'])
  await one_row.stop?.()
  await w.ask('DELETE', `/v1/exports/${job.id}`)
})

t.test('a file that is lost is written again from its beginning', async t => {
  const whole = await exported({ format: 'jsonl' })
  const { body: job } = await begin(w, { format: 'jsonl' })
  await w.state.db
    .updateTable('call_export')
    .set(eb => ({ state: 'running', bytes: 99_999, rows: 7, after_position: eb.ref('last_position') }))
    .where('id', '=', job.id)
    .execute()
  await writing.run(w)
  t.equal((await w.ask('GET', `/v1/exports/${job.id}/file`)).text, whole)
  t.match((await w.ask('GET', `/v1/exports/${job.id}`)).body, { rows: 3 })
  await w.ask('DELETE', `/v1/exports/${job.id}`)
})

t.test('an export ends at its quota, and says why', async t => {
  const { body: job } = await begin(w, { format: 'csv' })
  const bounded = callExports({ quota_bytes: 400, niceness: 0 })
  await bounded.run(w)
  await bounded.stop?.()
  const { body } = await w.ask('GET', `/v1/exports/${job.id}`)
  t.match(body, { state: 'failed', error: 'The exports have reached their quota.', bytes: 0 })
  t.equal((await w.ask('GET', `/v1/exports/${job.id}/file`)).status, 404)
  t.notOk(existsSync(join(w.settings.data_dir, 'exports', `${job.id}.csv`)))
  await w.ask('DELETE', `/v1/exports/${job.id}`)
})

t.test('a machine leaves the exports of another machine alone', async t => {
  const { body: job } = await begin(w, { format: 'csv' })
  const changed = (set: { machine_id?: string; state?: 'queued' | 'completed' }) =>
    w.state.db.updateTable('call_export').set(set).where('id', '=', job.id).execute()
  await writing.run(w)
  const { machine_id } = await w.state.db
    .selectFrom('call_export')
    .select('machine_id')
    .where('id', '=', job.id)
    .executeTakeFirstOrThrow()
  await changed({ machine_id: 'mac_other', state: 'queued' })
  await writing.run(w)
  t.match((await w.ask('GET', `/v1/exports/${job.id}`)).body, { state: 'queued' })
  await changed({ state: 'completed' })
  const { body: link } = await w.ask('POST', `/v1/exports/${job.id}/links`, { body: {} })
  for (const [path, key] of [
    [`/v1/exports/${job.id}/file`, undefined],
    [new URL(link.url).pathname, null],
  ] as const) {
    const there = await w.ask('GET', path, key === undefined ? {} : { key })
    t.match(there, { status: 503, body: { code: 'export_unavailable' } }, path)
  }
  t.equal((await w.ask('DELETE', `/v1/exports/${job.id}`)).status, 204)
  await writing.run(w)
  const path = join(w.settings.data_dir, 'exports', `${job.id}.csv`)
  t.ok(existsSync(path), 'its own machine deletes the file')
  await changed({ machine_id })
  await writing.run(w)
  t.notOk(existsSync(path))
})

t.test('a machine that refuses the back seat, or has no chrt, writes long exports all the same', async t => {
  const whole = await exported({ format: 'csv' })
  for (const chrt of ['/bin/false', '/nowhere/chrt']) {
    const { body: job } = await begin(w, { format: 'csv' })
    const refused = callExports({ niceness: 0, long_job: 0, chrt })
    await refused.run(w)
    await refused.stop?.()
    t.equal((await w.ask('GET', `/v1/exports/${job.id}/file`)).text, whole, chrt)
    await w.ask('DELETE', `/v1/exports/${job.id}`)
  }
})

t.test('a project has a few open exports at a time', async t => {
  const ids: string[] = []
  for (let n = 0; n < 3; n++) ids.push((await begin(w, { format: 'csv' })).body.id)
  t.match(await begin(w, { format: 'csv' }), { status: 409, body: { code: 'limit_reached' } })
  t.equal((await begin(rival, { format: 'csv' })).status, 201, 'another project has its own limit')
  for (const id of ids) await w.ask('DELETE', `/v1/exports/${id}`)
})

t.test('a link needs no key, ends with its time, and is of one export', async t => {
  const { body: job } = await begin(w, { format: 'jsonl' })
  const early = await w.ask('POST', `/v1/exports/${job.id}/links`, { body: {} })
  t.match(early, { status: 409, body: { code: 'state_conflict' } })
  await writing.run(w)
  const { body: link } = await w.ask('POST', `/v1/exports/${job.id}/links`, { body: { valid_seconds: 60 } })
  const path = new URL(link.url).pathname
  const open = (at: string, headers = {}) => w.ask('GET', at, { key: null, headers })
  const file = await open(path)
  t.equal(file.status, 200)
  t.equal(lines(file.text).length, 3)
  t.match(file.headers.get('content-disposition'), /^attachment; filename="calls-[0-9-]+\.jsonl"$/)
  const part = await open(path, { Range: 'bytes=0-9' })
  t.match([part.status, part.text], [206, file.text.slice(0, 10)])
  const [id = '', until = '', maker = '', proof = ''] = path.slice('/downloads/'.length).split('.')
  const { body: other } = await begin(w, { format: 'jsonl' })
  for (const forged of [
    `${other.id}.${until}.${maker}.${proof}`,
    `${id}.${Number(until) + 1}.${maker}.${proof}`,
    `${id}.${until}.key_${other.id.slice(4)}.${proof}`,
    `${id}.${until}.${maker}.${'A'.repeat(43)}`,
    id,
  ])
    t.equal((await open(`/downloads/${forged}`)).status, 404, forged)
  later_ms = 61_000
  t.equal((await open(path)).status, 404, 'the link is over')
  later_ms = 8 * day_ms
  await writing.run(w)
  t.equal((await w.ask('GET', `/v1/exports/${job.id}`)).status, 404, 'the export is over after a week')
  t.notOk(existsSync(join(w.settings.data_dir, 'exports', `${job.id}.jsonl`)))
  later_ms = 0
  await w.ask('DELETE', `/v1/exports/${other.id}`)
})

t.test('a link ends with the key or the member that made it', async t => {
  const { body: job } = await begin(w, { format: 'jsonl' })
  await writing.run(w)
  const open = async (link: string) => (await w.ask('GET', link, { key: null })).status
  const linkOf = async (request: object) => {
    const { status, body } = await w.ask('POST', `/v1/exports/${job.id}/links`, { body: {}, ...request })
    t.equal(status, 201)
    return { path: new URL(body.url).pathname, expires_at: body.expires_at as string }
  }
  const of = async (key: string) => {
    const [, public_id = ''] = /^sk_live_([A-Z2-7]+)_/.exec(key) ?? []
    const change = (set: { revoked_at?: string; retires_at?: string }) =>
      w.state.db.updateTable('api_key').set(set).where('public_id', '=', public_id).execute()
    return { ...(await linkOf({ key })), change }
  }
  const revoked = await of(await w.newKey({}))
  t.equal(await open(revoked.path), 200)
  await revoked.change({ revoked_at: iso(clock.now()) })
  t.equal(await open(revoked.path), 404, 'the key is revoked')

  const retired = await of(await w.newKey({}))
  await retired.change({ retires_at: iso(clock.now() + 60_000) })
  t.equal(await open(retired.path), 200)
  later_ms = 61_000
  t.equal(await open(retired.path), 404, 'the key was rotated out')
  later_ms = 0
  const expires_at = iso(clock.now() + 120_000)
  const { expires_at: end } = await linkOf({ key: await w.newKey({ expires_at }) })
  t.ok(end <= expires_at, 'a link says so, too')

  const admin = await signIn(w)
  const { body: link } = await admin.ask('POST', `/v1/exports/${job.id}/links`, {})
  t.equal(await open(new URL(link.url).pathname), 200)
  await w.state.db
    .updateTable('member')
    .set({ locked_at: iso(clock.now()) })
    .execute()
  t.equal(await open(new URL(link.url).pathname), 404, 'the member is locked')
  await w.state.db.updateTable('member').set({ locked_at: null }).execute()
  await w.ask('DELETE', `/v1/exports/${job.id}`)
})

t.test('nobody else sees an export; a restricted key has its subaccount’s calls alone', async t => {
  const { body: branch } = await w.ask('POST', '/v1/subaccounts', {
    body: { name: 'Branch', configuration: { currency: 'NGN' } },
    headers: { 'Idempotency-Key': freshKey() },
  })
  const key = await w.newKey({ subaccount_id: branch.id })
  await w.state.db.updateTable('trunk').set({ subaccount_id: branch.id }).where('id', '=', trunk).execute()
  const { body: whole } = await begin(w, { format: 'jsonl' })
  const { body: own } = await begin(w, { format: 'jsonl' }, key)
  await writing.run(w)
  const ids = async (id: string, by: string) =>
    lines((await w.ask('GET', `/v1/exports/${id}/file`, { key: by })).text).map(line => line.id)
  t.same(await ids(own.id, key), [first])
  t.same((await w.ask('GET', '/v1/exports', { key })).body.data.length, 1)
  for (const path of [`/v1/exports/${whole.id}`, `/v1/exports/${whole.id}/file`]) {
    t.equal((await w.ask('GET', path, { key })).status, 404, 'a restricted key')
    t.equal((await rival.ask('GET', path)).status, 404, 'another project')
  }
  t.equal((await rival.ask('DELETE', `/v1/exports/${whole.id}`)).status, 404)
  const foreign = { format: 'csv', filter: { trunk_id: trunk } }
  t.equal((await begin(rival, foreign)).status, 422, 'a filter names a trunk of the project')
  await w.ask('DELETE', `/v1/exports/${whole.id}`)
  await w.ask('DELETE', `/v1/exports/${own.id}`)
})

t.test('an operator exports the calls of all customers, with what they cost', async t => {
  const ask = asks(w, await operatorKey(w))
  const text = async (filter: object) => {
    const { body: job } = await ask('POST', '/exports', { format: 'jsonl', filter })
    await writing.run(w)
    const file = await ask('GET', `/exports/${job.id}/file`)
    t.equal((await w.ask('GET', `/v1/exports/${job.id}`)).status, 404, 'no customer reads it')
    t.equal((await ask('DELETE', `/exports/${job.id}`)).status, 204)
    return lines(file.text)
  }
  const all = await text({})
  t.same(
    all.map(({ id }) => id),
    [first, second, inbound, theirs],
  )
  t.match(all[0], { carrier_id: 'car_1', cost_minor: 11, project_id: w.demo.project_id })
  t.same((await text({ project_id: rival.demo.project_id })).length, 1)
  const filtered = (filter: object) => ask('POST', '/exports', { format: 'csv', filter })
  for (const [filter, pointer] of [
    [{ project_id: 'prj_none' }, '/filter/project_id'],
    [{ trunk_id: 'trk_none' }, '/filter/trunk_id'],
    [{ trunk_id: trunk, project_id: rival.demo.project_id }, '/filter/trunk_id'],
  ] as const)
    t.match(await filtered(filter), { status: 422, body: { errors: [{ pointer }] } }, pointer)
  const blind = asks(w, await operatorKey(w, { scopes: '["operator:read"]' }))
  t.equal((await blind('POST', '/exports', { format: 'csv' })).status, 403, 'costs need operator:money')
})

t.test('a file has, byte for byte, what JavaScript writes of each call, and of no other customer’s', async t => {
  const ask = asks(w, await operatorKey(w))
  const hostile = [
    ...[
      '=1+1',
      '+1',
      '-1',
      "'=1",
      '@x',
      'a,b',
      'say "hi"',
      'two\r\nlines',
      '\ttab',
      '\u200b=1',
      '＝1',
      'Zoë 😀',
      'alice',
    ],
    ...['back\\slash', '\u2028', '\u007f', 'x\u0000,"y', ''],
  ]
  const add = async (of: ControlPlane, project_id: string, text: string, at: number) => {
    const sid = `CA${project_id.slice(-4)}${String(at).padStart(28, '0')}`
    const when = iso(Date.parse('2026-02-01T00:00:00Z') + at * 1000)
    const call = queuedCall(of, sid, when, { from_number: text, to_number: hostile.at(-1 - at) ?? '' })
    const full = at % 2 === 0
    await w.state.transaction(trx => insertCall(trx, { ...call, project_id }, Date.parse(when)))
    const rest = { ended_at: when, pdd_ms: full ? at : null, trunk_id: at % 3 === 0 ? trunk : null }
    const more = { account_sid: 'AC1', application_id: 'app_1', number_id: 'num_1', parent_call_sid: 'CA9' }
    const ends = {
      reason: 'no_route',
      ended_by: 'caller' as const,
      sip_code: 404,
      duration_seconds: at,
      answered_at: when,
    }
    const set = { ...rest, ...(full ? { ...more, ...ends } : {}) } as const
    await w.state.db.updateTable('call').set(set).where('sid', '=', sid).execute()
    if (at % 4 === 1) return
    // An earlier release settled some, or no release has yet.
    const { position } = await w.state.db
      .selectFrom('call')
      .select('position')
      .where('sid', '=', sid)
      .executeTakeFirstOrThrow()
    await w.state.db
      .insertInto('reservation')
      .values({
        call_position: at % 4 === 2 ? null : position,
        ...{ call_sid: sid, project_id, billing_account_id: 'bil_1', billing: 'rated', destination: '+1' },
        ...{ rate_label: at % 5 === 0 ? null : text, rate_micro: 1, rate_unit: 'minute', currency: 'NGN' },
        ...{ increment_initial_seconds: 60, increment_additional_seconds: 60, day: '2026-02-01', held_minute: 0 },
        ...{ caps: '[]', held_minor: 0, begun_at: when, cost_minor: at % 3 === 0 ? -5 : null },
        ...{ carrier_id: at % 3 === 0 ? 'car_2' : null },
        ...(full ? { billed_seconds: 60, charge_minor: 2 ** 53 - 1, settled_at: when } : {}),
      })
      .execute()
  }
  for (const [at, text] of hostile.entries()) {
    await add(w, w.demo.project_id, text, at)
    await add(rival, rival.demo.project_id, text, at)
  }
  const calls = await w.state.db
    .selectFrom('call')
    .selectAll()
    .where('ended_at', 'is not', null)
    .orderBy('position')
    .execute()
  const records = new Map((await w.state.db.selectFrom('cdr').selectAll().execute()).map(one => [one.call_sid, one]))
  const prices = new Map(
    (await w.state.db.selectFrom('reservation').selectAll().execute()).map(one => [one.call_sid, one]),
  )
  const facts = (call: (typeof calls)[number], all: boolean) => {
    const price = prices.get(call.sid)
    return {
      ...presentCall(call),
      billed_seconds: price?.billed_seconds ?? null,
      currency: price?.charge_minor == null ? null : price.currency,
      destination: price?.rate_label ?? null,
      pdd_ms: call.pdd_ms ?? records.get(call.sid)?.pdd_ms ?? null,
      price_minor: price?.charge_minor ?? null,
      ...(all
        ? { carrier_id: price?.carrier_id ?? null, cost_minor: price?.cost_minor ?? null, project_id: call.project_id }
        : {}),
    }
  }
  const cell = (value: string | number | null) => (typeof value === 'string' ? csvCell(value) : String(value ?? ''))
  const csv = (rows: readonly object[]) =>
    [Object.keys(rows[0] ?? {}).join(','), ...rows.map(row => Object.values(row).map(cell).join(',')), ''].join('\r\n')
  const json = (rows: readonly object[]) => rows.map(row => `${JSON.stringify(row)}\n`).join('')
  const mine = calls.filter(call => call.project_id === w.demo.project_id)
  for (const [filter, chosen] of [
    [{}, mine],
    [{ trunk_id: trunk }, mine.filter(call => call.trunk_id === trunk)],
    [{ from: '+1' }, mine.filter(call => call.from_number === '+1')],
    [
      { since: '2026-02-01T00:00:03Z', before: '2026-02-01T00:00:09Z' },
      mine.filter(call => call.queued_at >= '2026-02-01T00:00:03' && call.queued_at < '2026-02-01T00:00:09'),
    ],
  ] as const) {
    const rows = chosen.map(call => facts(call, false))
    t.ok(rows.length > 0, 'the filter finds calls')
    t.equal(await exported({ format: 'csv', filter }), csv(rows))
    t.equal(await exported({ format: 'jsonl', filter }), json(rows))
  }
  const whole = calls.map(call => facts(call, true))
  for (const [format, text] of [
    ['csv', csv(whole)],
    ['jsonl', json(whole)],
  ] as const) {
    const { body: job } = await ask('POST', '/exports', { format })
    const small = callExports({ niceness: 0, slice_rows: 7 })
    while ((await ask('GET', `/exports/${job.id}`)).body.state !== 'completed') await small.run(w)
    await small.stop?.()
    t.equal((await ask('GET', `/exports/${job.id}/file`)).text, text, 'the operator’s, in many slices')
  }
})

t.test('an export finds what calls cost in the order of the calls', { skip: onPostgres() && 'of SQLite' }, async t => {
  const database = new Database(join(w.settings.data_dir, DATABASE_FILE), { readonly: true })
  t.teardown(() => database.close())
  defineTextRules(database)
  const steps: string[] = []
  const reader: Pick<RowReader, 'lines'> = {
    lines(query) {
      const { sql, valuesOf } = compiledForRanges(range => query(compiler, sqliteText, range))
      const plan = database.prepare<unknown[], { readonly detail: string }>(`explain query plan ${sql}`)
      steps.push(...plan.all(...valuesOf({ after: 1, last: 9, limit: 9 })).map(({ detail }) => detail))
      return () => Promise.reject(new Error('nothing is read'))
    },
  }
  callLines(reader, lineFormat('csv', 'customer'), { project_id: w.demo.project_id })
  t.same(
    steps.filter(step => / reservation /.test(step)).map(step => /INDEX (\w+) \(([^)]*)\)/.exec(step)?.slice(1)),
    [
      ['reservation_call', 'call_position=?'],
      ['reservation_call', 'call_position=? AND call_sid=?'],
    ],
    'by position, and by id those that have none',
  )
})

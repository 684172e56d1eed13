import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { Kysely, sql } from 'kysely'
import { csvCell } from '../../../../../core/domain/text/csv.ts'
import { systemClock } from '../../../../../core/runtime/clock.ts'
import { insertMessages } from '../../../../../core/state/calls/ladder.ts'
import { bumpConfiguration } from '../../../../../core/state/configuration/bump.ts'
import { listShortCodes } from '../../../../../core/state/configuration/settings.ts'
import {
  DATABASE_FILE,
  failure,
  isEmptyDatabase,
  openRowReader,
  type State,
  type TextRule,
} from '../../../../../core/state/index.ts'
import { executedMigrations } from '../../../../../core/state/maintenance/migrate.ts'
import { MIGRATIONS } from '../../../../../core/state/migrations/index.ts'
import { registerNode } from '../../../../../core/state/nodes/nodes.ts'
import { auditOfResources } from '../../../../../core/state/people/audit.ts'
import { callProcedure, queueProcedure } from '../../../../../core/state/port.ts'
import { postgresDialect } from '../../../../../core/state/postgres/dialect.ts'
import { postgresEngine } from '../../../../../core/state/postgres/engine.ts'
import { openPostgres, poolOf } from '../../../../../core/state/postgres/store.ts'
import { inTurn } from '../../../../../core/state/postgres/turns.ts'
import type { Schema } from '../../../../../core/state/schema/index.ts'
import { putEmptyDatabase } from '../../../../support/fresh-state.ts'
import t from '../../../../support/harness/index.ts'
import { freePort } from '../../../../support/ports.ts'
import { postgresDatabase, postgresState } from '../../../../support/postgres.ts'
import { PATIENCE_MS, until } from '../../../../support/wait.ts'

const NOW = '2026-11-26T12:00:00.000Z'
const opened = (database_url: string) =>
  openPostgres({ database_url, migrates: 'anybody', busy_timeout_ms: PATIENCE_MS })

async function closing(t: { teardown(undo: () => unknown): void }, state: Promise<State>): Promise<State> {
  const made = await state
  t.teardown(() => made.close())
  return made
}

t.test(
  'four processes that open an empty database at once all get the schema, and a fifth changes nothing',
  async t => {
    const database_url = await postgresDatabase({ template: 'template0' })
    const states = await Promise.all([1, 2, 3, 4].map(() => closing(t, opened(database_url))))
    for (const { db } of states) {
      t.same(await executedMigrations(db), Object.keys(MIGRATIONS))
      t.equal((await db.selectFrom('configuration').selectAll().execute()).length, 1)
    }
    await states[0]?.transaction(bumpConfiguration)
    const fifth = await closing(t, opened(database_url))
    t.match(await fifth.db.selectFrom('configuration').selectAll().execute(), [{ id: 1, revision: 2 }])
  },
)

t.test('a database that cannot be read does not pass for an empty one', async t => {
  const pool = poolOf(`postgres://strowger@127.0.0.1:${await freePort()}/voice`, { size: 1 })
  const engine = postgresEngine(pool, PATIENCE_MS)
  const db = new Kysely<Schema>({ dialect: postgresDialect({ engine, pool, busy_timeout_ms: PATIENCE_MS }) })
  t.teardown(() => db.destroy())
  await t.rejects(executedMigrations(db), { name: 'StateError', failure: 'away' })
})

t.test(
  'a schema of another version is refused, unless its migration was asked for or no other machine runs',
  async t => {
    const missing = '0052-contracts-of-machines'
    const database_url = await postgresDatabase()
    const { db } = await closing(t, opened(database_url))
    const beat = (machine_id: string) =>
      db.updateTable('node').set({ machine_id, heartbeat_at: new Date().toISOString() }).execute()
    const process = { machine_id: 'mac_other', boot_id: '', pid: 1 }
    await registerNode(db, { ...process, id: 'node_1', kind: 'signaling' }, Date.now())
    // What that migration has made.
    await sql`alter table machine drop column contracts`.execute(db)
    await sql`delete from kysely_migration where name = ${missing}`.execute(db)
    const older = new RegExp(`127.0.0.1:\\d+/t_\\w+ is of an older version of Strowger \\(it lacks ${missing}\\)`)
    await t.rejects(openPostgres({ database_url }), { name: 'StartRefused', message: older })
    const alone = () => openPostgres({ database_url, migrates: { lone_machine: 'mac_own' } })
    await beat('mac_other')
    await t.rejects(alone(), { message: /, and mac_other run on it: run strowger migrate --expand$/ })
    await beat('mac_own')
    await closing(t, alone())
    t.same(await db.selectFrom('machine').select('contracts').execute(), [], 'the column is there again')
    await closing(t, openPostgres({ database_url }))
    const executed = (name: string) =>
      sql`insert into kysely_migration (name, timestamp) values (${name}, '')`.execute(db)
    await executed('9998-of-tomorrow')
    await closing(t, opened(database_url))
    t.pass('what a newer version has added is left alone')
    await executed('9999-of-tomorrow-contract')
    await t.rejects(opened(database_url), {
      message: /written by another version of Strowger \(schema 9999-of-tomorrow-contract\)/,
    })
  },
)

t.test('an empty database says so, and only `strowger up` or `migrate` fill it', async t => {
  const database_url = await postgresDatabase({ template: 'template0' })
  t.equal(await isEmptyDatabase(database_url), true)
  await t.rejects(openPostgres({ database_url }), { message: /run strowger migrate$/ })
  t.equal(await isEmptyDatabase(database_url), true)
  await closing(t, openPostgres({ database_url, migrates: { lone_machine: 'mac_own' } }))
  t.equal(await isEmptyDatabase(database_url), false)
})

t.test('both stores have the same tables, columns and indexes, but for what tells of changes', async t => {
  const { db } = await closing(t, postgresState())
  const columns = sql<{ name: string }>`
    select table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable as name
    from information_schema.columns where table_schema = 'public' and table_name not like 'kysely%'
      and table_name <> 'configuration_change'`
  const indexes = sql<{ name: string }>`select indexname as name from pg_indexes
    where schemaname = 'public' and not exists (select 1 from pg_constraint where conname = indexname)`
  const [theirs, their_indexes] = [(await columns.execute(db)).rows, (await indexes.execute(db)).rows]
  const folder = mkdtempSync(join(tmpdir(), 'strowger-schema-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  await putEmptyDatabase(folder)
  const file = new Database(join(folder, DATABASE_FILE), { readonly: true })
  t.teardown(() => file.close())
  const ours = file
    .prepare(
      `select t.name || '.' || c.name || ' ' || iif(c.type = 'TEXT' or c.type = 'text', 'text', 'bigint') || ' '
        || iif(c."notnull" or c.pk, 'NO', 'YES') from sqlite_master t, pragma_table_info(t.name) c
      where t.type = 'table' and t.name not like 'sqlite%' and t.name not like 'kysely%'`,
    )
    .pluck()
    .all() as string[]
  const our_indexes = file.prepare("select name from sqlite_master where type = 'index' and sql is not null").pluck()
  t.same(theirs.map(({ name }) => name).sort(), ours.sort())
  t.same(their_indexes.map(({ name }) => name).sort(), (our_indexes.all() as string[]).sort())
})

t.test('transactions of two processes exclude each other: no increment is lost', async t => {
  const database_url = await postgresDatabase()
  const states = await Promise.all([1, 2].map(() => closing(t, opened(database_url))))
  await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      states[at % 2]?.transaction(async trx => {
        const { revision } = await trx.selectFrom('configuration').select('revision').executeTakeFirstOrThrow()
        await trx
          .updateTable('configuration')
          .set({ revision: revision + 1 })
          .execute()
      }),
    ),
  )
  t.match(await states[0]?.db.selectFrom('configuration').selectAll().execute(), [{ revision: 21 }])
})

t.test('a transaction and a procedure that cannot have their turn in time fail as busy and do nothing', async t => {
  const database_url = await postgresDatabase()
  const holder = await closing(t, opened(database_url))
  const other = await closing(t, openPostgres({ database_url, busy_timeout_ms: 50 }))
  // To connect may take longer; from here on it has a connection.
  const connected = () => other.db.selectFrom('configuration').selectAll().execute()
  await until('the impatient one is connected', () => connected().catch(() => null))
  await holder.transaction(async trx => {
    await bumpConfiguration(trx)
    const waits = other.transaction(bumpConfiguration)
    t.equal(failure(await waits.catch(error => error)), 'busy')
    t.equal(failure(await callProcedure(other.db, 'prune_hours', null, 50).catch(error => error)), 'busy')
    t.equal(failure(await other.probe().catch(error => error)), 'busy', 'a single write takes its turn, too')
    t.match(await other.db.selectFrom('configuration').selectAll().execute(), [{ revision: 1 }], 'reads do not wait')
  })
  await holder.transaction(bumpConfiguration)
  t.match(await other.db.selectFrom('configuration').selectAll().execute(), [{ revision: 3 }])
})

t.test('the clock of its rows is that of the server: a machine whose clock is an hour off agrees', async t => {
  const database_url = await postgresDatabase()
  const own_clock = { ...systemClock, now: () => Date.now() + 3_600_000 }
  const state = await closing(t, openPostgres({ database_url, own_clock }))
  const before_ms = Date.now()
  const shown_ms = state.clock.now()
  // Half of the time that the first answer took is in doubt.
  t.ok(Math.abs(shown_ms - before_ms) < 600_000, `${shown_ms - before_ms} ms`)
})

t.test('a process that is lost in a transaction has written nothing, and the next one has its turn', async t => {
  const database_url = await postgresDatabase()
  const [lost, other] = [await closing(t, opened(database_url)), await closing(t, opened(database_url))]
  let waiting: Promise<unknown> = Promise.resolve()
  const cut = lost.transaction(async trx => {
    await bumpConfiguration(trx)
    waiting = other.transaction(bumpConfiguration)
    await sql`select pg_terminate_backend(pg_backend_pid())`.execute(trx)
  })
  t.equal(failure(await cut.catch(error => error)), 'away')
  await waiting
  t.match(await lost.db.selectFrom('configuration').selectAll().execute(), [{ revision: 2 }], 'and works again')
})

t.test('a writer that stands still in its turn loses it before the others have waited for too long', async t => {
  const database_url = await postgresDatabase()
  const pool = poolOf(database_url)
  t.teardown(() => pool.close())
  const other = await closing(t, opened(database_url))
  let runs = 0
  await inTurn(pool, PATIENCE_MS, async link => {
    await link.run('update configuration set revision = revision + 10')
    // Nothing is asked meanwhile, as of a process that was stopped.
    if (runs++ === 0) await other.transaction(bumpConfiguration)
  })
  const undone = 'its write is undone, and done in another turn'
  t.match(await other.db.selectFrom('configuration').selectAll().execute(), [{ revision: 12 }], undone)
})

t.test('a transaction that reads beside itself finds a connection while others wait for their turn', async t => {
  const database_url = await postgresDatabase()
  const state = await closing(t, openPostgres({ database_url, busy_timeout_ms: PATIENCE_MS, connections: 2 }))
  const read = () => state.db.selectFrom('configuration').selectAll().execute()
  let others: Promise<unknown> = Promise.resolve()
  await state.transaction(async trx => {
    await bumpConfiguration(trx)
    others = Promise.all([1, 2, 3].map(() => state.transaction(bumpConfiguration)))
    t.match(await read(), [{ revision: 1 }])
  })
  await others
  t.match(await read(), [{ revision: 5 }])
})

t.test('a failure undoes a transaction; one of a procedure in it undoes that alone', async t => {
  const state = await closing(t, postgresState())
  const event = { project_id: 'prj_1', kind: 'call.ended', data: {} }
  const callback = {
    ...({ kind: 'status_callback', call_sid: 'CA1', url: 'http://x.example/', method: 'POST' } as const),
    ...{ project_id: 'prj_1', parameters: { Text: 'a\0b' }, now_ms: Date.parse(NOW) },
  }
  const no = state.transaction(async trx => {
    await queueProcedure(trx, 'enqueue_callback', callback)
    throw new Error('no')
  })
  await t.rejects(no, { message: 'no' })
  t.same(await state.db.selectFrom('outbox').select('id').execute(), [])
  await state.transaction(async trx => {
    await queueProcedure(trx, 'enqueue_callback', callback)
    const audited = callProcedure(trx, 'append_audit', { organization_id: 'org_1' } as never)
    await t.rejects(audited, { name: 'StateError' }, 'columns are missing')
    await callProcedure(trx, 'queue_event', { event, now_ms: Date.parse(NOW) })
  })
  t.match(await state.db.selectFrom('outbox').select('call_sid').execute(), [{ call_sid: 'CA1' }])
  const twice = state.db.insertInto('configuration').values({ id: 1, revision: 9 }).execute()
  t.equal(failure(await twice.catch(error => error)), 'unique')
  t.match(await state.db.selectFrom('configuration').selectAll().execute(), [{ revision: 1 }])
})

t.test('texts are compared by their bytes, whatever the language of the database', async t => {
  const { db } = await closing(t, postgresState())
  const codes = ['a', 'B', '~', 'ä', '10', '9']
  await db
    .insertInto('short_code')
    .values(codes.map(code => ({ id: `sho_${code}`, project_id: null, code, sends_to: '+1' })))
    .execute()
  const sorted = await db.selectFrom('short_code').select('code').orderBy('code').execute()
  t.same(
    sorted.map(({ code }) => code),
    ['10', '9', 'B', 'a', '~', 'ä'],
  )
  const least = await sql<{ code: string }>`select 'a' < 'B' as code`.execute(db)
  t.match(least.rows, [{ code: 1 }], 'the language of this database says otherwise')
})

t.test('nothing is in a list without values, and null is the least value of an order', async t => {
  const database_url = await postgresDatabase()
  const { db } = await closing(t, opened(database_url))
  const row = { code: '112', sends_to: '+1' }
  const ids = ['prj_2', null, 'prj_1']
  await db
    .insertInto('short_code')
    .values(ids.map(project_id => ({ ...row, id: `sho_${project_id}`, project_id })))
    .execute()
  const codes = db.selectFrom('short_code').select('id')
  t.same(await codes.where('code', 'in', []).execute(), [])
  t.equal((await codes.where('code', 'not in', []).execute()).length, 3)
  t.same(await auditOfResources(db, 'org_1', { resource_ids: [], until: null }), [])
  const ordered = await listShortCodes(db)
  t.same(
    ordered.map(({ project_id }) => project_id),
    [null, 'prj_1', 'prj_2'],
  )
})

t.test('lines of an export are written as SQLite writes them', async t => {
  const database_url = await postgresDatabase()
  const { db } = await closing(t, opened(database_url))
  const said = [
    ...['', '+2348030000001', '=1+1', '-1', "'=1", '@x', 'a,b', 'say "hi"', 'two\r\nlines', '\ttab', '\u200b=1', '＝1'],
    ...['Côte d’Ivoire', '😀', 'back\\slash', '\u2028', '\u0001', '\u007f', '\u00ad', '\ufeff@', 'a\n'],
  ]
  const rows = said.map((sends_to, at) => ({ id: `sho_${at}`, project_id: null, code: String(100 + at), sends_to }))
  await db.insertInto('short_code').values(rows).execute()
  const reader = await openRowReader({ data_dir: '/nowhere', database_url, cache_kib: 1 })
  t.teardown(() => reader.close())
  const read = (rule: TextRule) =>
    reader.lines((here, written, range) =>
      here
        .selectFrom('short_code')
        .select(sql<number>`cast(code as bigint)`.as('position'))
        .select(eb => sql<string>`concat(${written(rule, eb.ref('sends_to'))}, '|')`.as('line'))
        .orderBy('position')
        .limit(range.limit),
    )
  const of = (limit: number) => ({ after: 0, last: 1000, limit })
  for (const [rule, write] of [
    ['csv_cell', csvCell],
    ['json_string', JSON.stringify],
  ] as const) {
    const { text, ...counts } = await read(rule)(of(1000))
    t.same(counts, { rows: said.length, last_position: 99 + said.length })
    t.equal(Buffer.from(text).toString(), said.map(one => `${write(one)}|`).join(''))
  }
  t.same(await read('csv_cell')(of(0)), { rows: 0, last_position: null, text: Buffer.alloc(0) })
})

t.test('procedures that share a turn fail alone, and those that come too late have done nothing', async t => {
  const database_url = await postgresDatabase()
  const state = await closing(t, opened(database_url))
  const callback = (at: number) =>
    callProcedure(state.db, 'enqueue_callback', {
      ...({ kind: 'status_callback', call_sid: `CA${at}`, url: 'http://x.example/', method: 'POST' } as const),
      ...{ project_id: 'prj_1', parameters: {}, now_ms: Date.parse(NOW) },
    })
  const fails = () => callProcedure(state.db, 'append_audit', { organization_id: 'org_1' } as never)
  const asked = [callback(1), callback(2), fails(), callback(3), fails(), callback(4)]
  const ended = await Promise.allSettled(asked)
  t.same(
    ended.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'],
  )
  await t.rejects(fails(), { name: 'StateError', message: /null value in column/ }, 'alone, too')
  const sids = async () =>
    (await state.db.selectFrom('outbox').select('call_sid').orderBy('id').execute()).map(row => row.call_sid)
  t.same(await sids(), ['CA1', 'CA2', 'CA3', 'CA4'])
  await state.transaction(async trx => {
    await bumpConfiguration(trx)
    const late = callProcedure(state.db, 'prune_hours', null, 20)
    t.equal(failure(await late.catch(error => error)), 'busy')
  })
  t.same((await sids()).length, 4)
})

t.test('texts of strangers that no index can hold disturb nobody', async t => {
  const { db } = await closing(t, postgresState())
  // No part of it repeats, so nothing compresses it.
  const long = Array.from({ length: 80 }, (_, at) => hash('sha256', String(at))).join('')
  const message = {
    at_ms: 1,
    direction: 'in',
    protocol: 'udp',
    local: '',
    remote: '',
    retransmission: 0,
    text: '',
  } as const
  const messages = [long, 'short'].map(sip_call_id => ({ ...message, sip_call_id }))
  await insertMessages(db, { edge_id: 'edg_1', messages })
  t.same(await db.selectFrom('sip_message').select('sip_call_id').execute(), [{ sip_call_id: 'short' }])
  const callback = {
    ...({ kind: 'status_callback', call_sid: 'CA1', url: `http://x.example/${long}`, method: 'POST' } as const),
    ...{ project_id: 'prj_1', parameters: {}, now_ms: Date.parse(NOW) },
  }
  for (const _ of [1, 2]) await callProcedure(db, 'enqueue_callback', callback)
  const rows = await db.selectFrom('outbox').select(['url', 'ordering_key']).execute()
  t.same(new Set(rows.map(row => row.ordering_key)).size, 1, 'they leave in order')
  t.equal(rows[1]?.url, callback.url)
})

t.test('tells its size, and refuses work when it is closed', async t => {
  const state = await postgresState()
  t.ok((await state.maintenance.bytes()) > 1_000_000)
  t.same(await state.maintenance.faults(), [])
  await state.close()
  t.equal(failure(await callProcedure(state.db, 'prune_hours', null).catch(error => error)), 'closed')
  await t.rejects(state.probe())
})

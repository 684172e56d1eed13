import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { bumpConfiguration } from '../../../../../core/state/configuration/bump.ts'
import { type Db, failure, openState, type State, type Trx } from '../../../../../core/state/index.ts'
import { appendAudit, type NewAuditEvent } from '../../../../../core/state/people/audit.ts'
import { cachedQuery, combinedQuery, queueWrite, readTogether, statement } from '../../../../../core/state/port.ts'
import t, { type Test as Tap } from '../../../../support/harness/index.ts'
import { PATIENCE_MS } from '../../../../support/wait.ts'

// The control plane's access to the state (decision 0002): hot reads and short transactions on its own thread, and
// other reads concurrent with a waiting write.

const REVISION = statement((db, { id }: { id: 1 }) =>
  db.selectFrom('configuration').select('revision').where('id', '=', id),
)

const ORGANIZATIONS = statement((db, _: object) => db.selectFrom('organization').select(['id', 'name']))

const EVENT: NewAuditEvent = {
  id: 'aud_1',
  organization_id: 'org_1',
  project_id: null,
  at: '2026-01-01T00:00:00.000Z',
  actor: { type: 'system', id: null, name: 'test', detail: null },
  category: 'configuration',
  kind: 'trunks',
  action: 'test',
  summary: 'Tested',
  detail: null,
  resource: { type: 'organization', id: 'org_1', name: 'One', href: null },
  trunk_id: null,
  from_revision: null,
  to_revision: null,
  request_id: null,
  changes: [],
}

async function revisionOf(db: Db | Trx): Promise<number> {
  const [[row]] = await readTogether(db, REVISION({ id: 1 }))
  if (!row) throw new Error('there is no configuration')
  return row.revision
}

/** Inserts an organization. An existing name fails the write after it has changed something else. */
const added = (state: State, id: string): Promise<void> =>
  state.shortTransaction(async trx => {
    await bumpConfiguration(trx)
    const organization = { id, name: id, time_zone: 'UTC', created_at: '2026-01-01T00:00:00.000Z' }
    await trx.insertInto('organization').values(organization).execute()
  })

async function opened(t: Pick<Tap, 'teardown'>, local: boolean, data_dir: string): Promise<State> {
  const state = await openState({ data_dir, local, busy_timeout_ms: PATIENCE_MS })
  t.teardown(() => state.close())
  return state
}

function folder(t: Pick<Tap, 'teardown'>): string {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-local-'))
  t.teardown(() => rmSync(data_dir, { recursive: true }))
  return data_dir
}

t.test('a hot read sees every write acknowledged before it, from any process', async t => {
  const data_dir = folder(t)
  const state = await opened(t, true, data_dir)
  const other = await opened(t, false, data_dir)
  const first = await revisionOf(state.db)
  await other.transaction(trx => bumpConfiguration(trx))
  t.equal(await revisionOf(state.db), first + 1, 'sees a write of another process')
  await state.db.updateTable('configuration').set({ revision: 70 }).execute()
  t.equal(await revisionOf(state.db), 70, "of the state's thread")
  await state.shortTransaction(async trx => {
    await bumpConfiguration(trx)
    t.equal(await revisionOf(trx), 71, 'sees its own write within the transaction')
    t.equal(await revisionOf(state.db), 70, 'no other reader sees that write')
  })
  t.equal(await revisionOf(state.db), 71, 'sees a write of a short transaction')
})

t.test('a short transaction evicts only cached rows of the tables that it has written', async t => {
  const state = await opened(t, true, folder(t))
  const ends = statement((db, _: object) => db.selectFrom('audit_head').select('events'))
  const names = cachedQuery(
    () => 'all',
    () => [ORGANIZATIONS({}), REVISION({ id: 1 })],
    ([rows, [configuration]]) => `${rows.map(({ name }) => name).join()} ${configuration?.revision}`,
  )
  const now = new Date().toISOString()
  await state.shortTransaction(async trx => {
    await trx
      .insertInto('organization')
      .values({ id: 'org_1', name: 'One', time_zone: 'UTC', created_at: now })
      .execute()
  })
  const revision = await revisionOf(state.db)
  t.equal(await names.read(state.db, {}), `One ${revision}`)
  const [kept] = await readTogether(state.db, ORGANIZATIONS({}))
  await state.shortTransaction(trx => bumpConfiguration(trx))
  t.equal(await names.read(state.db, {}), `One ${revision + 1}`)
  t.equal((await readTogether(state.db, ORGANIZATIONS({})))[0], kept, 'the cached rows: nothing was written')
  await state.shortTransaction(async trx => {
    t.equal(await names.read(trx, {}), `One ${revision + 1}`)
    await trx.updateTable('organization').set({ name: 'Two' }).returning('id').executeTakeFirst()
    t.equal(await names.read(trx, {}), `Two ${revision + 1}`, 'within')
    t.equal(await names.read(state.db, {}), `One ${revision + 1}`, 'but not without a write')
  })
  t.equal(await names.read(state.db, {}), `Two ${revision + 1}`)
  const undone = state.shortTransaction(async trx => {
    await trx.updateTable('organization').set({ name: 'Three' }).execute()
    throw new Error('taken back')
  })
  await t.rejects(undone, /taken back/)
  t.equal(await names.read(state.db, {}), `Two ${revision + 1}`)
  t.same(await readTogether(state.db, ends({})), [[]])
  await state.shortTransaction(trx => appendAudit(trx, EVENT))
  t.same(await readTogether(state.db, ends({})), [[{ events: 1 }]], 'a procedure')
})

t.test('each part of a combined query stays cached while only the other part is written', async t => {
  const data_dir = folder(t)
  const state = await opened(t, true, data_dir)
  const other = await opened(t, false, data_dir)
  const all = () => 'all'
  const named = cachedQuery(
    all,
    () => [ORGANIZATIONS({})],
    ([rows]) => rows.map(({ name }) => name),
  )
  const revised = cachedQuery(
    all,
    () => [REVISION({ id: 1 })],
    ([[row]]) => ({ revision: row?.revision }),
  )
  const both = combinedQuery(all, named, revised, (names, configuration) => ({ names, configuration }))
  const read = (db: Db | Trx) => both.read(db, {})
  const first = await read(state.db)
  t.equal(await read(state.db), first, 'the cached object')
  await added(state, 'a')
  const { revision = 0 } = first.configuration
  const second = await read(state.db)
  t.same(second, { names: ['a'], configuration: { revision: revision + 1 } })
  await state.shortTransaction(trx => bumpConfiguration(trx))
  const third = await read(state.db)
  t.equal(third.names, second.names)
  t.same(third.configuration, { revision: revision + 2 })
  await other.transaction(trx => bumpConfiguration(trx))
  t.same(await read(state.db), { names: ['a'], configuration: { revision: revision + 3 } })
  await state.shortTransaction(async trx => {
    await bumpConfiguration(trx)
    t.same(await read(trx), { names: ['a'], configuration: { revision: revision + 4 } }, 'within')
    t.same(await read(state.db), { names: ['a'], configuration: { revision: revision + 3 } }, 'and without')
  })
  t.same(await read(other.db), { names: ['a'], configuration: { revision: revision + 4 } }, 'a state without a cache')
})

t.test('rolls back a short transaction that throws, and reports SQLite errors by code', async t => {
  const state = await opened(t, true, folder(t))
  const first = await revisionOf(state.db)
  const refused = state.shortTransaction(async trx => {
    await bumpConfiguration(trx)
    await trx.insertInto('configuration').values({ id: 1, revision: 9 }).execute()
  })
  t.equal(failure(await refused.catch(error => error)), 'unique')
  t.equal(await revisionOf(state.db), first)
  await state.shortTransaction(trx => bumpConfiguration(trx))
  t.equal(await revisionOf(state.db), first + 1)
})

const namesOf = async ({ db }: State): Promise<string[]> => {
  const [rows] = await readTogether(db, ORGANIZATIONS({}))
  return rows.map(({ name }) => name).sort()
}

t.test(
  'concurrent short transactions share one commit, and a transaction that fails rolls back only its own writes',
  async t => {
    const data_dir = folder(t)
    const state = await opened(t, true, data_dir)
    const first = await revisionOf(state.db)
    t.same(await namesOf(state), [])
    const before = state.work()
    const done = await Promise.allSettled(['a', 'b', 'a', 'c', 'b'].map(id => added(state, id)))
    t.equal(state.work().commits - before.commits, 1)
    t.same(
      done.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'rejected'],
    )
    for (const one of done) if (one.status === 'rejected') t.equal(failure(one.reason), 'unique')
    t.same(await namesOf(state), ['a', 'b', 'c'])
    t.equal(await revisionOf(state.db), first + 3, 'earlier writes of the failed ones are rolled back')
  },
)

t.test('a short transaction reads writes of earlier ones in its commit; others do not', async t => {
  const data_dir = folder(t)
  const state = await opened(t, true, data_dir)
  const other = await opened(t, false, data_dir)
  const first = await revisionOf(state.db)
  const seen: number[] = []
  const outside: number[] = []
  await Promise.all(
    [1, 2, 3, 4].map(() =>
      state.shortTransaction(async trx => {
        seen.push(await revisionOf(trx))
        await bumpConfiguration(trx)
        outside.push(await revisionOf(state.db), await revisionOf(other.db))
      }),
    ),
  )
  t.same(seen, [first, first + 1, first + 2, first + 3])
  t.same(new Set(outside), new Set([first]))
  t.equal(await revisionOf(state.db), first + 4)
})

t.test('on a full disk all short transactions of a commit fail, and none is half-written', async t => {
  const state = await opened(t, true, folder(t))
  const first = await revisionOf(state.db)
  t.same(await namesOf(state), [])
  const pages = (most: number) =>
    state.shortTransaction(trx => queueWrite(trx, { sql: `pragma max_page_count = ${most}`, parameters: [] }))
  await pages(1)
  const done = await Promise.allSettled([
    added(state, 'a'),
    state.shortTransaction(async trx => {
      t.equal(await revisionOf(trx), first + 1)
      const organization = { id: 'b', name: 'b'.repeat(100_000), time_zone: 'UTC', created_at: '' }
      await trx.insertInto('organization').values(organization).execute()
    }),
    added(state, 'c'),
  ])
  for (const one of done) t.match(one, { status: 'rejected', reason: { code: 'SQLITE_FULL' } })
  t.same(await namesOf(state), [])
  t.equal(await revisionOf(state.db), first, 'rows read from rolled-back writes are not cached')
  await pages(1_000_000)
  await added(state, 'a')
  t.same(await namesOf(state), ['a'])
})

t.test('during another write a short transaction waits on the state’s thread; no increment is lost', async t => {
  const data_dir = folder(t)
  const state = await opened(t, true, data_dir)
  const other = await opened(t, false, data_dir)
  const first = await revisionOf(state.db)
  const file = new Database(join(data_dir, 'strowger.sqlite'))
  file.exec('begin immediate')
  const waiting = state.shortTransaction(async trx => {
    t.equal(await revisionOf(trx), first + 1, 'begins once the lock is free')
    await bumpConfiguration(trx)
  })
  // The event loop keeps running: nothing in this process blocks on the lock.
  await new Promise(resolve => setImmediate(resolve))
  file.exec('update configuration set revision = revision + 1; commit')
  await waiting
  file.close()
  t.equal(await revisionOf(state.db), first + 2)
  const increment = async (trx: Trx): Promise<void> => {
    const revision = await revisionOf(trx)
    await trx
      .updateTable('configuration')
      .set({ revision: revision + 1 })
      .execute()
  }
  const ways = [state.shortTransaction, state.transaction, other.transaction, state.shortTransaction]
  await Promise.all(Array.from({ length: 80 }, (_, at) => ways[at % ways.length]?.(increment)))
  t.equal(await revisionOf(state.db), first + 82)
})

t.test(
  'a read does not wait behind a write that waits for another process, and sees all earlier committed writes',
  async t => {
    const data_dir = folder(t)
    const state = await opened(t, true, data_dir)
    const read = () => state.db.selectFrom('configuration').select('revision').executeTakeFirstOrThrow()
    await state.db.updateTable('configuration').set({ revision: 70 }).execute()
    const file = new Database(join(data_dir, 'strowger.sqlite'))
    file.exec('begin immediate')
    const order: string[] = []
    const waiting = state.transaction(trx => bumpConfiguration(trx)).then(() => order.push('write'))
    const alone = state.db.updateTable('organization').set({ name: 'x' }).execute()
    const [first, second] = await Promise.all([read(), read()])
    order.push('reads')
    t.same([first.revision, second.revision], [70, 70])
    file.exec('rollback')
    file.close()
    await Promise.all([waiting, alone])
    t.same(order, ['reads', 'write'])
    t.equal((await read()).revision, 71)
  },
)

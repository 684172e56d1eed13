import { hostsOf } from '../../../../../core/runtime/database-url.ts'
import { failure } from '../../../../../core/state/port.ts'
import { Pool } from '../../../../../core/state/postgres/pool.ts'
import { beginTurn } from '../../../../../core/state/postgres/turns.ts'
import t, { type Test } from '../../../../support/harness/index.ts'
import { freePort } from '../../../../support/ports.ts'
import { postgres, standby } from '../../../../support/postgres.ts'
import { PATIENCE_MS, until } from '../../../../support/wait.ts'
import { wire } from '../../../../support/wires.ts'

const PATIENT = { connect_ms: PATIENCE_MS, statement_ms: PATIENCE_MS }

function poolOf(t: Test, url: string, settings: Partial<ConstructorParameters<typeof Pool>[0]> = {}): Pool {
  const pool = new Pool({ hosts: hostsOf(url) ?? [], size: 2, ...PATIENT, ...settings })
  t.teardown(() => pool.close())
  return pool
}

const ASLEEP = `select count(*) as asleep from pg_stat_activity where wait_event = 'PgSleep'`
const WHO = 'select inet_server_port() as port, pg_is_in_recovery() as standby'
const who = async (pool: Pool) => (await pool.use(PATIENCE_MS, link => link.run(WHO))).rows[0]

t.test('finds the primary in a list of servers, and finds it again after a standby was promoted', async t => {
  const second = await standby(t)
  const nobody = `127.0.0.1:${await freePort()}`
  const first = `127.0.0.1:${(await postgres()).port}`
  const pool = poolOf(t, `postgres://strowger@${nobody},127.0.0.1:${second.port},${first}/postgres`)
  t.match(await who(pool), { port: (await postgres()).port, standby: 0 })

  const alone = poolOf(t, `postgres://strowger@${nobody},127.0.0.1:${second.port}/postgres`)
  const refused = await who(alone).catch(error => error)
  t.equal(failure(refused), 'away')
  t.match(refused.message, new RegExp(`${nobody}.*127.0.0.1:${second.port} is a standby`))
  await second.promote()
  t.match(await who(alone), { port: second.port, standby: 0 })
})

t.test('a connection that the server ended is replaced, and its statement fails as away', async t => {
  const pool = poolOf(t, (await postgres()).url(), { size: 1 })
  const ended = pool.use(PATIENCE_MS, link => link.run('select pg_terminate_backend(pg_backend_pid())'))
  t.equal(failure(await ended.catch(error => error)), 'away')
  t.match(await who(pool), { standby: 0 })
})

t.test('a statement that takes too long is ended by the server, and its connection is used again', async t => {
  const pool = poolOf(t, (await postgres()).url(), { size: 1 })
  const ids = await pool.use(PATIENCE_MS, async link => {
    const { rows } = await link.run('select pg_backend_pid() as id')
    // The limit holds for this statement alone: its failure undoes the setting. On a busy machine any may take 20 ms.
    await link.run('begin')
    await link.run('set local statement_timeout = 20')
    const slow = await link.run('select pg_sleep(600)').catch(error => error)
    t.equal(failure(slow), 'busy')
    await link.run('rollback')
    return rows
  })
  t.same((await pool.use(PATIENCE_MS, link => link.run('select pg_backend_pid() as id'))).rows, ids)
})

const wired = async (t: Test) => {
  const way = await wire(t, (await postgres()).port)
  const pool = poolOf(t, `postgres://strowger@127.0.0.1:${way.port}/postgres`, { size: 1 })
  t.match(await who(pool), { standby: 0 })
  return { way, pool }
}

t.test('a statement fails as away, and soon, when its server cannot be reached', async t => {
  const { way, pool } = await wired(t)
  way.blackhole()
  t.equal(failure(await who(pool).catch(error => error)), 'away')
  // An hour is what the caller would wait for a connection.
  const waits = await pool.lend(3_600_000).catch(error => error)
  t.equal(failure(waits), 'away')
  await way.mend()
  t.match(await until('the pool has another connection', () => who(pool).catch(() => null)), { standby: 0 })
})

t.test('a connection that only the client believes in is replaced', async t => {
  const { way, pool } = await wired(t)
  way.halfOpen()
  t.equal(failure(await who(pool).catch(error => error)), 'away')
  t.match(await who(pool), { standby: 0 })
})

t.test('a statement whose reply was lost fails as away; one that takes long goes on', async t => {
  const { way, pool } = await wired(t)
  const other = poolOf(t, (await postgres()).url())
  const slow = pool.use(PATIENCE_MS, link => link.run('select pg_sleep(6), 1 as done'))
  t.match(await slow, { rows: [{ done: 1 }] })
  const lost = pool.use(PATIENCE_MS, link => link.run('select pg_sleep(1)')).catch(error => error)
  await until('the server works on it', async () => {
    const { rows } = await other.use(PATIENCE_MS, link => link.run(ASLEEP))
    return Number(rows[0]?.['asleep']) > 0
  })
  way.halfOpen()
  t.equal(failure(await lost), 'away')
})

t.test('a transaction that stands still is ended, and the next writer has its turn', async t => {
  const pool = poolOf(t, (await postgres()).url())
  const still = await pool.lend(PATIENCE_MS)
  await beginTurn(still, PATIENCE_MS)
  const next = await pool.lend(PATIENCE_MS)
  await beginTurn(next, PATIENCE_MS)
  await next.run('rollback')
  t.equal(failure(await still.run('select 1').catch(error => error)), 'away')
  for (const link of [still, next]) pool.giveBack(link)
})

t.test('a caller without a free connection in time fails as busy; a caller that waits gets the next one', async t => {
  const pool = poolOf(t, (await postgres()).url(), { size: 1 })
  let waiting: Promise<unknown> = Promise.resolve()
  await pool.use(PATIENCE_MS, async () => {
    t.equal(failure(await pool.lend(20).catch(error => error)), 'busy')
    waiting = who(pool)
  })
  t.match(await waiting, { standby: 0 })
})

t.test('a server that accepts connections and never answers is given up after the time limit', async t => {
  const way = await wire(t, (await postgres()).port)
  way.blackhole()
  const hosts = hostsOf(`postgres://strowger@127.0.0.1:${way.port}/postgres`) ?? []
  const pool = new Pool({ hosts, size: 1, ...PATIENT, connect_ms: 500 })
  const waits = [20, 30].map(within_ms => pool.lend(within_ms).catch(error => error))
  for (const wait of waits) t.equal(failure(await wait), 'busy')
  await pool.close()
})

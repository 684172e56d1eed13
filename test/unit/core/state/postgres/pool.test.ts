import { connect, createServer, type Socket } from 'node:net'
import { hostsOf } from '../../../../../core/runtime/database-url.ts'
import { failure } from '../../../../../core/state/port.ts'
import { Pool } from '../../../../../core/state/postgres/pool.ts'
import t, { type Test } from '../../../../support/harness/index.ts'
import { freePort } from '../../../../support/ports.ts'
import { postgres, standby } from '../../../../support/postgres.ts'
import { PATIENCE_MS, until } from '../../../../support/wait.ts'

const PATIENT = { connect_ms: PATIENCE_MS, statement_ms: PATIENCE_MS }

function poolOf(t: Test, url: string, settings: Partial<ConstructorParameters<typeof Pool>[0]> = {}): Pool {
  const pool = new Pool({ hosts: hostsOf(url) ?? [], size: 2, ...PATIENT, ...settings })
  t.teardown(() => pool.close())
  return pool
}

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

t.test('a connection that falls silent is destroyed, and the next one works', async t => {
  const wall = await silenceable(t, (await postgres()).port)
  const pool = poolOf(t, `postgres://strowger@127.0.0.1:${wall.port}/postgres`, { size: 1, statement_ms: 500 })
  // On a stalled machine a statement may take longer than half a second without the wall.
  await until('the pool has a connection', () => who(pool).catch(() => null))
  wall.silent = true
  const unanswered = await pool.use(PATIENCE_MS, link => link.run('select 1')).catch(error => error)
  t.equal(failure(unanswered), 'away')
  await wall.closed()
  wall.silent = false
  t.match(await until('the pool has another connection', () => who(pool).catch(() => null)), { standby: 0 })
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
  const wall = await silenceable(t, (await postgres()).port)
  wall.silent = true
  const hosts = hostsOf(`postgres://strowger@127.0.0.1:${wall.port}/postgres`) ?? []
  const pool = new Pool({ hosts, size: 1, ...PATIENT, connect_ms: 500 })
  const waits = [20, 30].map(within_ms => pool.lend(within_ms).catch(error => error))
  for (const wait of waits) t.equal(failure(await wait), 'busy')
  await pool.close()
})

/** A TCP relay to a port that forwards nothing, either way, while `silent` is set. */
async function silenceable(t: Test, target: number) {
  const sockets = new Set<Socket>()
  let closed = 0
  const wall = {
    silent: false,
    port: 0,
    /** Resolves when a client has closed its connection since `silent` was set. */
    closed: () => until('the client has closed its connection', () => closed > 0),
  }
  const server = createServer(near => {
    const far = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', bytes => {
        if (!wall.silent) to.write(bytes)
      })
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
    }
    near.on('close', () => {
      if (wall.silent) closed++
    })
  })
  wall.port = await freePort()
  await new Promise<void>(resolve => server.listen(wall.port, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return wall
}

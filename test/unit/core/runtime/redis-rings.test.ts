import { execFile } from 'node:child_process'
import { Writable } from 'node:stream'
import { promisify } from 'node:util'
import type { Bus } from '../../../../core/runtime/bus.ts'
import { createLog } from '../../../../core/runtime/log.ts'
import { RedisRings } from '../../../../core/runtime/redis/rings.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { redisServer, tellRedis } from '../../../support/redis.ts'
import { busOfMachine, ringUntilHeard } from '../../../support/rings.ts'
import { PATIENCE_MS, until } from '../../../support/wait.ts'

// Rings of one machine reach another one by Redis. Servers are Debian's.

const PREFIX = 'strowger:test'

/** A log whose lines a test reads. */
function readable() {
  const lines: string[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  return { lines, log: createLog('test', { log_level: 'debug' }, sink) }
}

/** A process on the bus of a machine whose bridge is Redis. */
const machine = (t: Test, url: string, log = readable().log, prefix = PREFIX): Promise<Bus> =>
  busOfMachine(t, log, new RedisRings({ url, prefix, log }))

t.test('a ring reaches other machines, and again after Redis was away, which the log says once', async t => {
  const server = await redisServer(t)
  const said = readable()
  const [a, b] = [await machine(t, server.url, said.log), await machine(t, server.url)]
  await ringUntilHeard(a, b, 'configuration')
  await ringUntilHeard(b, a, 'commands')
  await server.breakOff()
  const away = () => said.lines.filter(line => line.includes('is away')).length
  await until('the loss is told', () => away() > 0)
  let missed = 0
  b.on('nodes', () => missed++)
  // What rings meanwhile is not kept, and nothing fails.
  a.ring('calls')
  await server.comeBack()
  await until('what it may have missed rings', () => missed > 0)
  await ringUntilHeard(a, b, 'jobs')
  await ringUntilHeard(b, a, 'jobs')
  t.equal(away(), 1)
  t.ok(said.lines.some(line => line.includes('is back')))
})

t.test('a server that stands still is given up and found again, without a restart', async t => {
  const server = await redisServer(t)
  const said = readable()
  const [a, b] = [await machine(t, server.url, said.log), await machine(t, server.url)]
  await ringUntilHeard(a, b, 'jobs')
  server.signal('SIGSTOP')
  await until('its silence is told', () => said.lines.some(line => line.includes('has not answered in time')))
  server.signal('SIGCONT')
  await ringUntilHeard(a, b, 'jobs')
  await ringUntilHeard(b, a, 'calls')
})

t.test('a bridge that starts before its server finds it', async t => {
  const server = await redisServer(t)
  await server.breakOff()
  const [a, b] = [await machine(t, server.url), await machine(t, server.url)]
  a.ring('nodes')
  await server.comeBack()
  await ringUntilHeard(a, b, 'nodes')
})

t.test('two installations on one server do not wake each other, and a stranger rings topics alone', async t => {
  const server = await redisServer(t)
  const [a, b] = [await machine(t, server.url), await machine(t, server.url)]
  const other = await machine(t, server.url, undefined, 'strowger:other')
  const another = await machine(t, server.url, undefined, 'strowger:other')
  await ringUntilHeard(a, b, 'nodes')
  await ringUntilHeard(b, a, 'nodes')
  await ringUntilHeard(other, another, 'nodes')
  await ringUntilHeard(another, other, 'nodes')
  const [ours, theirs] = [[] as string[], [] as string[]]
  for (const topic of ['outbox', 'exports', 'calls', 'jobs'] as const) {
    b.on(topic, () => ours.push(topic))
    another.on(topic, () => theirs.push(topic))
  }
  await tellRedis(server.url, 'publish', `${PREFIX}:rings`, 'outbox rings nodes2 constructor')
  a.ring('outbox')
  a.ring('exports')
  a.ring('calls')
  await until('ours is heard', () => ours.includes('calls'))
  await ringUntilHeard(other, another, 'jobs')
  t.same(ours, ['calls'])
  t.same([...new Set(theirs)], ['jobs'])
})

t.test('a password is in the URL and in no line of the log, whether it is right or wrong', async t => {
  // No line contains a part of it by chance, as a time may contain digits.
  const password = 'pa/sesame wörd@'
  const server = await redisServer(t, { password })
  const [a, b] = [await machine(t, server.url), await machine(t, server.url)]
  await ringUntilHeard(a, b, 'jobs')
  const said = readable()
  await machine(t, server.url.replace('pa%2F', 'wrong%2F'), said.log)
  await until('the refusal is told', () => said.lines.some(line => line.includes('WRONGPASS')))
  t.notMatch(said.lines.join(''), /sesame|w%C3%B6rd|wörd/)
})

/** What a process does that trusts the authority of its environment. */
const rings_by_tls = (url: string) => `
  import { createLog } from './build/core/runtime/log.js'
  import { RedisRings } from './build/core/runtime/redis/rings.js'
  const log = createLog('test', { log_level: 'warn' })
  const made = () => new RedisRings({ url: ${JSON.stringify(url)}, prefix: 'strowger:test', log })
  const [a, b] = [made(), made()]
  await new Promise(resolve => b.onRing(resolve))
  const heard = new Promise(resolve => b.onRing(topic => topic === 'jobs' && resolve()))
  const rings = setInterval(() => a.ring('jobs'), 100)
  await heard
  clearInterval(rings)
  await Promise.all([a.close(), b.close()])
  process.stdout.write('heard')`

t.test('a machine refuses a Redis server whose certificate comes from an unknown authority', async t => {
  const server = await redisServer(t, { tls: true, password: 'secret' })
  const said = readable()
  await machine(t, server.url, said.log)
  await until('the refusal is told', () => said.lines.some(line => line.includes('self-signed certificate')))
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: server.authority }
  const words = ['--input-type=module', '-e', rings_by_tls(server.url)]
  const { stdout } = await promisify(execFile)(process.execPath, words, { env, timeout: PATIENCE_MS })
  t.equal(stdout, 'heard')
})

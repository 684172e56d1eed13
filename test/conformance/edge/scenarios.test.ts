import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEdge, type Edge, type TracedMessage } from '../../../signaling/edge/index.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { sippPorts, untilListens } from '../../support/sipp.ts'
import { withTransactions } from '../../support/sipp-transactions.ts'
import { PATIENCE_MS, until } from '../../support/wait.ts'
import { type ScenarioApp, startApp } from './scenario-app.ts'
import { answerTls, callOver, readScenario } from './scenario-peer.ts'
import { testClock } from './test-clock.ts'
import { testTls } from './test-tls.ts'

// Runs every scenario of fixtures/sipp/edge against the edge with a drachtio-srf application. SIPp plays them over UDP
// and TCP, also on IPv6; our own player plays them over TLS and WebSocket, which Debian's SIPp lacks.

/** `udp6`, `tcp6`: over [::1]. */
type Transport = 'udp' | 'tcp' | 'tls' | 'ws' | 'wss' | 'udp6' | 'tcp6'

interface Scenario {
  readonly name: string
  /** The peer's role; by default it is the caller. */
  readonly peer?: 'callee'
  readonly over: readonly Transport[]
  /** Runs on an edge whose clock is ten times as fast. */
  readonly fast?: true
  /** Each retransmission is a step of the scenario: SIPp must neither absorb nor send any by itself. */
  readonly each?: true
  /** Requests of a run that reach the application; default 1. */
  readonly seen?: number
  /** The steps run once for each of these statuses. */
  readonly codes?: readonly string[]
}

const ALL: readonly Transport[] = ['udp', 'tcp', 'tls', 'ws']
const EVERY: readonly Transport[] = [...ALL, 'wss', 'udp6', 'tcp6']
// A WebSocket server never connects (RFC 7118 §5), so it can call only peers that have connected to it.
const CALLEE: readonly Transport[] = ['udp', 'tcp', 'tls']
const CALLEE_6: readonly Transport[] = [...CALLEE, 'udp6', 'tcp6']

const FINAL_CODES = (
  '300 301 302 305 380 400 401 402 403 404 405 406 407 408 410 412 413 414 415 416 417 420 421 422 423 424 428 429 ' +
  '430 433 436 437 438 439 440 469 470 480 481 482 483 484 485 486 487 488 489 491 493 494 500 501 502 503 504 505 ' +
  '513 555 580 600 603 604 606 607 608'
).split(' ')

const SCENARIOS: readonly Scenario[] = [
  { name: 'invite-repeated', over: EVERY, each: true },
  { name: 'options-repeated', over: ['udp'], each: true },
  { name: 'cancel', over: EVERY },
  { name: 'bye-before-answer', over: ALL },
  { name: 'merged-request', over: ALL },
  { name: 'refusals', over: ALL, seen: 0 },
  { name: 'outside-dialogs', over: ALL, seen: 0 },
  { name: 'lost-ack', over: ALL, fast: true, each: true },
  { name: 'final-unacknowledged', over: ['udp'], each: true },
  { name: 'final-on-a-connection', over: ['tcp', 'tls', 'ws'] },
  { name: 'route-set', over: CALLEE_6 },
  { name: 'target-refresh', over: EVERY },
  { name: 'cseq', over: ALL },
  { name: 'glare', over: ALL },
  { name: 'reliable-provisional', over: EVERY },
  { name: 'lost-prack', over: ALL, fast: true, each: true },
  { name: 'update', over: ALL },
  { name: 'session-refreshed-by-us', over: ALL, fast: true },
  { name: 'session-refreshed-by-update', over: ALL, fast: true },
  { name: 'session-refreshed-by-peer', over: ALL, fast: true },
  { name: 'session-too-small', over: ['udp', 'tcp'] },
  { name: 'refer-to-us', over: ALL },
  { name: 'replaces', over: ['udp', 'tcp'] },
  { name: 'requests-of-the-peer', over: EVERY, seen: 3 },
  { name: 'requests-of-ours', over: EVERY },
  { name: 'session-id', over: ['udp', 'tcp'] },
  { name: 'final-codes', peer: 'callee', over: CALLEE, codes: FINAL_CODES },
  { name: 'final-repeated', peer: 'callee', over: ['udp'], each: true },
  { name: 'answer-repeated', peer: 'callee', over: CALLEE_6, each: true },
  { name: 'loose-routes', peer: 'callee', over: CALLEE_6 },
  { name: 'strict-route', peer: 'callee', over: CALLEE },
  { name: 'forks', peer: 'callee', over: CALLEE_6 },
  { name: 'reliable-from-peer', peer: 'callee', over: CALLEE, each: true },
  { name: 'cancelled-by-us', peer: 'callee', over: CALLEE_6 },
  { name: 'cancel-crosses-answer', peer: 'callee', over: CALLEE },
  { name: 'update-by-us', peer: 'callee', over: CALLEE },
  { name: 'session-refreshed-by-caller', peer: 'callee', over: CALLEE, fast: true },
  { name: 'session-refreshed-by-callee', peer: 'callee', over: CALLEE, fast: true },
  { name: 'refer-by-us', peer: 'callee', over: CALLEE_6 },
  { name: 'options-by-us', peer: 'callee', over: CALLEE_6 },
  { name: 'message-by-us', peer: 'callee', over: CALLEE },
  { name: 'glare-with-callee', peer: 'callee', over: CALLEE },
]

interface Ground {
  readonly edge: Edge
  readonly app: ScenarioApp
  readonly traced: TracedMessage[]
  readonly port: (transport: Transport) => number
}

/** Transports that SIPp lacks, with their names in Via. */
const OWN_PLAYER: Partial<Record<Transport, 'TLS' | 'WS' | 'WSS'>> = { tls: 'TLS', ws: 'WS', wss: 'WSS' }

const plain = (transport: Transport): string => transport.replace('6', '')
const hostOf = (transport: Transport): string => (transport.endsWith('6') ? '[::1]' : '127.0.0.1')

const tls = await testTls()
const passed = new Map<string, Set<Transport>>()

async function ground(t: Test, fast: boolean): Promise<Ground> {
  const traced: TracedMessage[] = []
  const host = '127.0.0.1'
  const edge = await createEdge({
    listeners: [
      { protocol: 'udp', host, port: 0 },
      { protocol: 'tcp', host, port: 0, same_port: true },
      { protocol: 'tls', host, port: 0 },
      { protocol: 'ws', host, port: 0 },
      { protocol: 'wss', host, port: 0, same_port: true },
      { protocol: 'udp', host: '::1', port: 0 },
      { protocol: 'tcp', host: '::1', port: 0, same_port: true },
    ],
    tls,
    control: { host, port: 0, secret: 'cymru' },
    isConfiguredSource: () => true,
    onMessage: message => void traced.push(message),
    ...(fast ? { clock: testClock(10), limits: { handshake_ms: 200_000 } } : { clock: testClock() }),
  })
  const count = (direction: 'in' | 'out', port: number, matches: RegExp): number =>
    traced.filter(one => one.direction === direction && one.remote.port === port && matches.test(one.text)).length
  const app = await startApp(edge.control.port, {
    acks: port => count('out', port, /^ACK /),
    answered_byes: port => count('in', port, /^SIP\/2\.0 200 .*^CSeq: \d+ BYE/ms),
  })
  t.teardown(() => {
    app.close()
    edge.close()
  })
  const port = (transport: Transport): number =>
    edge.listeners.find(l => l.protocol === plain(transport) && l.ipv6 === (plain(transport) !== transport))?.port ?? 0
  return { edge, app, traced, port }
}

for (const fast of [false, true]) {
  const title = fast ? 'scenarios of timers, at ten times the speed' : 'scenarios of transactions and dialogs'
  t.test(title, { jobs: fast ? 16 : 4, timeout: 280_000 }, async t => {
    const world = await ground(t, fast)
    const scenarios = SCENARIOS.filter(s => (s.fast ?? false) === fast)
    const runs = scenarios.flatMap(scenario => scenario.over.map(transport => ({ scenario, transport })))
    await Promise.all(
      runs.map(({ scenario, transport }) =>
        t.test(`${scenario.name} over ${transport}`, { buffered: true }, async t => {
          const fault = await play(t, world, scenario, transport)
          t.equal(fault, undefined, 'the peer saw what the scenario says')
          if (fault === undefined) passed.set(scenario.name, (passed.get(scenario.name) ?? new Set()).add(transport))
        }),
      ),
    )
    t.same(world.app.faults, [], 'the application found no fault')
    for (const { name, peer, seen = 1, over } of scenarios) {
      if (peer !== 'callee')
        t.equal(
          world.app.calls.get(name) ?? 0,
          seen * over.length,
          `${name}: each request reaches the application once`,
        )
    }
    t.same(unacknowledged(world.traced), [], 'every final answer to an INVITE is acknowledged on its own transaction')
    await until('the edge has no dialogs left', () => {
      const { dialogs, pending } = world.edge.stats()
      return dialogs + pending === 0
    })
  })
}

t.test('every scenario passed over each of its transports', async t => {
  for (const { name, over } of SCENARIOS) {
    const marks = EVERY.map(one => (!over.includes(one) ? '   -' : passed.get(name)?.has(one) ? '  ok' : 'FAIL'))
    t.comment(`${name.padEnd(30)} ${EVERY.map((one, i) => `${one} ${marks[i]}`).join('   ')}`)
  }
  t.equal(
    [...passed.values()].reduce((sum, set) => sum + set.size, 0),
    SCENARIOS.flatMap(s => s.over).length,
  )
})

async function play(t: Test, world: Ground, scenario: Scenario, transport: Transport): Promise<string | undefined> {
  const { name, codes = [] } = scenario
  const steps_of_all = repeated(readFileSync(join('fixtures/sipp/edge', `${name}.xml`), 'utf8'), codes)
  const xml = plain(transport) === transport ? steps_of_all : steps_of_all.replaceAll('IP4 [local_ip]', 'IP6 ::1')
  const uri = (port: number): string => `sip:${name}@${hostOf(transport)}:${port};transport=${plain(transport)}`
  const placed = async (port: number): Promise<string | undefined> => {
    if (scenario.peer !== 'callee') return undefined
    return await world.app.call(name, uri(port), codes).then(
      () => undefined,
      error => String(error),
    )
  }
  const own = OWN_PLAYER[transport]
  if (!own) {
    const peer = await sipp(t, world, scenario, transport, xml)
    const fault = await placed(peer.port)
    return fault ?? (await peer.done)
  }
  const steps = readScenario(xml)
  const peer =
    scenario.peer === 'callee'
      ? await answerTls(tls, steps, scenario.each)
      : await callOver(own, steps, name, world.port(transport), scenario.each)
  t.teardown(() => peer.close())
  const fault = await placed(peer.port)
  return fault ?? (await peer.done)
}

/** Repeats the steps of a scenario for each status, in place of CODE. */
function repeated(xml: string, codes: readonly string[]): string {
  if (codes.length === 0) return xml
  const begin = xml.indexOf('>', xml.indexOf('<scenario')) + 1
  const end = xml.indexOf('</scenario>')
  const round = xml.slice(begin, end)
  return xml.slice(0, begin) + codes.map(code => round.replace('CODE', code)).join('') + xml.slice(end)
}

async function sipp(t: Test, world: Ground, scenario: Scenario, transport: Transport, xml: string) {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-scenario-'))
  const { port, args: ports } = await sippPorts()
  const { name, peer, each } = scenario
  const file = join(folder, 'scenario.xml')
  // Steps that count retransmissions take each of them as it comes.
  writeFileSync(file, each ? xml : withTransactions(xml))
  const args = [
    ...(peer === 'callee' ? [] : [`${hostOf(transport)}:${world.port(transport)}`]),
    ...['-sf', file, '-s', name, '-i', hostOf(transport).replace(/[[\]]/g, ''), ...ports, '-nostdin'],
    ...['-default_behaviors', 'abortunexp'],
    ...['-m', '1', '-t', plain(transport) === 'tcp' ? 't1' : 'u1'],
    ...['-recv_timeout', String(PATIENCE_MS)],
    ...['-trace_err', '-error_file', join(folder, 'errors')],
    ...(each && plain(transport) === 'udp' ? ['-nr'] : []),
  ]
  const child = spawn('sipp', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', chunk => {
    stderr += chunk
  })
  const exited = new Promise<number | null>(resolve => child.once('exit', resolve))
  t.teardown(async () => {
    if (child.exitCode === null) child.kill('SIGKILL')
    await exited
    rmSync(folder, { recursive: true, force: true })
  })
  const done = exited.then(code => {
    if (code === 0) return undefined
    const errors = join(folder, 'errors')
    return `exit ${code}: ${existsSync(errors) ? readFileSync(errors, 'utf8') : ''}${stderr}`
  })
  if (peer === 'callee') await untilListens(child, plain(transport) === 'tcp' ? 'tcp' : 'udp', port)
  return { port, done }
}

/** Returns the branches of our INVITEs whose final responses above 2xx and ACKs differ in number. */
function unacknowledged(traced: readonly TracedMessage[]): string[] {
  const finals = new Map<string, number>()
  const acks = new Map<string, number>()
  for (const { direction, text } of traced) {
    const branch = /\r\nVia:[^\r]*branch=([^;\r]+)/i.exec(text)?.[1] ?? ''
    if (direction === 'in' && /^SIP\/2\.0 [3-6][\s\S]*\r\nCSeq: *\d+ INVITE/i.test(text)) {
      finals.set(branch, (finals.get(branch) ?? 0) + 1)
    } else if (direction === 'out' && text.startsWith('ACK ')) acks.set(branch, (acks.get(branch) ?? 0) + 1)
  }
  return [...finals].filter(([branch, count]) => acks.get(branch) !== count).map(([branch]) => branch)
}

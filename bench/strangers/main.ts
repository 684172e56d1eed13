import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { openState, type State } from '../../core/state/index.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { CALLED, PEER_IP, startPlatform } from '../platform/platform.ts'

// Measures the cost of strangers that flood the platform from 200 addresses while a configured peer places calls. The
// platform must store nothing of them, keep nothing in memory and send them little. The peer's calls must be set up as
// fast as without the flood.
//
//   npm run bench -- strangers [--datagrams 60000] [--seconds 30] [--rate 10]

const MOST_SETUP_MS = 200
const MOST_MEMORY = 1.1
const MOST_BYTES = 1.5
const SOURCES = 200
const TICK_MS = 10
/** The pause before measuring memory, for the garbage collector to run. */
const REST_MS = 60_000

const { values: given } = parseArgs({
  options: {
    datagrams: { type: 'string', default: '60000' },
    seconds: { type: 'string', default: '30' },
    /** Calls per second of the configured peer. */
    rate: { type: 'string', default: '10' },
  },
})
const [datagrams, seconds, rate] = [given.datagrams, given.seconds, given.rate].map(Number) as [number, number, number]

const SDP = `v=0\r\no=- 1 1 IN IP4 ${PEER_IP}\r\ns=-\r\nc=IN IP4 ${PEER_IP}\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n`

/** Returns a scanner's request. Some lack the usual headers. */
function request(n: number, { host, port }: { host: string; port: number }): string {
  const method = ['INVITE', 'REGISTER', 'OPTIONS', 'INVITE'][n % 4] ?? ''
  const via = `Via: SIP/2.0/UDP ${host}:${port};branch=z9hG4bKs${n};rport`
  const begin = [`${method} sip:${n}@pbx SIP/2.0`, via]
  const parties = [`From: <sip:a@pbx>;tag=${n}`, `To: <sip:${n}@pbx>`, `Call-ID: stranger-${n}`, `CSeq: 1 ${method}`]
  if (n % 4 === 3) return [...begin, ...parties, '\r\n'].join('\r\n')
  const usual = ['Max-Forwards: 70', `Contact: <sip:a@${host}:${port}>`, 'User-Agent: friendly-scanner']
  const body = method === 'INVITE' ? SDP : ''
  return [...begin, ...parties, ...usual, `Content-Length: ${body.length}`, '', body].join('\r\n')
}

async function strangers(): Promise<Socket[]> {
  const sockets = Array.from({ length: SOURCES }, () => createSocket('udp4'))
  for (const [i, socket] of sockets.entries()) {
    socket.bind(0, `127.1.0.${i + 1}`)
    await once(socket, 'listening')
  }
  return sockets
}

/** Sends the requests at a steady rate. Resolves with the bytes of both directions. */
async function flood(sockets: readonly Socket[], port: number): Promise<{ sent: number; received: number }> {
  const bytes = { sent: 0, received: 0 }
  for (const socket of sockets) socket.on('message', data => (bytes.received += data.length))
  const began = performance.now()
  for (let n = 0; n < datagrams; ) {
    const due = Math.min(datagrams, Math.ceil(((performance.now() - began) / 1000) * (datagrams / seconds)))
    for (; n < due; n++) {
      const socket = sockets[n % sockets.length] as Socket
      const { address, port: own } = socket.address()
      const text = request(n, { host: address, port: own })
      bytes.sent += text.length
      socket.send(text, port, '127.0.0.1')
    }
    await pause(TICK_MS)
  }
  return bytes
}

const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

/** Places calls until `until` resolves. Returns the times from INVITE to 200 in milliseconds. */
async function callAll(port: number, until: Promise<unknown>): Promise<{ times: number[]; failed: number }> {
  const agent = await UserAgent.open({ listeners: [{ protocol: 'udp', host: PEER_IP, port: 0 }] })
  const times: number[] = []
  let failed = 0
  const open = new Set<Promise<void>>()
  let over = false
  void until.then(() => (over = true))
  while (!over) {
    const began = performance.now()
    const done = new Promise<void>(resolve => {
      const call = agent.call(`sip:${CALLED}@127.0.0.1:${port}`, {
        body: SDP,
        events: {
          answered: () => {
            times.push(performance.now() - began)
            call.hangUp()
          },
          failed: () => {
            failed++
            resolve()
          },
          ended: () => resolve(),
        },
      })
    }).finally(() => open.delete(done))
    open.add(done)
    await pause(1000 / rate)
  }
  await Promise.all(open)
  agent.close()
  return { times, failed }
}

const quantile = (values: readonly number[], q: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? Number.NaN

/** Returns the resident memory in MiB. */
const memory = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

/** Adds a digest credential, so that the platform challenges strangers. Its password is unknown. */
async function addCredential(state: State): Promise<void> {
  const { id } = await state.db.selectFrom('trunk').select('id').executeTakeFirstOrThrow()
  await state.transaction(async trx => {
    const nothing = { new_applied_at: null, previous_retires_at: null, revoked_at: null, rotated_from_id: null }
    const credential = {
      id: 'dig_bench',
      trunk_id: id,
      realm: 'sip.bench.example',
      username: 'bench',
      enabled: 1 as const,
      ha1_md5: '0'.repeat(32),
      ha1_sha256: '0'.repeat(64),
      valid_until: null,
      ...nothing,
      created_at: new Date().toISOString(),
    }
    await trx.insertInto('digest_credential').values(credential).execute()
    await bumpConfiguration(trx)
  })
  // Each process checks for changes once a second.
  await pause(2_500)
}

async function rowsOf(state: State): Promise<number> {
  const { n } = await state.db
    .selectFrom('sip_message')
    .select(eb => eb.fn.countAll<number>().as('n'))
    .where('sip_call_id', 'like', 'stranger-%')
    .executeTakeFirstOrThrow()
  return Number(n)
}

const platform = await startPlatform()
const state = await openState({ data_dir: platform.folder })
try {
  await addCredential(state)
  const edge = platform.pids['edge'] ?? 0
  const warm = await callAll(platform.sip_port, pause(10_000))
  await pause(REST_MS / 4)
  const before = memory(edge)
  const sockets = await strangers()
  const flooding = flood(sockets, platform.sip_port)
  const calls = await callAll(platform.sip_port, flooding)
  const { sent, received } = await flooding
  const at_end = memory(edge)
  await pause(REST_MS)
  const after = memory(edge)
  for (const socket of sockets) socket.close()
  const rows = await rowsOf(state)
  const setup = {
    quiet_p99_ms: quantile(warm.times, 0.99),
    p50_ms: quantile(calls.times, 0.5),
    p99_ms: quantile(calls.times, 0.99),
  }
  const bars = [
    ['rows of strangers', rows, 0],
    ['memory of the edge after the flood, times what it was', after / before, MOST_MEMORY],
    ['set-up of a peer during the flood, p99 ms', setup.p99_ms, MOST_SETUP_MS],
    ['calls of the peer that failed', calls.failed, 0],
    ['bytes to strangers, times those from them', received / sent, MOST_BYTES],
  ] as const
  console.log(`${datagrams} datagrams in ${seconds} s from ${SOURCES} addresses, ${calls.times.length} calls of a peer`)
  console.log(
    `memory of the edge ${before.toFixed(0)} MB before, ${at_end.toFixed(0)} at its end, ${after.toFixed(0)} after`,
  )
  console.log(
    `set-up p99 ${setup.quiet_p99_ms.toFixed(0)} ms without strangers, p50 ${setup.p50_ms.toFixed(0)} ms with them`,
  )
  for (const [name, value, most] of bars)
    console.log(`${value <= most ? 'passed' : 'MISSED'}  ${name}: ${Number(value.toFixed(2))} (limit ${most})`)
  const missed = bars.some(([, value, most]) => !(value <= most))
  mkdirSync('bench/results', { recursive: true })
  const results = {
    at: new Date().toISOString(),
    datagrams,
    seconds,
    sent,
    received,
    rows,
    before,
    at_end,
    after,
    setup,
  }
  writeFileSync('bench/results/strangers.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exitCode = missed ? 1 : 0
} finally {
  await state.close()
  await platform.stop()
}

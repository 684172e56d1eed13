import { readdirSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { seeded } from '../../../bench/random.ts'
import { unsupportedTags } from '../../../core/domain/calls/option-tags.ts'
import { Apps } from '../../../signaling/edge/agent/apps.ts'
import { AgentCore } from '../../../signaling/edge/agent/core.ts'
import { ClientSide } from '../../../signaling/edge/agent/uac.ts'
import { ServerSide } from '../../../signaling/edge/agent/uas.ts'
import { ControlClient } from '../../../signaling/edge/control/client.ts'
import { parseCommandMessage, splitPayload } from '../../../signaling/edge/control/command.ts'
import { FrameReader } from '../../../signaling/edge/control/framing.ts'
import { StreamFramer } from '../../../signaling/edge/sip/stream.ts'
import { EdgeStack } from '../../../signaling/edge/stack.ts'
import type { Listener, Received } from '../../../signaling/edge/transport/types.ts'
import { tortureMessages } from '../../conformance/edge/torture.ts'
import { readTranscript } from '../../conformance/edge/transcript.ts'
import { ManualClock } from './manual-clock.ts'
import { mutate } from './mutate.ts'

// Feeds mutated messages to the whole edge in one process: parser, framer, transactions, dialogs, control link.
// Nothing may throw, hang or leak. Options: `--count N` messages, `--seed N`. Exits with 1 on a finding.

const count = option('--count', 1_000_000)
const seed = option('--seed', Date.now() % 1_000_000_000)
const random = seeded(seed)
const findings: string[] = []
const clock = new ManualClock()
let current = ''

const seeds = [
  ...(['rfc4475.txt', 'rfc5118.txt'] as const).flatMap(file =>
    tortureMessages(file).map(m => m.bytes.toString('latin1')),
  ),
  ...readdirSync('fixtures/drachtio-transcripts')
    .filter(name => name.endsWith('.txt'))
    .flatMap(name => readTranscript(join('fixtures/drachtio-transcripts', name)))
    .flatMap(event => (event.kind === 'message' && /^[NS]>[NS]$/.test(event.direction) ? [event.text] : [])),
]
const commands = readdirSync('fixtures/drachtio-transcripts')
  .filter(name => name.endsWith('.txt'))
  .flatMap(name => readTranscript(join('fixtures/drachtio-transcripts', name)))
  .flatMap(event => (event.kind === 'message' && event.direction === 'C>S' ? [event.text] : []))

const edge = await openEdge()
console.log(`seed ${seed}, ${seeds.length} seed messages, ${count} mutations`) // no-tidy
const started = performance.now()
for (let i = 0; i < count && findings.length < 10; i++) {
  const base = seeds[Math.floor(random() * seeds.length)] ?? ''
  current = random() < 0.05 ? base : mutate(base, seeds, random)
  const before = performance.now()
  step(i)
  const took = performance.now() - before
  if (took > 2_000) finding(`took ${took.toFixed(0)} ms`)
  clock.advance(2)
  // The control link flushes replies to the application in microtasks.
  if (i % 64 === 0) await Promise.resolve()
}
// Everything that is open must end by itself within these 20 minutes. Ringing lasts longest: 15 minutes.
for (let i = 0; i < 1_200; i++) {
  clock.advance(1_000)
  if (i % 16 === 0) await Promise.resolve()
}
const left = {
  dialogs: edge.core.legs.size,
  pending: edge.core.servers.size + edge.core.clients.size,
  server_transactions: edge.stack.transactions.server_count,
  client_transactions: edge.stack.transactions.client_count,
}
// Dialogs that the application answered stay open until one side hangs up. Nothing else may stay.
if (left.pending + left.server_transactions + left.client_transactions > 0)
  finding(`left behind: ${JSON.stringify(left)}`)
const seconds = (performance.now() - started) / 1000
const { malformed, stray, received } = edge.stack.transactions.counters
console.log(`${count} messages in ${seconds.toFixed(1)} s: ${received} read, ${malformed} malformed, ${stray} stray`) // no-tidy
console.log(`${findings.length} findings, left: ${JSON.stringify(left)}`) // no-tidy
process.exit(findings.length > 0 ? 1 : 0)

function step(i: number): void {
  const received: Received = {
    text: current,
    protocol: random() < 0.8 ? 'udp' : 'tcp',
    source: { host: `192.0.2.${i % 250}`, port: 5060 },
    listener: edge.listener,
    connection: undefined,
  }
  try {
    edge.stack.transactions.receive(received)
    if (i % 8 === 0) stream(current)
    if (i % 8 === 4) command()
  } catch (error) {
    finding(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
}

// Feeds the bytes to both framers in random pieces.
function stream(text: string): void {
  const framer = new StreamFramer(65_536)
  const frames = new FrameReader(100_000)
  let at = 0
  while (at < text.length) {
    const size = 1 + Math.floor(random() * 200)
    framer.push(text.slice(at, at + size))
    frames.push(text.slice(at, at + size))
    at += size
  }
}

function command(): void {
  const base = commands[Math.floor(random() * commands.length)] ?? ''
  edge.command(random() < 0.3 ? base : mutate(base, commands, random))
}

function finding(what: string): void {
  findings.push(what)
  console.error(`finding: ${what}\nmessage: ${JSON.stringify(current.slice(0, 3_000))}`)
}

async function openEdge() {
  let server: ServerSide | undefined
  const stack = await EdgeStack.open({
    // Without a listener the stack sends nothing, which is the cheapest network.
    listeners: [],
    clock,
    log: {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: facts => finding(String((facts as { err?: Error }).err?.stack ?? facts)),
    },
    dns: {
      naptr: () => Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' })),
      srv: () => Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' })),
      addresses: () => Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' })),
    },
    user: {
      request: transaction => server?.request(transaction),
      ack: (message, received) => server?.ack(message, received),
      cancel: (cancel, invite) => server?.cancel(cancel, invite),
    },
  })
  const apps = new Apps()
  const core = new AgentCore(stack, apps, {
    orphan_grace_ms: 5_000,
    session_refresher: 'none',
    unsupported: unsupportedTags,
    ringing_ms: 900_000,
    no_response_ms: undefined,
  })
  server = new ServerSide(core, {
    admits: () => true,
    answered: () => undefined,
    bind: () => undefined,
  })
  const client_side = new ClientSide(core, { hopFor: () => undefined })
  const app = application(core, server)
  apps.all.add(app)
  const server_side = server
  return {
    stack,
    core,
    listener: { protocol: 'udp', host: '127.0.0.1', port: 5060, advertised_host: '127.0.0.1', ipv6: false } as Listener,
    command: (payload: string): void => {
      const { fields, text } = splitPayload(payload)
      const message = parseCommandMessage(text)
      if (!message) return
      const [, , first = '', second = '', third = ''] = fields
      if (message.status !== 0) server_side.respond(app, 'x', first, message)
      else if (message.method === 'CANCEL') client_side.cancel(app, 'x', first, message)
      else client_side.request(app, 'x', second, third, message)
    },
  }
}

// Returns an application that answers each request with a random status or not at all.
function application(core: AgentCore, server: ServerSide): ControlClient {
  const statuses = [0, 100, 180, 183, 200, 200, 200, 202, 302, 404, 486, 500, 603]
  const socket = new Duplex({
    read: () => undefined,
    write: (_chunk, _encoding, done) => done(),
  })
  const client = new ControlClient({
    socket: Object.assign(socket, { setNoDelay: () => socket }) as unknown as Socket,
    clock,
    command_bytes: 1_000_000,
    unsent_bytes: 1_000_000_000,
    payload: () => undefined,
    closed: () => undefined,
  })
  for (const verb of ['invite', 'options', 'register', 'message', 'info', 'subscribe', 'notify', 'publish', 'refer']) {
    client.verbs.add(verb)
  }
  const send = client.send.bind(client)
  client.send = (payload: string): void => {
    send(payload)
    const { fields } = splitPayload(payload)
    if (fields[1] !== 'sip' || fields[2] !== 'network') return
    const status = statuses[Math.floor(random() * statuses.length)] ?? 0
    const pending = core.servers.get(fields[8] ?? '')
    if (status === 0 || !pending) return
    const message = parseCommandMessage(`SIP/2.0 ${status} X\r\ncseq: 1 ${pending.transaction.method}\r\n\r\n`)
    if (message) queueMicrotask(() => server.respond(client, 'y', pending.id, message))
  }
  return client
}

function option(name: string, standard: number): number {
  const at = process.argv.indexOf(name)
  return at < 0 ? standard : Number(process.argv[at + 1])
}

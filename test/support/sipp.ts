import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { busyFor } from './busy.ts'
import type { Test } from './harness/index.ts'
import { freeRow, UNHEARD_PORT } from './ports.ts'
import { withTransactions } from './sipp-transactions.ts'
import { PATIENCE_MS, until } from './wait.ts'

/** A scripted SIP peer: Debian's SIPp, with a scenario made of the steps below. */
export interface SippPeer {
  readonly port: number
  /** Resolves when all calls have ended; `ok` is false when one deviated from the scenario. */
  readonly done: Promise<{ readonly ok: boolean; readonly messages: string; readonly errors: string }>
  /** Returns all messages so far, as they crossed the wire. */
  messages(): string
  /** Returns the Call-IDs of its calls so far. An INVITE that came twice is one call. */
  calls(): readonly string[]
  /** Makes its newest call continue from the step `cued`; only for peers over UDP. */
  cue(): Promise<void>
  /** Ends it, and with it `done`. */
  stop(): void
}

interface SippOptions {
  /** Steps of the scenario, in order. */
  readonly steps: readonly string[]
  /** Where to call. Without it the peer waits for calls. */
  readonly to?: { readonly host: string; readonly port: number }
  /** User part of the request URI. */
  readonly service?: string
  readonly transport?: 'udp' | 'tcp'
  readonly local_ip?: string
  /** The number of calls to place or to wait for. Our OPTIONS do not count. */
  readonly calls?: number
  /** Calls per second. */
  readonly rate?: number
  /** Values of the steps' [keys]. By default no socket listens on `rtp_port`. */
  readonly keys?: Readonly<Record<string, string | number>>
  /** Echoes packets that reach `[media_port]`. */
  readonly rtp_echo?: boolean
  /** The step with which a waiting peer answers our keep-alives; by default a bare 200. */
  readonly options_answer?: string
  /** For `tells` and `awaits`; all peers of a story share one. */
  readonly signals?: Signals
}

/** Signals between the peers and the test, outside SIP. Each is a file that is empty until the signal is sent. */
export interface Signals {
  readonly folder: string
  tell(what: string): void
}

export function signals(t: Test): Signals {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-signals-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'told'), TOLD)
  return { folder, tell: what => writeFileSync(join(folder, what), TOLD) }
}

const TOLD = 'told'

/**
 * Reserves the ports of an instance. It needs one for SIP; several for media, which it binds even without media and
 * cannot run without; and one for control, by default the first free port from 8888 on all addresses.
 */
export async function sippPorts(): Promise<{ readonly port: number; readonly args: readonly string[] }> {
  const port = await freeRow(6)
  return { port, args: ['-p', String(port), '-mp', String(port + 1), '-cp', String(port + 2)] }
}

/** The `calls` of a peer that takes calls until the end of the test and survives failed calls. */
export const MANY = 1000

/** How long a peer may live from its start: as long as a test file (scripts/test/process.mjs). */
const LIFE_SECONDS = 900

/**
 * Starts a peer. It is stopped at the end of the test. One that places a single call places it again while the platform
 * is too busy to decide: SIPp itself ignores the 503 and waits on.
 */
export async function sipp(t: Test, options: SippOptions): Promise<SippPeer> {
  const { to, calls = 1, local_ip = '127.0.0.1', transport = 'udp' } = options
  const { port, args } = await sippPorts()
  let stopped = false
  let run = start(options, args)
  const stop = (): void => {
    stopped = true
    run.kill('SIGKILL')
  }
  t.teardown(async () => {
    stop()
    await run.ended
    run.forget()
  })
  if (!to) await untilListens(run.child, transport, port)
  const last = async (): Promise<Awaited<SippPeer['done']>> => {
    for (const begun_ms = performance.now(); ; ) {
      const ended = await run.ended
      const again_ms = to && calls === 1 && !ended.ok ? refusedForBusy(ended.messages) : null
      if (again_ms === null || performance.now() - begun_ms > PATIENCE_MS) return ended
      await new Promise(resolve => setTimeout(resolve, again_ms))
      if (stopped) return ended
      run.forget()
      run = start(options, args)
    }
  }
  return {
    port,
    done: last(),
    messages: () => run.read('messages'),
    calls: () => callsIn(run.read('messages')),
    cue: () => cue({ host: local_ip, port }, run.read('messages')),
    stop,
  }
}

/** Returns after how long to call again when the answer to the INVITE says so, else null (see `busyFor`). */
function refusedForBusy(messages: string): number | null {
  const [refusal = ''] = /^SIP\/2\.0 503 [\s\S]*?\r?\n\r?\n/m.exec(messages) ?? []
  const said = (name: string): string => new RegExp(`^${name}:.*`, 'im').exec(refusal)?.[0] ?? ''
  return refusal === '' ? null : busyFor(503, said('Reason'), said('Retry-After'))
}

/** A process of SIPp, with a folder of its own. */
function start(options: SippOptions, ports: readonly string[]) {
  const { to, service = 'service', calls = 1, rate = 10, local_ip = '127.0.0.1' } = options
  const folder = mkdtempSync(join(tmpdir(), 'strowger-sipp-'))
  const scenario = join(folder, 'scenario.xml')
  const steps = withSignals(
    to ? options.steps : alsoAnswersOptions(options.steps, calls, options.options_answer),
    options.signals?.folder,
  )
  writeFileSync(scenario, `<?xml version="1.0"?>\n<scenario name="test">\n${withTransactions(steps)}\n</scenario>\n`)
  const args = [
    ...(to ? [`${to.host}:${to.port}`] : []),
    ...['-sf', scenario, '-i', local_ip, ...ports],
    ...(to ? ['-m', String(calls), '-r', String(rate)] : []),
    ...['-s', service, '-nostdin', '-nd'],
    ...(options.rtp_echo ? ['-rtp_echo'] : []),
    ...['-t', options.transport === 'tcp' ? 't1' : 'u1'],
    ...['-timeout', `${LIFE_SECONDS}s`, '-timeout_error', '-recv_timeout', String(PATIENCE_MS)],
    ...['-trace_msg', '-message_file', join(folder, 'messages'), '-trace_err', '-error_file', join(folder, 'errors')],
    ...Object.entries({ rtp_port: UNHEARD_PORT, ...options.keys }).flatMap(([name, value]) => [
      '-key',
      name,
      String(value),
    ]),
  ]
  const child = spawn('sipp', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', chunk => {
    stderr += chunk
  })
  const read = (name: string): string =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : ''
  const kill = (signal: NodeJS.Signals): void => {
    if (child.exitCode === null) child.kill(signal)
  }
  // When a call fails, a peer that waits for a number of calls would otherwise wait until its time limit, and one that
  // was refused for the answer that it expects.
  const looking = setInterval(() => {
    if (calls < MANY && /Aborting call|timeout/i.test(read('errors'))) kill('SIGUSR1')
    if (to && calls === 1 && refusedForBusy(read('messages')) !== null) kill('SIGKILL')
  }, 500)
  const ended = once(child, 'exit').then(([code]) => {
    clearInterval(looking)
    return { ok: code === 0, messages: read('messages'), errors: `${read('errors')}${stderr}` }
  })
  return { child, read, kill, ended, forget: () => rmSync(folder, { recursive: true, force: true }) }
}

const callsIn = (messages: string): string[] => [
  ...new Set([...messages.matchAll(/^INVITE [\s\S]*?^Call-ID: (\S+)/gim)].map(([, id = '']) => id)),
]

/** Sends an INFO to the newest call. SIPp accepts a message from any address for the call that its Call-ID names. */
async function cue(at: { readonly host: string; readonly port: number }, messages: string): Promise<void> {
  const call_ids = callsIn(messages)
  if (call_ids.length === 0) throw new Error('a SIPp without a call cannot be cued')
  const socket = createSocket(isIPv6(at.host) ? 'udp6' : 'udp4')
  const text = [
    'INFO sip:cue@cue.invalid SIP/2.0',
    'Via: SIP/2.0/UDP cue.invalid;branch=z9hG4bKcue',
    'From: <sip:cue@cue.invalid>;tag=cue',
    'To: <sip:cue@cue.invalid>',
    `Call-ID: ${call_ids.at(-1)}`,
    'CSeq: 1 INFO',
    'Content-Length: 0',
  ]
  await new Promise(resolve => socket.send(`${text.join('\r\n')}\r\n\r\n`, at.port, at.host, resolve))
  socket.close()
}

/** States of sockets in /proc/net: TCP_LISTEN, and TCP_CLOSE, which an open UDP socket has. */
const OPEN_STATES = { tcp: '0A', udp: '07' } as const

/**
 * Waits until the kernel lists the port as open. A row of /proc/net has the local address, the remote one and the
 * state; rows of ended connections keep a port for a minute.
 */
export async function untilListens(child: ChildProcess, transport: 'udp' | 'tcp', port: number): Promise<void> {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const isOpen = (row: string): boolean => {
    const [, address = '', , state] = row.trim().split(/\s+/)
    return address.endsWith(local) && state === OPEN_STATES[transport]
  }
  await until(`sipp listens on ${port}`, () => {
    if (child.exitCode !== null) throw new Error(`sipp ended with exit code ${child.exitCode}`)
    return [transport, `${transport}6`].some(kind => readFileSync(`/proc/net/${kind}`, 'utf8').split('\n').some(isOpen))
  })
}

/**
 * Adds answers to our OPTIONS keep-alives, any number of which reach a peer that waits for calls. The steps count calls
 * themselves, because SIPp's limit would count each OPTIONS as a call.
 */
const alsoAnswersOptions = (steps: readonly string[], calls: number, answer = callee.respond(200, 'OK')): string[] => [
  '<Global variables="through"/>',
  '<recv request="OPTIONS" optional="true" next="1"/>',
  ...steps,
  '<nop><action><add assign_to="through" value="1"/>',
  `<test assign_to="enough" variable="through" compare="greater_than" value="${calls - 1}"/></action></nop>`,
  '<nop next="2" test="enough"/>',
  '<nop next="3"/>',
  '<label id="2"/>',
  '<nop><action><exec int_cmd="stop_gracefully"/></action></nop>',
  '<nop next="3"/>',
  '<label id="1"/>',
  answer,
  '<label id="3"/>',
]

const FOLDER = '{signals}'

function withSignals(steps: readonly string[], folder: string | undefined): string {
  const text = steps.join('\n')
  const awaited = [...text.matchAll(/\[file name=\{signals\}\/(\w+)\]/g)].map(([, what = '']) => what)
  if (folder === undefined) {
    if (text.includes(FOLDER)) throw new Error('a story with signals needs a folder for them')
    return text
  }
  for (const what of awaited) appendFileSync(join(folder, what), '')
  return text.replaceAll(FOLDER, folder)
}

/** The steps of a scenario. Keys in [brackets] are SIPp's; `rtp_port` and `from` come from `keys`. */
const sdp = `v=0
o=peer 53655765 2353687637 IN IP[local_ip_type] [local_ip]
s=-
c=IN IP[media_ip_type] [local_ip]
t=0 0
m=audio [rtp_port] RTP/AVP 0 8 101
a=rtpmap:0 PCMU/8000
a=rtpmap:8 PCMA/8000
a=rtpmap:101 telephone-event/8000
a=fmtp:101 0-15
a=ptime:20
a=sendrecv`

const cdata = (text: string): string => `<![CDATA[\n${text}\n]]>`
const length = '\nContent-Length: [len]\n'

export const caller = {
  invite: (options: { sdp?: string; headers?: string } = {}): string =>
    `<send retrans="500">${cdata(`INVITE sip:[service]@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:[from]@[local_ip]:[local_port]>;tag=[pid]peer[call_number]
To: <sip:[service]@[remote_ip]:[remote_port]>
Call-ID: [call_id]
CSeq: 1 INVITE
Contact: <sip:peer@[local_ip]:[local_port];transport=[transport]>
Max-Forwards: 70${options.headers ? `\n${options.headers}` : ''}
Content-Type: application/sdp${length}
${options.sdp ?? sdp}`)}</send>`,
  ack: `<send>${cdata(`ACK [next_url] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
[routes]
From: <sip:[from]@[local_ip]:[local_port]>;tag=[pid]peer[call_number]
[last_To:]
Call-ID: [call_id]
CSeq: 1 ACK
Max-Forwards: 70
Content-Length: 0
`)}</send>`,
  /** The ACK of a failure belongs to the INVITE's transaction and has its branch (RFC 3261 §17.1.1.3). */
  ackOfFailure: `<send>${cdata(`ACK sip:[service]@[remote_ip]:[remote_port] SIP/2.0
[last_Via:]
From: <sip:[from]@[local_ip]:[local_port]>;tag=[pid]peer[call_number]
[last_To:]
Call-ID: [call_id]
CSeq: 1 ACK
Max-Forwards: 70
Content-Length: 0
`)}</send>`,
  cancel: `<send retrans="500">${cdata(`CANCEL sip:[service]@[remote_ip]:[remote_port] SIP/2.0
[last_Via:]
From: <sip:[from]@[local_ip]:[local_port]>;tag=[pid]peer[call_number]
To: <sip:[service]@[remote_ip]:[remote_port]>
Call-ID: [call_id]
CSeq: 1 CANCEL
Reason: SIP;cause=200;text="Call completed elsewhere"
Max-Forwards: 70
Content-Length: 0
`)}</send>`,
  bye: `<send retrans="500">${cdata(`BYE [next_url] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
[routes]
From: <sip:[from]@[local_ip]:[local_port]>;tag=[pid]peer[call_number]
[last_To:]
Call-ID: [call_id]
CSeq: 2 BYE
Max-Forwards: 70
Content-Length: 0
`)}</send>`,
}

export const callee = {
  respond: (status: number, reason: string, options: { sdp?: boolean; headers?: string } = {}): string =>
    `<send${status === 200 && options.sdp ? ' retrans="500"' : ''}>${cdata(`SIP/2.0 ${status} ${reason}
[last_Via:]
[last_From:]
[last_To:];tag=[pid]callee[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: <sip:callee@[local_ip]:[local_port];transport=[transport]>${options.headers ? `\n${options.headers}` : ''}
${options.sdp ? `Content-Type: application/sdp${length}\n${sdp}` : 'Content-Length: 0\n'}`)}</send>`,
  /** Answers a request within the dialog, whose To already has a tag. */
  ok: `<send>${cdata(`SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:]
[last_Call-ID:]
[last_CSeq:]
Content-Length: 0
`)}</send>`,
}

export const receive = {
  response: (status: number, options: { optional?: boolean; dialog?: boolean } = {}): string =>
    `<recv response="${status}"${options.optional ? ' optional="true"' : ''}${options.dialog ? ' rrs="true"' : ''}/>`,
  request: (method: string): string => `<recv request="${method}"${method === 'INVITE' ? ' rrs="true"' : ''}/>`,
}

/** Waits for `SippPeer.cue`. The cue changes `[last_...]`, so later steps must use values kept before it. */
export const cued = receive.request('INFO')

/** Sends a signal to the peer that waits in `awaits`. */
export const tells = (what: string): string =>
  `<nop><action><exec command="cp ${FOLDER}/told ${FOLDER}/${what}"/></action></nop>`

let waits = 0

/** Waits for a signal from the test or the other peer, over any transport. `[last_...]` do not change. */
export const awaits = (what: string): string => {
  const again = 1000 + 2 * waits++
  return `<label id="${again}"/>
<pause milliseconds="50"/>
<nop><action><assignstr assign_to="sign" value="[file name=${FOLDER}/${what}]"/>
<ereg regexp="${TOLD}" search_in="var" variable="sign" assign_to="arrived"/></action></nop>
<nop next="${again + 1}" test="arrived"/>
<nop next="${again}"/>
<label id="${again + 1}"/>`
}

export const pause = (ms: number): string => `<pause milliseconds="${ms}"/>`
/** Receives 100, 180 and 183, each optional. */
export const provisionals = [100, 180, 183].map(status => receive.response(status, { optional: true }))

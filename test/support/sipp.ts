import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './ports.ts'
import { until } from './wait.ts'

/** A scripted SIP peer: Debian's SIPp, with a scenario put together from the steps below. */
export interface SippPeer {
  readonly port: number
  /** Resolves when all calls are through; `ok` is false when one did not go as the scenario says. */
  readonly done: Promise<{ readonly ok: boolean; readonly messages: string; readonly errors: string }>
  /** All messages so far, as they crossed the wire. */
  messages(): string
}

export interface SippOptions {
  /** Steps of the scenario, in order. */
  readonly steps: readonly string[]
  /** Who is called; none makes a peer that waits for calls. */
  readonly to?: { readonly host: string; readonly port: number }
  /** User part of the request URI. */
  readonly service?: string
  readonly transport?: 'udp' | 'tcp'
  readonly local_ip?: string
  readonly calls?: number
  /** Calls a second. */
  readonly rate?: number
  readonly keys?: Readonly<Record<string, string | number>>
  readonly limit_seconds?: number
  /** Sends back whatever comes to `[media_port]`. */
  readonly rtp_echo?: boolean
  /** How a waiting peer answers our keep-alives, in place of a bare 200. */
  readonly options_answer?: string
}

/** Starts a peer and stops it at the end of the test, whatever happened. */
export async function sipp(t: Test, options: SippOptions): Promise<SippPeer> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-sipp-'))
  const scenario = join(folder, 'scenario.xml')
  const steps = options.to ? options.steps : alsoAnswersOptions(options.steps, options.options_answer)
  writeFileSync(scenario, `<?xml version="1.0"?>\n<scenario name="test">\n${steps.join('\n')}\n</scenario>\n`)
  const port = await freePort()
  const { to, service = 'service', calls = 1, rate = 10, limit_seconds = 40, local_ip = '127.0.0.1' } = options
  const args = [
    ...(to ? [`${to.host}:${to.port}`] : []),
    ...['-sf', scenario, '-i', local_ip, '-p', String(port), '-mp', String(await freePort())],
    ...['-m', String(calls), '-r', String(rate), '-s', service, '-nostdin', '-nd'],
    ...(options.rtp_echo ? ['-rtp_echo'] : []),
    ...['-t', options.transport === 'tcp' ? 't1' : 'u1'],
    ...['-timeout', `${limit_seconds}s`, '-timeout_error', '-recv_timeout', String(limit_seconds * 1000)],
    ...['-trace_msg', '-message_file', join(folder, 'messages'), '-trace_err', '-error_file', join(folder, 'errors')],
    ...Object.entries(options.keys ?? {}).flatMap(([name, value]) => ['-key', name, String(value)]),
  ]
  const child = spawn('sipp', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', chunk => {
    stderr += chunk
  })
  const read = (name: string): string =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : ''
  const exited = new Promise<number | null>(resolve => child.once('exit', code => resolve(code)))
  t.teardown(async () => {
    if (child.exitCode === null) child.kill('SIGKILL')
    await exited
    rmSync(folder, { recursive: true, force: true })
  })
  const done = exited.then(code => ({
    ok: code === 0,
    messages: read('messages'),
    errors: `${read('errors')}${stderr}`,
  }))
  if (!to) await listening(child, port)
  return { port, done, messages: () => read('messages') }
}

/** A waiting peer listens when the kernel says so: /proc/net/udp and tcp list local ports in hexadecimal. */
async function listening(child: ChildProcess, port: number): Promise<void> {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')} `
  await until(`sipp listens on ${port}`, () => {
    if (child.exitCode !== null) throw new Error(`sipp ended with exit code ${child.exitCode}`)
    return ['udp', 'tcp', 'udp6', 'tcp6'].some(kind => readFileSync(`/proc/net/${kind}`, 'utf8').includes(wanted))
  })
}

/** Our OPTIONS keep-alives reach whoever waits for calls, and each counts as one of its `calls`. */
const alsoAnswersOptions = (steps: readonly string[], answer = callee.respond(200, 'OK')): string[] => [
  '<recv request="OPTIONS" optional="true" next="1"/>',
  ...steps,
  '<nop next="2"/>',
  '<label id="1"/>',
  answer,
  '<label id="2"/>',
]

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
  /** The ACK of a failure belongs to the INVITE's transaction: the same branch (RFC 3261 §17.1.1.3). */
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
  /** Answers a request inside the dialog, whose To has its tag already. */
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

export const pause = (ms: number): string => `<pause milliseconds="${ms}"/>`
/** 100 and 18x may come or not. */
export const provisionals = [100, 180, 183].map(status => receive.response(status, { optional: true }))

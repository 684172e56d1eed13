// Debian's rtpengine in userspace with one worker, as an engine of the contract in bench/media-engine.js.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Bencoded, NgClient } from './ng.ts'

const CODECS = {
  PCMU: { payload_type: 0, map: 'PCMU/8000', extra: [] },
  PCMA: { payload_type: 8, map: 'PCMA/8000', extra: [] },
  G722: { payload_type: 9, map: 'G722/8000', extra: [] },
  G729: { payload_type: 18, map: 'G729/8000', extra: ['a=fmtp:18 annexb=no'] },
  OPUS: { payload_type: 96, map: 'opus/48000/2', extra: ['a=fmtp:96 useinbandfec=0'] },
} as const
type CodecName = keyof typeof CODECS
const FAR_CODEC: Record<string, CodecName> = { pcma: 'PCMA', g722: 'G722', g729: 'G729', opus: 'OPUS' }
const SUITE: Record<string, readonly [string, number]> = {
  'srtp-sdes': ['AES_CM_128_HMAC_SHA1_80', 30],
  'srtp-gcm': ['AEAD_AES_128_GCM', 28],
}

const { values } = parseArgs({
  options: {
    mode: { type: 'string', default: 'relay' },
    calls: { type: 'string', default: '1' },
    'load-base': { type: 'string', default: '20000' },
    'load-socks': { type: 'string', default: '16' },
    'engine-base': { type: 'string', default: '46000' },
    'legs-out': { type: 'string', default: 'legs.csv' },
    'control-port': { type: 'string', default: '22322' },
  },
})
const calls = Number(values.calls)
const base = Number(values['engine-base'])
const control_port = Number(values['control-port'])
const far = FAR_CODEC[values.mode] ?? 'PCMU'
const suite = SUITE[values.mode]
const recordings = values.mode === 'record' ? mkdtempSync(join(tmpdir(), 'rtpengine-')) : null

const daemon = spawn(
  'rtpengine',
  [
    '--config-file=none',
    '--foreground',
    '--log-stderr',
    '--log-level=3',
    '--table=-1',
    '--num-threads=1',
    '--interface=127.0.0.1',
    `--listen-ng=127.0.0.1:${control_port}`,
    `--port-min=${base}`,
    `--port-max=${Math.min(65_534, base + 8 * calls + 200)}`,
    '--timeout=3600',
    '--silent-timeout=3600',
    ...(recordings ? ['--recording-method=pcap', `--recording-dir=${recordings}`] : []),
  ],
  { stdio: ['ignore', 'ignore', 'pipe'] },
)
let log = ''
daemon.stderr.on('data', (data: Buffer) => {
  if (log.length < 20_000) log += data
})
let stopping = false
daemon.on('exit', code => {
  if (stopping) return
  console.error(`rtpengine ended (${code})\n${log}`)
  process.exit(1)
})

function sdp(port: number, codec: CodecName, payload_type: number, crypto: string | null): string {
  return [
    'v=0',
    'o=- 1 1 IN IP4 127.0.0.1',
    's=-',
    'c=IN IP4 127.0.0.1',
    't=0 0',
    `m=audio ${port} ${crypto ? 'RTP/SAVP' : 'RTP/AVP'} ${payload_type}`,
    `a=rtpmap:${payload_type} ${CODECS[codec].map}`,
    ...CODECS[codec].extra.map(line => line.replace(/:\d+ /, `:${payload_type} `)),
    ...(crypto ? [`a=crypto:${crypto}`] : []),
    'a=sendrecv',
    'a=ptime:20',
    '',
  ].join('\r\n')
}

const portOf = (text: string) => Number(/m=audio (\d+)/.exec(text)?.[1])

async function openCall(ng: NgClient, call: number): Promise<string[]> {
  const sockets = Number(values['load-socks'])
  const near_port = Number(values['load-base']) + 2 * (call % sockets)
  const far_port = Number(values['load-base']) + 2 * (sockets + (call % sockets))
  const common: Record<string, Bencoded> = {
    'call-id': `bench-${call}`,
    'from-tag': `a${call}`,
    ICE: 'remove',
    'rtcp-mux': ['demux'],
    flags: ['trust-address'],
  }
  const offer = await ng.request({
    ...common,
    command: 'offer',
    sdp: sdp(near_port, 'PCMU', 0, null),
    'transport-protocol': suite ? 'RTP/SAVP' : 'RTP/AVP',
    ...(suite ? { DTLS: 'off' } : {}),
    ...(far === 'PCMU' ? {} : { codec: { transcode: [far === 'OPUS' ? 'opus/48000/2' : far], mask: ['all'] } }),
    ...(recordings ? { 'record call': 'yes' } : {}),
  })
  const offered = offer['sdp'] ?? ''
  let crypto: string | null = null
  let keys = ['', '', '']
  if (suite) {
    const [name, bytes] = suite
    const line = [...offered.matchAll(/a=crypto:(\d+) (\S+) inline:([^|\s]+)/g)].find(match => match[2] === name)
    if (!line) throw new Error(`rtpengine did not offer ${name}`)
    const key = randomBytes(bytes).toString('base64')
    crypto = `${line[1]} ${name} inline:${key}`
    keys = [name, key, line[3] ?? '']
  }
  const mapped = new RegExp(`a=rtpmap:(\\d+) ${far}/`, 'i').exec(offered)?.[1]
  const payload_type = mapped ? Number(mapped) : CODECS[far].payload_type
  const answer = await ng.request({
    ...common,
    command: 'answer',
    'to-tag': `b${call}`,
    sdp: sdp(far_port, far, payload_type, crypto),
    ...(suite ? { 'transport-protocol': 'RTP/AVP' } : {}),
  })
  return [
    [call, near_port, portOf(answer['sdp'] ?? ''), 'PCMU', 0, '', '', ''].join(','),
    [call, far_port, portOf(offered), far, payload_type, ...keys].join(','),
  ]
}

const ng = new NgClient(control_port)
await ng.request({ command: 'ping' })
const lines: string[] = []
for (let call = 0; call < calls; call += 20) {
  const some = Array.from({ length: Math.min(20, calls - call) }, (_, n) => openCall(ng, call + n))
  lines.push(...(await Promise.all(some)).flat())
}
writeFileSync(values['legs-out'], `${lines.join('\n')}\n`)
console.log(`READY ${daemon.pid}`)
process.stdin.resume()
await once(process.stdin, 'close')
stopping = true
daemon.kill('SIGTERM')
const killer = setTimeout(() => daemon.kill('SIGKILL'), 4000)
if (daemon.exitCode === null) await once(daemon, 'exit')
clearTimeout(killer)
ng.close()
if (recordings) rmSync(recordings, { recursive: true, force: true })
process.exit(0)

// The media plane as an engine for load generators of media-bench's engine contract. Opens N calls of two legs on the
// native data plane, writes the legs to a file, prints READY and ends when stdin closes.
//   node bench/media-engine.js --mode relay --calls 200 --load-base 20000 --load-socks 16 --engine-base 46000 \
//     --legs-out legs.csv
// Modes: relay srtp-sdes srtp-gcm pcma g722 g729 opus record. Needs the setup (`npm run setup`).
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createEngine } from '../build/native/index.js'

const FORMATS = {
  PCMU: { payload_type: 0, codec: 'PCMU', clock_rate: 8000 },
  PCMA: { payload_type: 8, codec: 'PCMA', clock_rate: 8000 },
  G722: { payload_type: 9, codec: 'G722', clock_rate: 8000 },
  G729: { payload_type: 18, codec: 'G729', clock_rate: 8000 },
  OPUS: { payload_type: 96, codec: 'OPUS', clock_rate: 48000 },
}
const FAR_CODEC = { pcma: 'PCMA', g722: 'G722', g729: 'G729', opus: 'OPUS' }
const SUITE = { 'srtp-sdes': ['AES_CM_128_HMAC_SHA1_80', 30], 'srtp-gcm': ['AEAD_AES_128_GCM', 28] }
const MODES = ['relay', 'record', ...Object.keys(SUITE), ...Object.keys(FAR_CODEC)]

const { values } = parseArgs({
  options: {
    mode: { type: 'string', default: 'relay' },
    calls: { type: 'string', default: '1' },
    'load-base': { type: 'string', default: '20000' },
    'load-socks': { type: 'string', default: '16' },
    'engine-base': { type: 'string', default: '46000' },
    'legs-out': { type: 'string' },
    threads: { type: 'string', default: '1' },
    'coalesce-us': { type: 'string', default: '1000' },
    'opus-complexity': { type: 'string', default: '5' },
    io: { type: 'string', default: 'io_uring' },
    'packet-ring': { type: 'string', default: 'on' },
    realtime: { type: 'string', default: 'on' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help || !MODES.includes(values.mode) || !values['legs-out']) {
  console.error(`usage: media-engine.js --mode ${MODES.join('|')} --calls N --load-base P --load-socks K`)
  console.error('  --engine-base E --legs-out FILE [--threads 1] [--coalesce-us 1000] [--opus-complexity 5]')
  console.error('  [--io io_uring|epoll] [--packet-ring on|off] [--realtime on|off]')
  process.exit(values.help ? 0 : 2)
}

const calls = Number(values.calls)
const loadBase = Number(values['load-base'])
const loadSockets = Number(values['load-socks'])
const engineBase = Number(values['engine-base'])
const recordings = values.mode === 'record' ? mkdtempSync(join(tmpdir(), 'media-engine-')) : null

const engine = createEngine(
  {
    threads: Number(values.threads),
    bind_address: '127.0.0.1',
    port_min: engineBase + (engineBase % 2),
    // Four ports per call, and spare ones in place of ports that other programs hold.
    port_max: Math.min(65535, engineBase + calls * 4 + 200),
    quarantine_ms: 0,
    coalesce_us: Number(values['coalesce-us']),
    opus_complexity: Number(values['opus-complexity']),
    io_uring: values.io !== 'epoll',
    packet_ring: values['packet-ring'] !== 'off',
    realtime: values.realtime !== 'off',
  },
  event => {
    if (event.type === 'record_ended' && event.detail) console.error(`recording: ${event.reason} ${event.detail}`)
  },
)

function openLeg(session, far, load_port) {
  const stream = session.openStream({ validation: 'relaxed', sources: [], signalled_from: null })
  if (!stream) throw new Error(`no port is left from ${engineBase} on`)
  const codec = FORMATS[(far && FAR_CODEC[values.mode]) || 'PCMU']
  const [suite, key_bytes] = (far && SUITE[values.mode]) || []
  const srtp = suite ? { suite, receive_key: randomBytes(key_bytes), send_key: randomBytes(key_bytes) } : null
  stream.describe({
    remote: { address: '127.0.0.1', rtp_port: load_port },
    direction: 'sendrecv',
    receive: [codec],
    send: { ...codec, ptime_ms: 20 },
    srtp,
  })
  const keys = srtp ? [srtp.receive_key.toString('base64'), srtp.send_key.toString('base64')] : ['', '']
  const line = [load_port, stream.rtp_port, codec.codec, codec.payload_type, suite ?? '', ...keys].join(',')
  return { stream, line }
}

const lines = []
for (let call = 0; call < calls; call++) {
  const session = engine.openSession()
  const near = openLeg(session, false, loadBase + 2 * (call % loadSockets))
  const far = openLeg(session, true, loadBase + 2 * (loadSockets + (call % loadSockets)))
  session.bridge(near.stream, far.stream)
  if (recordings) {
    const file = join(recordings, `${call}.wav`)
    session.record({ recording_id: String(call), file, channels: 2, left: near.stream, right: far.stream })
  }
  lines.push(`${call},${near.line}`, `${call},${far.line}`)
}
writeFileSync(values['legs-out'], `${lines.join('\n')}\n`)
console.log(`READY ${process.pid}`)

// Stdin keeps the process alive; the data plane's threads do not.
process.stdin.resume()
process.stdin.on('close', () => {
  engine.close()
  if (recordings) rmSync(recordings, { recursive: true, force: true })
  process.exit(0)
})

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connectMedia, type MediaClient, MediaRefusal } from '../../../media/protocol/client.ts'
import type { EventFields } from '../../../media/protocol/schema.ts'
import { readWavFile, sounding, strongestHz, tone } from '../../support/audio.ts'
import t from '../../support/harness/index.ts'
import { POLICY, reasonOf } from '../../support/media-worker.ts'
import { freeBlock } from '../../support/ports.ts'
import { openRtpPeer } from '../../support/rtp-peer.ts'
import { until } from '../../support/wait.ts'

const { first: FIRST_PORT } = await freeBlock(100)
const PROCESS = fileURLToPath(new URL('../../../media/process.js', import.meta.url))
const quiet = { info: () => undefined, warn: () => undefined }

const data_dir = mkdtempSync(join(tmpdir(), 'strowger-process-'))
const running: ChildProcess[] = []
t.teardown(() => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(data_dir, { recursive: true, force: true })
})

/**
 * Starts the media process. `file_bytes` limits the size of its files to simulate a full disk (write fails by EFBIG).
 */
async function start(file_bytes: number | null = null): Promise<ChildProcess> {
  const limited = file_bytes === null ? [] : ['prlimit', `--fsize=${file_bytes}`]
  const [program = '', ...args] = [...limited, process.execPath, PROCESS]
  const child = spawn(program, args, {
    env: {
      ...process.env,
      STROWGER_DATA: data_dir,
      STROWGER_RTP_PORTS: `${FIRST_PORT}-${FIRST_PORT + 99}`,
      STROWGER_LOG: 'warn',
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  running.push(child)
  const [message] = await once(child, 'message')
  t.strictSame(message, { ready: true })
  return child
}

/** Two channels of 16 bits at 8 kHz. */
const BYTES_PER_MS = 32

const up = (client: MediaClient) => new Promise<void>(resolve => client.once('up', () => resolve()))
const down = (client: MediaClient) => new Promise<void>(resolve => client.once('down', () => resolve()))

async function recordedLeg(client: MediaClient, id: string, file: string) {
  const peer = await openRtpPeer()
  await client.request('session.open', { session_id: id })
  const { rtp_port } = await client.request('leg.open', { session_id: id, leg_id: id, policy: POLICY })
  await client.request('leg.remote_offer', { leg_id: id, sdp: peer.sdp() })
  await client.request('leg.local_answer', { leg_id: id })
  peer.sendTo(rtp_port)
  await client.request('record.start', {
    session_id: id,
    recording_id: id,
    file,
    channels: 2,
    left: id,
    right: null,
    what: 'both',
    max_ms: null,
    silence_ms: null,
    finish_keys: '',
    beep: false,
    trim: false,
  })
  return { peer, rtp_port }
}

/** The sound of what was received, up to a second of it: a stop of this process leaves pauses in the file. */
const heardIn = (file: string): Int16Array =>
  sounding(readWavFile(file).channels[0] ?? new Int16Array(0)).subarray(160, 8160)

t.test('a killed worker loses at most 1.3 s of a recording, and its successor repairs the file', async t => {
  const first = await start()
  const client = connectMedia({ path: join(data_dir, 'run', 'media.sock'), log: quiet })
  t.teardown(() => client.close())
  await up(client)
  const file = join(data_dir, 'recordings', 'torn.wav')
  const begun_ms = performance.now()
  const { peer, rtp_port } = await recordedLeg(client, 'torn', file)
  t.ok(rtp_port >= FIRST_PORT && rtp_port <= FIRST_PORT + 99 && rtp_port % 2 === 0, 'the port is even and in the range')
  await peer.send(tone(1000, 3000))
  // The worker may have been stopped just now, so the loss is one of the file behind the sound, not behind the clock.
  await until('the file lacks at most 1.3 s', () => statSync(file).size >= 44 + 1700 * BYTES_PER_MS)
  first.kill('SIGKILL')
  const most_ms = performance.now() - begun_ms
  await down(client)
  t.equal(await reasonOf(client.request('session.open', { session_id: 'x' })), 'media_unavailable')

  // The client may be connected before the worker says that it is ready.
  await Promise.all([up(client), start()])
  const inspected = await client.request('record.inspect', { file })
  t.ok(inspected.duration_ms >= 1700 && inspected.duration_ms <= most_ms, `${inspected.duration_ms} ms are left`)
  t.equal(strongestHz(heardIn(file)), 1000)
  await client.request('session.open', { session_id: 'torn' })
  peer.close()
})

t.test('a worker that gets SIGTERM finishes its recordings and reports them before it exits', async t => {
  const client = connectMedia({ path: join(data_dir, 'run', 'media.sock'), log: quiet })
  t.teardown(() => client.close())
  await up(client)
  const file = join(data_dir, 'recordings', 'whole.wav')
  const begun = performance.now()
  const { peer } = await recordedLeg(client, 'whole', file)
  await peer.send(tone(1000, 1000))
  const arrived = async () => (await client.request('leg.stats', { leg_id: 'whole' })).packets_received
  await until('the worker has read all packets', async () => (await arrived()) >= 50)
  const ended = new Promise<EventFields<'record.ended'>>(resolve => client.once('record.ended', resolve))
  const worker = running.at(-1)
  const exited = worker && once(worker, 'exit')
  worker?.kill('SIGTERM')
  t.match(await ended, { recording_id: 'whole', reason: 'leg_closed', empty: false })
  const longest = performance.now() - begun
  t.strictSame(await exited, [0, null])
  const { duration_ms } = readWavFile(file)
  t.ok(duration_ms > 900 && duration_ms <= longest, `1 s of speech in ${longest} ms gave ${duration_ms} ms`)
  t.notOk(existsSync(join(data_dir, 'run', 'media.sock')))
  peer.close()
})

t.test('a leg is refused when all ports are in use, and the other legs stay open', async t => {
  await start()
  const client = connectMedia({ path: join(data_dir, 'run', 'media.sock'), log: quiet })
  t.teardown(() => client.close())
  await up(client)
  await client.request('session.open', { session_id: 'many' })
  const ports = new Set<number>()
  const open = (count: number) =>
    client.request('leg.open', { session_id: 'many', leg_id: `m${count}`, policy: POLICY })
  let refused = ''
  while (refused === '') {
    const leg = open(ports.size)
    refused = await leg.then(
      ({ rtp_port }) => {
        ports.add(rtp_port)
        return ''
      },
      (error: unknown) => (error instanceof MediaRefusal ? error.reason : String(error)),
    )
  }
  t.equal(refused, 'media_unavailable')
  t.ok(ports.size > 40 && ports.size <= 50, `${ports.size} legs got distinct ports`)
  t.match(await client.request('leg.stats', { leg_id: 'm0' }), { packets_received: 0, mos: null })
  await client.request('leg.close', { leg_id: 'm0' })
  t.equal(await reasonOf(open(ports.size)), 'media_unavailable', 'the ports of a closed leg are not reused at once')
})

const metricsOf = (name: string) =>
  new Promise<string>((resolve, reject) => {
    request({ socketPath: join(data_dir, 'run', 'metrics', `${name}.sock`), path: '/' }, response => {
      let text = ''
      response.on('data', chunk => {
        text += chunk
      })
      response.on('end', () => resolve(text))
    })
      .on('error', reject)
      .end()
  })

t.test('a full disk ends the recording but not the call, and is reported and counted', async t => {
  const before = running.at(-1)
  const exited = before && once(before, 'exit')
  before?.kill('SIGKILL')
  await exited
  await start(128 * 1024)
  const client = connectMedia({ path: join(data_dir, 'run', 'media.sock'), log: quiet })
  t.teardown(() => client.close())
  await up(client)
  for (const reason of ['disk_full', 'failed'])
    t.match(
      await metricsOf('media'),
      new RegExp(`strowger_media_recordings_failed_total\\{reason="${reason}",process="media"\\} 0\n`),
      'Prometheus sees the first failure as an increase',
    )
  const file = join(data_dir, 'recordings', 'full.wav')
  const { peer } = await recordedLeg(client, 'full', file)
  const other = await openRtpPeer()
  const { rtp_port } = await client.request('leg.open', { session_id: 'full', leg_id: 'other', policy: POLICY })
  await client.request('leg.remote_offer', { leg_id: 'other', sdp: other.sdp() })
  await client.request('leg.local_answer', { leg_id: 'other' })
  other.sendTo(rtp_port)
  await client.request('bridge', { a: 'full', b: 'other' })
  const ended = new Promise<EventFields<'record.ended'>>(resolve => client.once('record.ended', resolve))
  // At 32 kB per second the limit is reached after four seconds.
  let full = false
  void ended.then(() => {
    full = true
  })
  await peer.send(tone(1000, 60_000), () => full)
  const end = await ended
  t.match(end, { recording_id: 'full', reason: 'disk_full', empty: false, sha256: /^[0-9a-f]{64}$/ })
  const wav = readWavFile(file)
  t.ok(wav.duration_ms > 3400 && wav.duration_ms <= 4095, `${wav.duration_ms} ms that fitted are in the file`)
  t.ok(Math.abs(wav.duration_ms - end.duration_ms) < 1, 'the header matches the contents')
  t.equal(strongestHz(heardIn(file)), 1000)
  await Promise.all([peer.send(tone(700, 500)), other.heard(700)])
  t.match(await metricsOf('media'), /strowger_media_recordings_failed_total\{reason="disk_full",process="media"\} 1/)
  peer.close()
  other.close()
})

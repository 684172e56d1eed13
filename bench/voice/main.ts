import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { putSandboxCarrier } from '../../core/state/configuration/bootstrap.ts'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { openState } from '../../core/state/index.ts'
import { type Made, startUp } from '../up.ts'
import { farEnd } from './far-end.ts'

// Measures calls of the API: calls per second from create to `completed`, with a document of three verbs from a local
// server, and the time from that server's answer to the first sound at the far end.
//
//   npm run bench -- voice [--calls 150] [--rate 10]

const { values: options } = parseArgs({
  options: { calls: { type: 'string', default: '150' }, rate: { type: 'string', default: '10' } },
})
const CALLS = Number(options.calls)
const RATE = Number(options.rate)
const LIMITS = { failures: 0, sound_p95_ms: 40 } as const
const PATIENCE_MS = 30_000

// This benchmark's far end replaces the sandbox.
const { folder: data_dir, made, stop } = await startUp('voice', { STROWGER_LOG: 'error', STROWGER_SANDBOX: 'off' })
try {
  report(await measure(made))
} finally {
  await stop()
}

interface Measured {
  readonly calls: number
  readonly failures: number
  readonly calls_per_second: number
  readonly create_p50_ms: number
  readonly create_p95_ms: number
  readonly sound_p50_ms: number
  readonly sound_p95_ms: number
  /** Reference of the same run: a trivial request to the same server. */
  readonly reference_p50_ms: number
}

async function measure(made: Made): Promise<Measured> {
  const network = await farEnd()
  const answered_ms = new Map<string, number>()
  let warm = 0
  const web = await webServer(answered_ms)
  const state = await openState({ data_dir })
  try {
    await putSandboxCarrier(state, {
      machine_id: 'mac_1',
      host: '127.0.0.1',
      port: network.port,
      now: new Date().toISOString(),
    })
    await state.transaction(trx => bumpConfiguration(trx))
    // Warm up: wait until the nodes know the network, and fill the cache of prompts.
    await until('a call is heard', async () => {
      const to = `+234803990${String(++warm).padStart(4, '0')}`
      await create(made, web.url, to)
      const first_sound = () => network.calls.get(to.slice(1))?.first_sound_ms
      return until('its sound', first_sound, 4000).catch(() => undefined)
    })
    const reference: number[] = []
    for (let at = 0; at < 50; at++) reference.push(await timed(() => fetch(`${made.base_url}/healthz`).then(drain)))
    const created: number[] = []
    const begin = performance.now()
    await Promise.all(
      Array.from({ length: CALLS }, async (_, at) => {
        await new Promise(resolve => setTimeout(resolve, (at * 1000) / RATE))
        created.push(await timed(() => create(made, web.url, numberOf(at))))
      }),
    )
    const ended = () =>
      state.db
        .selectFrom('call')
        .select(['to_number', 'status'])
        .where('ended_at', 'is not', null)
        .where('to_number', 'like', '+23480310%')
        .execute()
    await until('all calls end', async () => ((await ended()).length >= CALLS ? true : undefined), PATIENCE_MS).catch(
      error => console.error(String(error)),
    )
    const seconds = (performance.now() - begin) / 1000
    const completed = (await ended()).filter(({ status }) => status === 'completed')
    const sounds = Array.from({ length: CALLS }, (_, at) => {
      const heard = network.calls.get(numberOf(at).slice(1))
      const answer = answered_ms.get(numberOf(at))
      return heard?.first_sound_ms && answer ? heard.first_sound_ms - answer : null
    })
    const heard = sounds.filter(sound => sound !== null)
    return {
      calls: CALLS,
      failures: CALLS - Math.min(completed.length, heard.length),
      calls_per_second: completed.length / seconds,
      create_p50_ms: percentile(created, 0.5),
      create_p95_ms: percentile(created, 0.95),
      sound_p50_ms: percentile(heard, 0.5),
      sound_p95_ms: percentile(heard, 0.95),
      reference_p50_ms: percentile(reference, 0.5),
    }
  } finally {
    await state.close()
    web.close()
    network.close()
  }
}

function numberOf(at: number): string {
  return `+23480310${String(at).padStart(5, '0')}`
}

async function create(made: Made, url: string, to: string): Promise<void> {
  const answer = await fetch(`${made.base_url}/2010-04-01/Accounts/${made.account_sid}/Calls.json`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${made.account_sid}:${made.auth_token}`).toString('base64')}` },
    body: new URLSearchParams({ To: to, From: made.numbers[0] ?? '', Url: `${url}/voice` }),
  })
  await drain(answer)
  if (answer.status !== 201) throw new Error(`a create was answered with ${answer.status}`)
}

async function drain(answer: Response): Promise<void> {
  await answer.arrayBuffer()
}

/**
 * Starts the customer's server, which serves one document for all calls and its tone. Notes when it sends documents.
 */
async function webServer(answered_ms: Map<string, number>): Promise<{ url: string; close(): void }> {
  let url = ''
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.url === '/tone.wav') {
      response.writeHead(200, { 'content-type': 'audio/wav', 'cache-control': 'max-age=600' }).end(toneWav())
      return
    }
    const to = new URLSearchParams(Buffer.concat(chunks).toString()).get('To') ?? ''
    const document = `<Response><Play>${url}/tone.wav</Play><Pause length="1"/><Hangup/></Response>`
    response.writeHead(200, { 'content-type': 'text/xml' }).end(document, () => answered_ms.set(to, performance.now()))
  }
  const server = createServer((request, response) => void answer(request, response).catch(console.error))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Returns half a second of 440 Hz: mono, 8 kHz, 16 bits. */
function toneWav(): Buffer {
  const frames = 4000
  const bytes = Buffer.alloc(44 + frames * 2)
  bytes.write('RIFF', 0, 'latin1')
  bytes.writeUInt32LE(bytes.length - 8, 4)
  bytes.write('WAVEfmt ', 8, 'latin1')
  bytes.writeUInt32LE(16, 16)
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(1, 22)
  bytes.writeUInt32LE(8000, 24)
  bytes.writeUInt32LE(16_000, 28)
  bytes.writeUInt16LE(2, 32)
  bytes.writeUInt16LE(16, 34)
  bytes.write('data', 36, 'latin1')
  bytes.writeUInt32LE(frames * 2, 40)
  for (let at = 0; at < frames; at++)
    bytes.writeInt16LE(Math.round(12_000 * Math.sin((2 * Math.PI * 440 * at) / 8000)), 44 + at * 2)
  return bytes
}

async function until<T>(
  what: string,
  look: () => T | undefined | null | Promise<T | undefined | null>,
  limit_ms = PATIENCE_MS,
) {
  const deadline = performance.now() + limit_ms
  for (;;) {
    const seen = await look()
    if (seen !== undefined && seen !== null) return seen
    if (performance.now() > deadline) throw new Error(`waited ${limit_ms} ms in vain: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await run()
  return performance.now() - begin
}

function percentile(values: readonly number[], part: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length * part)] ?? Number.NaN
}

function report(measured: Measured): void {
  const ms = (value: number): string => `${value.toFixed(1)} ms`
  const bad = measured.failures > LIMITS.failures || !(measured.sound_p95_ms <= LIMITS.sound_p95_ms)
  console.log(`${measured.calls} calls, asked for ${RATE} a second`)
  console.log(`failures                        ${measured.failures} (limit ${LIMITS.failures})`)
  console.log(`completed a second              ${measured.calls_per_second.toFixed(2)}`)
  console.log(`create, median and 95 %         ${ms(measured.create_p50_ms)}, ${ms(measured.create_p95_ms)}`)
  console.log(`  against /healthz (reference)  x ${(measured.create_p50_ms / measured.reference_p50_ms).toFixed(2)}`)
  console.log(
    `webhook answer to first sound   ${ms(measured.sound_p50_ms)}, 95 % ${ms(measured.sound_p95_ms)} (limit ${LIMITS.sound_p95_ms} ms)`,
  )
  mkdirSync('bench/results', { recursive: true })
  const results = { at: new Date().toISOString(), rate: RATE, limits: LIMITS, measured, within_limits: !bad }
  writeFileSync('bench/results/voice.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exitCode = bad ? 1 : 0
}

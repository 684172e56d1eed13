import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { TREE } from '../../core/runtime/tree.ts'
import { connectMedia, type MediaClient } from '../../media/protocol/client.ts'
import { pause, report } from '../rtp-crowd.ts'
import { Caller } from './caller.ts'
import { waitingOf } from './run-queue.ts'
import { ANSWER_MS, type Servers, startServers } from './servers.ts'

// Measures calls that talk to relay applications, in a media process as users run it: the platform's own share of a
// turn's latency, how soon the caller's voice stops the agent, gaps in what is played, and the CPU beside relayed
// calls. Its recogniser, voice and agent answer at once, so what remains is the platform's.
//
// Each figure is printed with the time for which threads that it depends on were ready and got no CPU. The limits are
// for what is left: on a loaded machine the rest is the machine's. A run that mostly waited says so.
//
//   npm run bench -- agents [--calls 50] [--turns 4] [--profile FOLDER]

const { values: options } = parseArgs({
  options: {
    calls: { type: 'string', default: '50' },
    turns: { type: 'string', default: '4' },
    profile: { type: 'string' },
  },
})
const CALLS = Number(options.calls)
const TURNS = Number(options.turns)
const LIMITS = { own_p95_ms: 60, gap_ms: 20, interruption_p95_ms: 80 } as const
const PROJECT = 'proj_bench'
const RELAYED_MS = 5000
const PATIENCE_MS = 20_000
const quiet = { info: () => undefined, warn: (fields: object, text: string) => console.error(text, fields) }

/** A time, and the part of it in which threads waited for a CPU. */
interface Measured {
  readonly ms: number
  readonly waited_ms: number
}

/** The parts of our own share, in order. The agent and the engines between them answer at once. */
const STAGES = ['result to prompt', 'answer to voice', 'speech to first sound'] as const
const stages = new Map<string, number[]>(STAGES.map(name => [name, []]))
const own: Measured[] = []
const detector: number[] = []
const interruption: Measured[] = []
const gaps: number[] = []

const servers = await startServers()
const media = await startMedia(servers)
const callers: Caller[] = []
// A late timer catches up, so that each telephone sends 50 packets a second on a busy machine too.
const begin_ms = performance.now()
let ticks = 0
let waits: readonly (() => number)[] = []
const waited = () => waits.reduce((sum, wait) => sum + wait(), 0)
const recognised = new Map<string, number>()
servers.onRecognised = call => recognised.set(call, waited())
const timer = setInterval(() => {
  for (const due = (performance.now() - begin_ms) / 20; ticks < due; ticks++)
    for (const caller of callers) caller.tick()
}, 10)
try {
  media.client.on('relay.turn', ({ detector_ms }) => detector.push(detector_ms))
  const agents = await Promise.all(Array.from({ length: CALLS }, (_, index) => openCall(`CA${index}`)))
  await Promise.all(agents.map(agent => startRelay(agent)))
  await pause(1000)
  // The first answer starts the threads that decode sound.
  const [first] = agents
  if (first) await talk(first, 1)
  for (const figures of [own, detector, interruption, gaps, ...stages.values()]) figures.length = 0
  waits = [waitingOf(media.pid), waitingOf(process.pid)]
  const agents_percent = await cpuPercent(media.pid, () =>
    Promise.all(agents.map((agent, index) => pause((index * 1500) / CALLS).then(() => talk(agent, TURNS)))),
  )
  await Promise.all(agents.map(({ leg_id }) => media.client.request('relay.stop', { leg_id, relay_id: leg_id })))
  const others = await Promise.all(agents.map(({ session_id, id }) => openCall(`${id}b`, session_id)))
  for (const [index, { leg_id: b }] of others.entries())
    await media.client.request('bridge', { a: agents[index]?.leg_id ?? '', b })
  const relayed_percent = await cpuPercent(media.pid, () => pause(RELAYED_MS))
  tell(agents_percent / CALLS, relayed_percent / CALLS)
} finally {
  clearInterval(timer)
  for (const caller of callers) caller.close()
  await media.stop()
  servers.close()
}

interface AgentCall {
  readonly id: string
  readonly session_id: string
  readonly leg_id: string
  readonly caller: Caller
}

/** Opens an answered leg with its telephone, in a session of its own or in another's. */
async function openCall(id: string, session_id = `s${id}`): Promise<AgentCall> {
  const { client } = media
  const caller = await Caller.open()
  const leg_id = `l${id}`
  if (session_id === `s${id}`) await client.request('session.open', { session_id, owner: PROJECT })
  const policy = { codecs: ['PCMU'], security: 'rtp', source_validation: 'relaxed', sources: [] } as const
  const { rtp_port } = await client.request('leg.open', {
    ...{ session_id, leg_id },
    policy: { ...policy, codecs: [...policy.codecs], sources: [], signalled_from: null, telephone_event: false },
  })
  await client.request('leg.remote_offer', { leg_id, sdp: caller.sdp })
  await client.request('leg.local_answer', { leg_id })
  caller.sendTo(rtp_port)
  callers.push(caller)
  return { id, session_id, leg_id, caller }
}

function startRelay({ id, leg_id }: AgentCall): Promise<unknown> {
  return media.client.request('relay.start', {
    ...{ leg_id, relay_id: leg_id, account_sid: PROJECT, call_sid: id, url: servers.agent_url, headers: {} },
    ...{ setup: { callSid: id }, parameters: {}, greeting: null, greeting_interruptible: 'any', languages: [] },
    ...{ tts_language: 'en-US', transcription_language: 'en-US', voice: 'man', model: null, hints: [] },
    ...{ interruptible: 'any', sensitivity: 'high', keys: false, report: 'none', preemptible: false },
    profanity_filter: true,
  })
}

/** Talks to the agent. The caller hears every other answer to its end, and interrupts the rest. */
async function talk({ id, caller }: AgentCall, turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    caller.forget()
    await caller.say(800)
    await pause(800)
    caller.forget()
    const first = await caller.sound(PATIENCE_MS)
    // A turn without an answer is missing from the figures, which fails the benchmark.
    if (!first) continue
    tellStages(id, first.at_ms)
    if (turn % 2 === 0) {
      await caller.soundEnd(PATIENCE_MS)
      const { gap_ms, length_ms } = caller.sounded()
      gaps.push(Math.max(gap_ms, ANSWER_MS - length_ms))
      continue
    }
    await pause(1000)
    const said = caller.say(300)
    const before_ms = waited()
    const voice_ms = await said
    await pause(100)
    const waited_ms = waited() - before_ms
    await pause(1100)
    interruption.push({ ms: caller.soundedUntil(voice_ms) - voice_ms, waited_ms })
    // What interrupted is an utterance too; its answer is awaited in silence.
    await pause(ANSWER_MS + 500)
  }
}

/** Notes the parts of a turn whose first sound was heard at `heard_ms`. */
function tellStages(id: string, heard_ms: number): void {
  const at = servers.stamps.get(id) ?? {}
  const since = (later: number | undefined, earlier: number | undefined) =>
    (later ?? Number.NaN) - (earlier ?? Number.NaN)
  stages.get('result to prompt')?.push(since(at.agent_got, at.recognised))
  stages.get('answer to voice')?.push(since(at.voice_got, at.agent_sent))
  stages.get('speech to first sound')?.push(since(heard_ms, at.voice_sent))
  own.push({ ms: since(heard_ms, at.recognised), waited_ms: waited() - (recognised.get(id) ?? Number.NaN) })
}

async function startMedia({ stt_url, tts_url }: Servers) {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-bench-agents-'))
  const env = {
    ...{ PATH: process.env['PATH'] ?? '', HOME: folder, STROWGER_DATA: folder, STROWGER_LOG: 'warn' },
    ...{ STROWGER_RECOGNIZER_URL: stt_url, STROWGER_SPEECH_URL: tts_url, STROWGER_HOST: '127.0.0.1' },
    ...{ STROWGER_ALLOW_PRIVATE_WEBHOOKS: 'loopback', STROWGER_RTP_PORTS: '20000-22000' },
  }
  const file = join(TREE, 'build/bundle/media/process.js')
  const profiled = options.profile === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', options.profile]
  const child = spawn(process.execPath, [...profiled, file], { env, stdio: ['ignore', 'inherit', 'inherit'] })
  const client: MediaClient = connectMedia({ path: join(folder, 'run/media.sock'), log: quiet })
  await new Promise<void>(resolve => client.once('up', () => resolve()))
  return {
    client,
    pid: child.pid ?? 0,
    async stop() {
      client.close()
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The share of a core that a process takes while `wait` runs, of user and system time (proc(5)). */
async function cpuPercent(pid: number, wait: () => Promise<unknown>): Promise<number> {
  const seconds = (): number => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) / 100
  }
  const [before, begin_ms] = [seconds(), performance.now()]
  await wait()
  return (100_000 * (seconds() - before)) / (performance.now() - begin_ms)
}

function percentile(values: readonly number[], part: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length * part)] ?? Number.NaN
}

/** The whole times, the waiting in them, and what is left: in a process several threads may wait at once. */
function whole(figures: readonly Measured[]): number[] {
  return figures.map(({ ms }) => ms)
}

function waitedIn(figures: readonly Measured[]): number[] {
  return figures.map(({ waited_ms }) => waited_ms)
}

function without(figures: readonly Measured[]): number[] {
  return figures.map(({ ms, waited_ms }) => Math.max(0, ms - waited_ms))
}

function tell(agent_percent: number, relayed_percent: number): void {
  const figures = {
    ...{ calls: CALLS, turns: own.length, interruptions: interruption.length },
    ...{ own_p50_ms: percentile(whole(own), 0.5), own_p95_ms: percentile(whole(own), 0.95) },
    own_without_waiting_p95_ms: percentile(without(own), 0.95),
    detector_p50_ms: percentile(detector, 0.5),
    interruption_p50_ms: percentile(whole(interruption), 0.5),
    interruption_p95_ms: percentile(whole(interruption), 0.95),
    interruption_without_waiting_p95_ms: percentile(without(interruption), 0.95),
    worst_gap_ms: Math.max(...gaps),
    agent_percent,
    relayed_percent,
  }
  const missing = CALLS * TURNS - own.length
  const kept =
    missing === 0 &&
    figures.own_without_waiting_p95_ms <= LIMITS.own_p95_ms &&
    figures.worst_gap_ms <= LIMITS.gap_ms &&
    figures.interruption_without_waiting_p95_ms <= LIMITS.interruption_p95_ms
  const ms = (value: number): string => `${value.toFixed(1)} ms`
  const both = (values: readonly number[]): string =>
    `p50 ${ms(percentile(values, 0.5))}, p95 ${ms(percentile(values, 0.95))}`
  const [minute = 0] = loadavg()
  const share = (value: number): string => `${value.toFixed(2)} % of a core`
  console.log(`${CALLS} calls with agents at once, ${own.length} turns, load ${minute.toFixed(1)}`)
  console.log(`own share of a turn     ${both(whole(own))}`)
  for (const name of STAGES) console.log(`  ${name.padEnd(22)}${both(stages.get(name) ?? [])}`)
  console.log(`  waiting for a CPU     ${both(waitedIn(own))}`)
  console.log(`  without it            ${both(without(own))} (limit of p95 ${LIMITS.own_p95_ms} ms)`)
  console.log(`  beside it, detector   p50 ${ms(figures.detector_p50_ms)}`)
  console.log(`voice stops the agent   ${both(whole(interruption))}`)
  console.log(`  waiting for a CPU     ${both(waitedIn(interruption))}`)
  console.log(`  without it            ${both(without(interruption))} (limit of p95 ${LIMITS.interruption_p95_ms} ms)`)
  console.log(`worst gap in an answer  ${ms(figures.worst_gap_ms)} (limit 20 ms)`)
  console.log(`a call with an agent    ${share(agent_percent)}; a relayed call ${share(relayed_percent)}`)
  const starved = percentile(waitedIn(own), 0.5) > percentile(whole(own), 0.5) / 2
  if (starved) console.log('the machine was too busy: most of the time was spent waiting for a CPU, and shows little')
  console.log(kept ? 'within the limits' : 'FAILED')
  report('agents', figures, kept)
}

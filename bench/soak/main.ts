import { mkdirSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import { openOf, pidOf, restAfter, stillOpen } from '../descriptors.ts'
import type { LoadResult } from '../edge/world.ts'
import { becomesIdle, type Footprints, footprints, growthOf, livingOf, wrongRows } from './checker.ts'
import { type Fault, faultsOf, hurtsNothing, inject, leavesCalls, leavesSound } from './faults.ts'
import { alive, type Sound } from './talks.ts'
import { startTown, type Town } from './town.ts'

// Loads the whole platform while its processes are killed and stopped (threats §8). Each round connects calls with
// sound, runs short calls and calls of the API concurrently, and injects one fault. Then all calls hang up, and a
// checker verifies from outside (SIP, RTP, HTTP, rows, /metrics, memory, files) that everything has recovered.
//
//   npm run bench -- soak [--minutes 2] [--relayed 50] [--rate 5] [--round 15] [--faults none,kill,stop]
//                         [--seed N]
//   npm run bench -- soak --relayed 500 --rate 30 --faults none      the load gate
//   npm run bench -- soak --minutes 480 --faults none                the memory gate

/**
 * Limits of the recovery of new calls after a kill, of the loss of sound, and of the growth of long-lived processes.
 */
const LIMITS = { back_ms: 5000, loss_pct: 1, kib_per_minute: 64, looks_for_growth: 20 }
const HOLD_MS = 5000
const CREATE_EVERY_MS = 1000
const LOOK_EVERY_MS = 10_000
const PROBE_LIMIT_MS = 30_000
const TOLD_LIMIT_MS = 60_000

const { values: given } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    /** Concurrent calls with sound. */
    relayed: { type: 'string', default: '50' },
    /** Short calls per second, in addition. */
    rate: { type: 'string', default: '5' },
    /** Seconds of sound in each round. */
    round: { type: 'string', default: '15' },
    faults: { type: 'string', default: 'none,kill,stop' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [minutes = 0, relayed = 0, rate = 0] = [given.minutes, given.relayed, given.rate].map(Number)
const [round_seconds = 0, seed = 0] = [given.round, given.seed].map(Number)
const kinds = given.faults.split(',').filter((kind): kind is Fault['kind'] => /^(none|kill|stop)$/.test(kind))

interface Round {
  readonly fault: string
  readonly connected: number
  readonly survived: number
  readonly sound: Sound
  readonly short: LoadResult & { readonly calls: number }
  readonly created: number
  /** Time from the fault to the answer of a call placed after it; null without a kill. */
  readonly back_ms: number | null
  readonly wrong: readonly string[]
}

const acknowledged: string[] = []
const looks: { at_ms: number; seen: Footprints }[] = []
const rounds: Round[] = []
const town = await startTown()
console.log(`seed ${seed}: ${relayed} calls talk, ${rate} short ones a second, faults: ${kinds.join(', ')}`)
try {
  const idle = await livingOf(town.made.base_url)
  let rest = openOf(town.folder)
  const until_ms = performance.now() + minutes * 60_000
  for (const fault of faultsOf(seed, kinds)) {
    const round = await carryOut(town, fault)
    const left = await becomesIdle(town.made.base_url, idle)
    const rows = await wrongRows(town.state, acknowledged)
    looks.push({ at_ms: performance.now(), seen: footprints(town.folder) })
    const { media_ports_quarantined: ports = 0 } = await livingOf(town.made.base_url)
    const open = openOf(town.folder)
    const whole = { ...round, wrong: [...round.wrong, ...left, ...rows, ...stillOpen(rest, open, ports)] }
    rest = restAfter(rest, open)
    rounds.push(whole)
    tell(whole)
    if (performance.now() > until_ms) break
  }
} finally {
  const untold = await heardOfAll(town)
  const growth = growthOf(looks)
  await town.stop()
  finish(untold, growth)
}

async function carryOut(town: Town, fault: Fault): Promise<Round> {
  const { talks, folder } = town
  const name = fault.victim === null ? 'none' : `${fault.kind} ${fault.victim}`
  const talking = await talks.connect(relayed)
  const calls = Math.max(1, Math.round(rate * round_seconds))
  const over = new AbortController()
  const creating = createUntil(town, over.signal)
  const looking = lookUntil(town, over.signal)
  const short = rate > 0 ? town.short(rate, calls, HOLD_MS) : Promise.resolve({ failed: 0, retransmissions: 0 })
  const sounding = talks.talk(talking, round_seconds * 1000, pidOf(folder, 'media'))
  await pause(round_seconds * 300)
  let back_ms: number | null = null
  if (fault.victim !== null) {
    const injected = inject(fault, pidOf(folder, fault.victim))
    if (fault.kind === 'kill') back_ms = (await talks.untilAnswered(PROBE_LIMIT_MS)) ?? Number.POSITIVE_INFINITY
    await injected
  }
  const sound = await sounding
  const survived = talking.filter(alive).length
  const load = await short
  over.abort()
  const created = await creating
  await talks.hangUp()
  const round = {
    fault: name,
    connected: talking.length,
    survived,
    sound,
    created,
    back_ms,
    short: { ...load, calls: rate > 0 ? calls : 0 },
  }
  return { ...round, wrong: [...wrongWith(fault, round), ...(await looking)] }
}

/** Returns a sentence for each effect that callers or listeners must not notice. */
function wrongWith(fault: Fault, round: Omit<Round, 'wrong'>): string[] {
  const { connected, survived, sound, short, created, back_ms } = round
  const wrong = connected < relayed ? [`${relayed - connected} of ${relayed} calls were not connected`] : []
  if (leavesCalls(fault) && survived < connected) wrong.push(`${connected - survived} calls that talked ended`)
  if (hurtsNothing(fault) && short.failed > 0) wrong.push(`${short.failed} of ${short.calls} short calls failed`)
  if (hurtsNothing(fault) && created === 0) wrong.push('no call was created by API')
  if (leavesSound(fault) && (sound.loss_pct > LIMITS.loss_pct || sound.silent_legs + sound.bad > 0))
    wrong.push(`sound: ${sound.loss_pct} % lost, ${sound.silent_legs} legs silent, ${sound.bad} bad packets`)
  if (back_ms !== null && back_ms > LIMITS.back_ms) wrong.push(`new calls only after ${back_ms.toFixed(0)} ms`)
  return wrong
}

/** Checks the invariants repeatedly while calls come and go. Returns the broken ones. */
async function lookUntil(town: Town, over: AbortSignal): Promise<string[]> {
  const broken = new Set<string>()
  for (let next_ms = performance.now() + LOOK_EVERY_MS; !over.aborted; await pause(200)) {
    if (performance.now() < next_ms) continue
    next_ms += LOOK_EVERY_MS
    for (const sentence of await brokenInvariants(town.state.db)) broken.add(sentence)
  }
  return [...broken]
}

async function createUntil(town: Town, over: AbortSignal): Promise<number> {
  let created = 0
  while (!over.aborted) {
    const sid = await town.create()
    if (sid !== null) acknowledged.push(sid)
    created += sid === null ? 0 : 1
    await pause(CREATE_EVERY_MS)
  }
  return created
}

/** Waits for late callbacks, because a killed control plane redelivers its own. Returns the number still missing. */
async function heardOfAll(town: Town): Promise<number> {
  const untold = (): number => acknowledged.filter(sid => !town.told.has(sid)).length
  for (const from = performance.now(); untold() > 0 && performance.now() - from < TOLD_LIMIT_MS; ) await pause(500)
  return untold()
}

function tell({ fault, connected, survived, sound, short, created, back_ms, wrong }: Round): void {
  const back = back_ms === null ? '' : `, new calls after ${(back_ms / 1000).toFixed(1)} s`
  console.log(
    `${fault.padEnd(14)} ${survived}/${connected} calls lived, ${sound.loss_pct} % of sound lost, ` +
      `${short.failed}/${short.calls} short calls failed, ${created} by API${back}` +
      (wrong.length === 0 ? '' : `\n  WRONG: ${wrong.join('\n  WRONG: ')}`),
  )
}

function mib(kib: number): string {
  return (kib / 1024).toFixed(0)
}

function finish(untold: number, growth: ReturnType<typeof growthOf>): void {
  let bad = rounds.some(({ wrong }) => wrong.length > 0) || untold > 0 || rounds.length === 0
  if (untold > 0) console.log(`WRONG: the end of ${untold} of ${acknowledged.length} calls by API was never told`)
  for (const one of growth) {
    // Judge growth only in a long run: the first rounds are warm-up.
    const grows = one.looks >= LIMITS.looks_for_growth && (one.kib_per_minute ?? 0) > LIMITS.kib_per_minute
    if (grows) bad = true
    console.log(
      `${one.process.padEnd(10)} ${mib(one.first_kib)} MiB, then ${mib(one.last_kib)} MiB ` +
        `(${one.looks} looks at one process, ${one.kib_per_minute?.toFixed(0) ?? '-'} KiB a minute, ` +
        `${one.files} more files)${grows ? ' GROWS' : ''}`,
    )
  }
  console.log(`${rounds.length} rounds, seed ${seed}: ${bad ? 'something is WRONG' : 'all came back'}`)
  mkdirSync('bench/results', { recursive: true })
  const results = { at: new Date().toISOString(), seed, minutes, relayed, rate, limits: LIMITS, rounds, growth, untold }
  writeFileSync('bench/results/soak.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exit(bad ? 1 : 0)
}

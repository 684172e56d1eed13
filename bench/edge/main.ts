import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { compareInTurns } from './turns.ts'
import { type EdgeAlone, type EdgeMeasure, findCeiling, startEdgeAlone } from './world.ts'

// Measures the CPU time of a call in the embedded edge, as a ratio to that in a minimal drachtio-srf B2BUA behind it,
// under SIPp. performance.md has the same ratio for a real drachtio-server: 1.8 to 1.
//
//   npm run bench -- edge [--rate 50] [--seconds 20] [--only cpu|memory]
//                         [--ceiling] [--soak] [--soak-seconds N] [--soak-rate N] [--against FOLDER [--turns 60]]
//
// --against compares the CPU of a call with that of another built tree, and measures nothing else: see turns.ts.
// --ceiling searches for the highest rate of calls that pass without a retransmission. --soak holds half that rate for
// ten minutes, with a fifth of the calls over TCP. --soak-seconds sets its duration; --soak-rate sets its rate and
// skips the search.

const LIMIT_RATIO = 1.8
const LIMIT_DIALOG_BYTES = 12 * 1024

const options = readOptions(process.argv.slice(2))

if (options.against !== undefined) {
  await compareInTurns(options.against, options)
  process.exit(0)
}

const results: Record<string, unknown> = { at: new Date().toISOString(), limit_ratio: LIMIT_RATIO }
let bad = false
if (options.only !== 'memory' && !options.soaks_only) results['cpu'] = await cpuPerCall(options.rate, options.seconds)
if (options.only !== 'cpu' && !options.soaks_only) results['memory'] = await memoryPerDialog(1_000)
const searched = options.ceiling || (options.soak_seconds > 0 && options.soak_rate === 0)
const held = searched ? await ceiling() : 0
if (searched) results['ceiling_calls_per_second'] = held
const soak_rate = options.soak_rate > 0 ? options.soak_rate : Math.max(1, Math.floor(held / 2))
if (options.soak_seconds > 0) results['soak'] = await soak(soak_rate, options.soak_seconds)
mkdirSync('bench/results', { recursive: true })
// Keep the last results of figures that this run does not measure.
const RESULTS = 'bench/results/edge.json'
const kept = existsSync(RESULTS) ? JSON.parse(readFileSync(RESULTS, 'utf8')) : {}
writeFileSync(RESULTS, `${JSON.stringify({ ...kept, ...results }, null, 2)}\n`)
process.exit(bad ? 1 : 0)

async function cpuPerCall(rate: number, seconds: number): Promise<object> {
  const world = await startEdgeAlone()
  // Warm up: the compilation of hot paths is not part of a call's cost.
  await world.calls(rate, Math.min(300, rate * 6), 0)
  const edge_before = await world.measureEdge()
  const app_before = await world.measureApp()
  const calls = rate * seconds
  const sipp = await world.calls(rate, calls, 0)
  const edge_after = await world.measureEdge()
  const app_after = await world.measureApp()
  await world.stop()
  const edge_ms = (edge_after.cpu_us - edge_before.cpu_us) / 1000 / calls
  const app_ms = (app_after.cpu_us - app_before.cpu_us) / 1000 / calls
  const ratio = edge_ms / app_ms
  if (ratio > LIMIT_RATIO || sipp.failed > 0) bad = true
  console.log(`${calls} calls at ${rate}/s: edge ${edge_ms.toFixed(2)} ms, app ${app_ms.toFixed(2)} ms CPU per call`)
  console.log(
    `ratio ${ratio.toFixed(2)} (limit ${LIMIT_RATIO}), failed ${sipp.failed}, retransmissions ${sipp.retransmissions}`,
  )
  return { rate, calls, edge_ms_per_call: edge_ms, app_ms_per_call: app_ms, ratio, ...sipp }
}

async function memoryPerDialog(calls: number): Promise<object> {
  const world = await startEdgeAlone()
  await world.calls(50, 200, 0)
  // Wait until transactions are gone, which live for 32 s after their end: measure only the memory of open dialogs.
  const before = await settled(world)
  const held = world.calls(100, calls, 55_000)
  let open = await world.measureEdge()
  const deadline = Date.now() + 52_000
  while (Date.now() < deadline && (open.stats.dialogs < 2 * calls || open.stats.server_transactions > 0)) {
    await new Promise(resolve => setTimeout(resolve, 1_000))
    open = await world.measureEdge()
  }
  open = await world.measureMemory()
  const bytes = (open.heap_bytes - before.heap_bytes) / open.stats.dialogs
  await held
  await world.stop()
  if (bytes > LIMIT_DIALOG_BYTES) bad = true
  console.log(
    `${open.stats.dialogs} open dialogs: ${(bytes / 1024).toFixed(2)} KiB each (limit ${LIMIT_DIALOG_BYTES / 1024})`,
  )
  return { dialogs: open.stats.dialogs, bytes_per_dialog: bytes, transactions_left: open.stats.server_transactions }
}

async function ceiling(): Promise<number> {
  const hold = async (rate: number) => {
    const world = await startEdgeAlone()
    await world.calls(Math.min(50, rate), 200, 0)
    const load = await world.calls(rate, rate * 8, 0)
    await world.stop()
    return load
  }
  const held = await findCeiling(hold, { step: 10, most: 1280 })
  console.log(`ceiling: ${held} calls/s with zero retransmissions`)
  return held
}

async function soak(rate: number, seconds: number): Promise<object> {
  const world = await startEdgeAlone()
  // Warm up: descriptors that a process opens for its first calls (log, source maps) are no leak.
  await world.calls(rate, rate * 2, 0)
  await world.calls(1, 1, 0, 'tcp')
  const before = await settled(world)
  const over_tcp = Math.max(1, Math.floor(rate / 5))
  const sums = await Promise.all([
    world.calls(rate - over_tcp || 1, (rate - over_tcp || 1) * seconds, 1_000),
    world.calls(over_tcp, over_tcp * seconds, 1_000, 'tcp'),
  ])
  const after = await settled(world)
  await world.stop()
  const failed = sums.reduce((sum, one) => sum + one.failed, 0)
  const retransmissions = sums.reduce((sum, one) => sum + one.retransmissions, 0)
  const { dialogs, client_transactions, server_transactions, pending, timers, sip_connections } = after.stats
  const transactions = client_transactions + server_transactions + pending
  const descriptors = after.descriptors - before.descriptors
  const grown_bytes = after.heap_bytes - before.heap_bytes
  if (dialogs + transactions + timers + sip_connections > 0 || descriptors > 0 || failed > 0) bad = true
  console.log(
    `soak of ${seconds} s at ${rate}/s: ${failed} failed, ${retransmissions} retransmissions; left: ${dialogs}`,
  )
  console.log(
    `  dialogs, ${transactions} transactions, ${timers} timers, ${sip_connections} connections, ${descriptors} ` +
      `descriptors, ${(grown_bytes / 1024).toFixed(0)} KiB of heap`,
  )
  const left = { dialogs, transactions, timers, sip_connections, descriptors, grown_bytes }
  return { rate, seconds, failed, retransmissions, left }
}

async function settled(world: EdgeAlone): Promise<EdgeMeasure> {
  let now = await world.measureEdge()
  for (let i = 0; i < 45 && now.stats.timers > 0; i++) {
    await new Promise(resolve => setTimeout(resolve, 1_000))
    now = await world.measureEdge()
  }
  return await world.measureMemory()
}

interface Options {
  readonly rate: number
  readonly seconds: number
  readonly ceiling: boolean
  /** 0: no soak. */
  readonly soak_seconds: number
  /** 0: half the ceiling. */
  readonly soak_rate: number
  /** Run only the soak. True when a soak rate is given. */
  readonly soaks_only: boolean
  readonly only: string
  readonly against: string | undefined
  readonly turns: number
}

function readOptions(args: readonly string[]): Options {
  const text = (name: string): string | undefined => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined)
  const number = (name: string, standard: number): number => Number(text(name) ?? standard)
  return {
    rate: number('--rate', 50),
    seconds: number('--seconds', 20),
    ceiling: args.includes('--ceiling'),
    soak_seconds: number('--soak-seconds', args.includes('--soak') ? 600 : 0),
    soak_rate: number('--soak-rate', 0),
    soaks_only: args.includes('--soak-rate'),
    only: text('--only') ?? '',
    against: text('--against'),
    turns: number('--turns', 60),
  }
}

// `npm run bench -- media`: measures the CPU time of a forwarded packet, compares it with a minimal epoll forwarder and
// rtpengine under the same load in the same run, and checks the bars. All traffic is on 127.0.0.1. Only ratios within
// one run count; the report includes the machine's noise.
//   --quick (200 calls, one repetition)  --calls 200,500,1000  --modes relay,pcma  --reps 3  --seconds 4
//   --engines strowger,sockets  (sockets: Strowger without its packet ring)
//   --against DIR  only checks that another bench of the same contract agrees (see agreement.ts)
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { CODEC_RATES, encodeAll, features } from '../../native/index.ts'
import { agreement } from './agreement.ts'
import { bars, cost, manner, type Point, QUIET_PCT, type Row, ratio, starved } from './bars.ts'
import { command, type Generator, loaded, pinned, root, tools, WITHOUT_PACKET_RING } from './run.ts'

/** For each mode, the numbers of calls (up to what rtpengine carries on such a machine) and the engines to compare. */
const PLAN: Record<string, { readonly calls: readonly number[]; readonly beside: readonly string[] }> = {
  relay: { calls: [200, 500, 1000], beside: ['forwarder', 'rtpengine'] },
  record: { calls: [200, 1000], beside: [] },
  'srtp-sdes': { calls: [200, 1000], beside: ['rtpengine'] },
  'srtp-gcm': { calls: [200, 1000], beside: ['rtpengine'] },
  pcma: { calls: [200], beside: ['rtpengine'] },
  g722: { calls: [200], beside: ['rtpengine'] },
  g729: { calls: [200], beside: ['rtpengine'] },
  opus: { calls: [50], beside: ['rtpengine'] },
}
const TICKS: Record<string, readonly number[]> = { relay: [100, 1000] }
/** How often a starved run is repeated. */
const REPEATS = 2

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    calls: { type: 'string' },
    modes: { type: 'string' },
    reps: { type: 'string' },
    seconds: { type: 'string', default: '3' },
    engines: { type: 'string', default: 'forwarder,rtpengine,strowger' },
    against: { type: 'string' },
    out: { type: 'string', default: join(root, 'bench/results/media.json') },
  },
})
const modes = options.modes?.split(',') ?? Object.keys(PLAN)
const sizes = options.calls?.split(',').map(Number) ?? (options.quick ? [200] : null)
const reps = Number(options.reps ?? (options.quick ? 1 : 3))
const seconds = Number(options.seconds)
const engines = options.engines.split(',')
const work = mkdtempSync(join(tmpdir(), 'bench-media-'))

setUp()
const rows: Row[] = []
const points = options.against === undefined ? plan() : []
let agreed = true
try {
  if (options.against !== undefined) agreed = await agreement(options.against, ownLoad, { reps, seconds, work })
  for (let rep = 1; rep <= reps; rep++) {
    for (const point of points) {
      for (const engine of engines) {
        if (engine !== 'strowger' && engine !== WITHOUT_PACKET_RING && !PLAN[point.mode]?.beside.includes(engine))
          continue
        for (let run = 0; run <= REPEATS; run++) {
          const row = await measure(engine, point, rep)
          rows.push(row)
          if (!starved(row)) break
        }
      }
    }
  }
} finally {
  rmSync(work, { recursive: true, force: true })
}
if (points.length > 0) report()
else if (!agreed) process.exitCode = 1

function setUp(): void {
  const make = spawnSync('make', ['-s', '-C', join(root, 'bench/media')], { stdio: 'inherit' })
  if (make.status !== 0) process.exit(1)
  if (engines.includes('rtpengine') && spawnSync('sh', ['-c', 'command -v rtpengine']).status !== 0) {
    const install = 'apt-get update -qq && apt-get install -y -qq --no-install-recommends rtpengine-daemon'
    console.error('bench: installing rtpengine-daemon')
    const status = spawnSync('sh', ['-c', install], {
      stdio: ['ignore', 'ignore', 'inherit'],
      // Keep Debian from starting the service at installation: the bench runs its own.
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
    }).status
    if (status !== 0) {
      console.error(
        `bench: that failed. Run it by hand, or leave it out with --engines forwarder,strowger:\n  ${install}`,
      )
      process.exit(1)
    }
  }
  // Write speech of two voices, with the pauses of a conversation, in each codec.
  const text = 'Good morning, this is the support desk. May I have your account number, please? Yes, of course.'
  for (const codec of features().codecs) {
    const rate_hz = CODEC_RATES[codec]
    const frames = encodeAll(codec, speech(text, rate_hz))
    const lengths = frames.flatMap(frame => [Buffer.from([frame.length >> 8, frame.length & 255]), frame])
    writeFileSync(join(work, `${codec}.pay`), Buffer.concat(lengths))
  }
}

function speech(text: string, rate_hz: number): Int16Array {
  const wav = spawnSync('espeak-ng', ['-s', '160', '--stdout', text], { maxBuffer: 1 << 26 })
  if (wav.status !== 0) throw new Error('espeak-ng is missing: run `npm run setup`')
  const from = new Int16Array(Uint8Array.from(wav.stdout.subarray(44, wav.stdout.length & ~1)).buffer)
  // Resample 22,050 Hz to the codec's rate by the nearest sample, which is good enough to load an encoder.
  return Int16Array.from({ length: Math.floor((from.length * rate_hz) / 22_050) }, (_, n) =>
    Math.round((from[Math.floor((n * 22_050) / rate_hz)] ?? 0) * 0.5),
  )
}

/** Returns the points to measure. Requested numbers of calls replace the planned ones, up to the mode's highest. */
function plan(): Point[] {
  const planned = modes.flatMap(mode => {
    const measured = PLAN[mode]?.calls
    if (!measured) throw new Error(`--modes: ${Object.keys(PLAN).join(',')}`)
    const most = Math.max(...measured)
    const calls = sizes ? [...new Set(sizes.map(size => Math.min(size, most)))] : measured
    return calls.flatMap(size => (TICKS[mode] ?? [1000]).map(tick_us => ({ mode, calls: size, tick_us })))
  })
  // Measure recording right after the relay that it is compared with, because the machine's speed varies over minutes.
  const compared = ({ mode, calls }: Point) => (mode === 'relay' || mode === 'record' ? calls : Number.MAX_SAFE_INTEGER)
  return planned.sort((a, b) => compared(a) - compared(b))
}

function ownLoad({ legs, pids, point }: Parameters<Generator>[0]): string[] {
  return pinned(0, [
    join(tools, 'load'),
    ...['--legs', legs, '--payloads', work, '--warmup-ms', '1000', '--pid', pids],
    ...['--duration-ms', String(seconds * 1000), '--tick-us', String(point.tick_us)],
  ])
}

async function measure(engine: string, point: Point, rep: number): Promise<Row> {
  const { mode, calls, tick_us } = point
  const measured = (await loaded(command(engine), point, ownLoad, work)) as Row
  const row: Row = { ...measured, engine, mode, calls, tick_us, rep }
  const { cpu_us_per_packet: cost, loss_pct, latency_us, other_core_pct } = row
  console.error(
    `${String(rep).padStart(2)} ${mode.padEnd(9)} ${String(calls).padStart(5)} calls ${manner(tick_us)} ` +
      `${engine.padEnd(10)} ${cost.toFixed(2).padStart(7)} us/packet  loss ${loss_pct.toFixed(3)} %  ` +
      `latency ${latency_us.p50}/${latency_us.p99} us  others ${other_core_pct.toFixed(0)} %`,
  )
  return row
}

function report(): void {
  const shown = (value: number | null, digits = 2) => value?.toFixed(digits) ?? '-'
  console.log('\n| mode | calls | packets | strowger us/packet | forwarder | rtpengine | to forwarder | to rtpengine |')
  console.log('|---|---|---|---|---|---|---|---|')
  const ratios = points.map(point => {
    const to_forwarder = ratio(rows, 'strowger', 'forwarder', point)
    const to_rtpengine = ratio(rows, 'strowger', 'rtpengine', point)
    const costs = ['strowger', 'forwarder', 'rtpengine'].map(engine => shown(cost(rows, engine, point)))
    const cells = [point.mode, point.calls, manner(point.tick_us), ...costs, shown(to_forwarder), shown(to_rtpengine)]
    console.log(`| ${cells.join(' | ')} |`)
    return { ...point, to_forwarder, to_rtpengine }
  })
  const results = bars(rows)
  console.log("\n| bar | measured | at most | forwarder's | |\n|---|---|---|---|---|")
  for (const { what, value, limit, unit, passed, floor } of results) {
    const verdict = passed === null ? 'not measured' : passed ? 'passed' : 'MISSED'
    console.log(`| ${what} | ${shown(value)} ${unit} | ${limit} ${unit} | ${shown(floor)} | ${verdict} |`)
  }
  const known = results.filter(result => result.passed !== null)
  console.log(`\n${known.filter(result => result.passed).length} of ${known.length} bars passed.`)
  const busy = rows.filter(row => row.other_core_pct > QUIET_PCT)
  if (busy.length > 0) {
    console.log(
      `The machine was not quiet: other processes used more than ${QUIET_PCT} % of a core in ${busy.length} of ` +
        `${rows.length} runs. Ratios stand; latency, CPU of a core and growth do not.`,
    )
  }
  const lost = rows.filter(starved)
  if (lost.length > 0) console.log(`${lost.length} runs were starved by other processes, repeated and not counted.`)
  console.log(
    "Strowger's packet threads at real-time priority where that is allowed, as in service; all else at nice -10.",
  )
  console.log(
    'Streams come by a packet ring where raw sockets are allowed. On loopback the load pays for laying packets into it, ' +
      "as it pays for a socket's queue; on a network card the softirq does.",
  )
  console.log('Opus: encoder complexity 5, narrowband between PCMU and OPUS. Engine on one core, load on another.')
  mkdirSync(dirname(options.out), { recursive: true })
  const written = { at: new Date().toISOString(), ratios, bars: results, rows }
  writeFileSync(options.out, `${JSON.stringify(written, null, 2)}\n`)
  console.log(`written to ${options.out}`)
}

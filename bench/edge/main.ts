import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// What a call costs in the embedded edge, against what it costs in the application that any edge shares: a minimal
// drachtio-srf B2BUA under SIPp. performance.md has the same figure for a real drachtio-server: 1.8 to 1.
//
//   npm run bench -- edge [--rate 50] [--seconds 20] [--ceiling] [--soak-seconds N]

const LIMIT_RATIO = 1.8
const LIMIT_DIALOG_BYTES = 12 * 1024

const here = import.meta.dirname
const options = readOptions(process.argv.slice(2))
const folder = mkdtempSync(join(tmpdir(), 'strowger-bench-edge-'))

interface EdgeMeasure {
  cpu_us: number
  heap_bytes: number
  rss_bytes: number
  stats: { dialogs: number; client_transactions: number; server_transactions: number; pending: number; timers: number }
}

const results: Record<string, unknown> = { at: new Date().toISOString(), limit_ratio: LIMIT_RATIO }
let bad = false
try {
  results['cpu'] = await cpuPerCall(options.rate, options.seconds)
  results['memory'] = await memoryPerDialog(1_000)
  if (options.ceiling) results['ceiling_calls_per_second'] = await ceiling()
  if (options.soak_seconds > 0) results['soak'] = await soak(options.rate, options.soak_seconds)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
mkdirSync('bench/results', { recursive: true })
writeFileSync('bench/results/edge.json', `${JSON.stringify(results, null, 2)}\n`)
process.exit(bad ? 1 : 0)

async function cpuPerCall(rate: number, seconds: number): Promise<object> {
  const world = await start()
  // Warm-up: compilation of the hot paths is not part of a call's cost.
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
  const world = await start()
  await world.calls(50, 200, 0)
  // Transactions live for 32 s after their end; only what an open dialog keeps is wanted here.
  const before = await settled(world)
  const held = world.calls(100, calls, 55_000)
  let open = await world.measureEdge()
  const deadline = Date.now() + 52_000
  while (Date.now() < deadline && (open.stats.dialogs < 2 * calls || open.stats.server_transactions > 0)) {
    await new Promise(resolve => setTimeout(resolve, 1_000))
    open = await world.measureEdge()
  }
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
  let held = 0
  for (const rate of [100, 150, 200, 250, 300, 400]) {
    const world = await start()
    await world.calls(50, 200, 0)
    const sipp = await world.calls(rate, rate * 10, 0)
    await world.stop()
    console.log(`${rate} calls/s: ${sipp.failed} failed, ${sipp.retransmissions} retransmissions`)
    if (sipp.failed > 0 || sipp.retransmissions > 0) break
    held = rate
  }
  return held
}

async function soak(rate: number, seconds: number): Promise<object> {
  const world = await start()
  const sipp = await world.calls(rate, rate * seconds, 1_000)
  const { stats } = await settled(world)
  await world.stop()
  const left = stats.dialogs + stats.client_transactions + stats.server_transactions + stats.pending + stats.timers
  if (left > 0 || sipp.failed > 0) bad = true
  console.log(`soak of ${seconds} s at ${rate}/s: ${sipp.failed} failed, ${left} dialogs, transactions and timers left`)
  return { rate, seconds, left, ...sipp }
}

async function settled(world: World): Promise<EdgeMeasure> {
  let now = await world.measureEdge()
  for (let i = 0; i < 45 && now.stats.timers > 0; i++) {
    await new Promise(resolve => setTimeout(resolve, 1_000))
    now = await world.measureEdge()
  }
  return now
}

interface World {
  calls(rate: number, calls: number, hold_ms: number): Promise<{ failed: number; retransmissions: number }>
  measureEdge(): Promise<EdgeMeasure>
  measureApp(): Promise<{ cpu_us: number; failed: number }>
  stop(): Promise<void>
}

async function start(): Promise<World> {
  const target_port = await freePort()
  const uas = spawn('sipp', ['-sn', 'uas', '-i', '127.0.0.1', '-p', String(target_port), '-nostdin'], {
    cwd: folder,
    stdio: 'ignore',
  })
  const edge = fork(join(here, 'edge-process.js'), [], { execArgv: ['--expose-gc'] })
  const [ports] = (await once(edge, 'message')) as [{ sip_port: number; control_port: number }]
  const app = fork(join(here, 'app-process.js'), [String(ports.control_port), `sip:bench@127.0.0.1:${target_port}`])
  await once(app, 'message')
  const ask = async (child: ChildProcess): Promise<never> => {
    child.send('measure')
    const [answer] = await once(child, 'message')
    return answer as never
  }
  return {
    calls: (rate, calls, hold_ms) => runSipp(ports.sip_port, rate, calls, hold_ms),
    measureEdge: () => ask(edge),
    measureApp: () => ask(app),
    async stop() {
      uas.kill('SIGKILL')
      for (const child of [edge, app]) {
        child.send('stop')
        await once(child, 'exit')
      }
    },
  }
}

async function runSipp(
  port: number,
  rate: number,
  calls: number,
  hold_ms: number,
): Promise<{ failed: number; retransmissions: number }> {
  const file = join(folder, `stat-${process.hrtime.bigint()}.csv`)
  const child = spawn(
    'sipp',
    [
      `127.0.0.1:${port}`,
      ...[
        '-sn',
        'uac',
        '-i',
        '127.0.0.1',
        '-m',
        String(calls),
        '-r',
        String(rate),
        '-l',
        '20000',
        '-d',
        String(hold_ms),
      ],
      ...['-nostdin', '-trace_stat', '-stf', file, '-fd', '1'],
    ],
    { cwd: folder, stdio: 'ignore' },
  )
  await once(child, 'exit')
  const [head = '', ...rows] = readFileSync(file, 'utf8').trim().split('\n')
  const last = (rows.at(-1) ?? '').split(';')
  const column = (name: string): number => Number(last[head.split(';').indexOf(name)] ?? 0)
  return { failed: column('FailedCall(C)'), retransmissions: column('Retransmissions(C)') }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address ? address.port : 0
}

function readOptions(args: readonly string[]): {
  rate: number
  seconds: number
  ceiling: boolean
  soak_seconds: number
} {
  const number = (name: string, standard: number): number => {
    const at = args.indexOf(name)
    return at < 0 ? standard : Number(args[at + 1])
  }
  return {
    rate: number('--rate', 50),
    seconds: number('--seconds', 20),
    ceiling: args.includes('--ceiling'),
    soak_seconds: number('--soak-seconds', 0),
  }
}

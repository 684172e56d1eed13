import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../up.ts'

// The embedded edge with a minimal B2BUA behind it, and SIPp as load. The benchmarks of the edge and of the whole
// platform share this file.

const here = import.meta.dirname

export interface EdgeMeasure {
  cpu_us: number
  heap_bytes: number
  rss_bytes: number
  /** The number of open descriptors of the process. */
  descriptors: number
  stats: {
    dialogs: number
    client_transactions: number
    server_transactions: number
    pending: number
    timers: number
    sip_connections: number
  }
}

/** The edge without admission, media and storage. */
export interface EdgeAlone {
  calls(rate: number, calls: number, hold_ms: number, transport?: 'udp' | 'tcp'): Promise<LoadResult>
  measureEdge(): Promise<EdgeMeasure>
  /** Measures after a garbage collection. */
  measureMemory(): Promise<EdgeMeasure>
  measureApp(): Promise<{ cpu_us: number; failed: number }>
  stop(): Promise<void>
}

interface Place {
  /** The built files of the tree whose edge and B2BUA run. */
  readonly folder?: string
  /** The core on which they run; any when undefined. */
  readonly core?: number | undefined
}

export async function startEdgeAlone({ folder: built = here, core }: Place = {}): Promise<EdgeAlone> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-bench-edge-'))
  const target_port = await freePort()
  const uas = spawn('sipp', ['-sn', 'uas', '-i', '127.0.0.1', '-p', String(target_port), '-nostdin'], {
    cwd: folder,
    stdio: 'ignore',
  })
  // taskset becomes Node.js, so the process is the same.
  const pinned = core === undefined ? {} : { execPath: 'taskset' }
  const before = core === undefined ? [] : ['-c', String(core), process.execPath]
  const edge = fork(join(built, 'edge-process.js'), [], { ...pinned, execArgv: [...before, '--expose-gc'] })
  const [ports] = (await once(edge, 'message')) as [{ sip_port: number; control_port: number }]
  const called = `sip:bench@127.0.0.1:${target_port}`
  const app = fork(join(built, 'app-process.js'), [String(ports.control_port), called])
  await once(app, 'message')
  const ask = async (child: ChildProcess, question = 'measure'): Promise<never> => {
    child.send(question)
    const [answer] = await once(child, 'message')
    return answer as never
  }
  return {
    calls: (rate, calls, hold_ms, transport = 'udp') =>
      runSipp({ folder, port: ports.sip_port, rate, calls, hold_ms, transport }),
    measureEdge: () => ask(edge),
    measureMemory: () => ask(edge, 'collect'),
    measureApp: () => ask(app),
    async stop() {
      uas.kill('SIGKILL')
      for (const child of [edge, app]) {
        child.send('stop')
        await once(child, 'exit')
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface LoadResult {
  readonly failed: number
  readonly retransmissions: number
}

/** A load of SIPp's built-in caller: `calls` calls at `rate` per second, each hung up after `hold_ms`. */
interface Load {
  /** Folder of SIPp's statistics. */
  readonly folder: string
  readonly port: number
  readonly rate: number
  readonly calls: number
  readonly hold_ms: number
  readonly transport: 'udp' | 'tcp'
  /** Source address; 127.0.0.1 by default. */
  readonly local_ip?: string
  /** User part of the request-URI; SIPp's by default. */
  readonly called?: string
  /** Where SIPp writes why calls failed. */
  readonly errors?: string
}

export async function runSipp({ folder, port, rate, calls, hold_ms, transport, ...more }: Load): Promise<LoadResult> {
  const file = join(folder, `stat-${process.hrtime.bigint()}.csv`)
  const child = spawn(
    'sipp',
    [
      ...[`127.0.0.1:${port}`, '-sn', 'uac', '-i', more.local_ip ?? '127.0.0.1'],
      ...(more.called === undefined ? [] : ['-s', more.called]),
      ...(more.errors === undefined ? [] : ['-trace_err', '-error_file', more.errors]),
      ...['-m', String(calls), '-r', String(rate), '-l', '20000', '-d', String(hold_ms)],
      // A call that hangs ends the load, which then fails.
      ...['-timeout', `${Math.ceil(calls / rate + hold_ms / 1000) + 60}s`],
      ...['-nostdin', '-trace_stat', '-stf', file, '-fd', '1', '-t', transport === 'tcp' ? 't1' : 'u1'],
    ],
    { cwd: folder, stdio: 'ignore' },
  )
  await once(child, 'exit')
  const [head = '', ...rows] = readFileSync(file, 'utf8').trim().split('\n')
  const last = (rows.at(-1) ?? '').split(';')
  const column = (name: string): number => Number(last[head.split(';').indexOf(name)] ?? 0)
  return { failed: column('FailedCall(C)'), retransmissions: column('Retransmissions(C)') }
}

/** Returns the highest rate, to within `step`, that `hold` sustains without a failure or a retransmission. */
export async function findCeiling(
  hold: (rate: number) => Promise<LoadResult>,
  { step, most }: { readonly step: number; readonly most: number },
): Promise<number> {
  let held = 0
  let failed = most
  let rate = Math.min(40, most >> 1)
  while (failed - held > step) {
    const { failed: failures, retransmissions } = await hold(rate)
    console.log(`${rate} calls/s: ${failures} failed, ${retransmissions} retransmissions`)
    if (failures > 0 || retransmissions > 0) failed = rate
    else held = rate
    rate = failed < most || rate >= most >> 1 ? Math.round((held + failed) / 2) : rate * 2
  }
  return held
}

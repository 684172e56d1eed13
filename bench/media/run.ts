// Starts one engine of the contract, loads it with one generator and ends it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Point } from './bars.ts'

export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const tools = join(root, 'build/bench-media')
/** First ports of the load and of the engines. 1,000 calls take 4,200 ports of an engine. */
const BASES = { load: 20_000, engine: [23_000, 28_000, 46_000, 35_000] }
const ATTEMPTS = 4
/** The engine name of Strowger without its packet ring, as where raw sockets are forbidden. */
export const WITHOUT_PACKET_RING = 'sockets'
let runs = 0

/** Returns the command line of a load generator, which prints one JSON object when it is done. */
export type Generator = (load: { readonly legs: string; readonly pids: string; readonly point: Point }) => string[]

/** Returns the command line of an engine that the bench provides. */
export function command(engine: string): string[] {
  if (engine === 'forwarder') return [join(tools, 'forward')]
  if (engine === 'rtpengine') return [process.execPath, join(root, 'build/bench/media/rtpengine.js')]
  const own = [process.execPath, join(root, 'bench/media-engine.js')]
  return engine === WITHOUT_PACKET_RING ? [...own, '--packet-ring', 'off'] : own
}

/** Pins a command to a core: the load to the first one, the engine to the second. */
export function pinned(core: number, args: readonly string[]): string[] {
  return cpus().length > 1 ? ['taskset', '-c', String(core), ...args] : [...args]
}

/** Raises a command's priority where permitted, so that other processes disturb it less. */
function preferred(args: readonly string[]): string[] {
  return process.getuid?.() === 0 ? ['nice', '-n', '-10', ...args] : [...args]
}

/** Returns what the generator prints about `program` under its load. `work` is a folder for the file of legs. */
export async function loaded(
  program: readonly string[],
  point: Point,
  generator: Generator,
  work: string,
): Promise<unknown> {
  const legs = join(work, 'legs.csv')
  const { child, pids } = await started(program, point, legs)
  try {
    const [loader = '', ...loadArgs] = generator({ legs, pids, point })
    const run = spawn(loader, loadArgs, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    run.stdout.on('data', (data: Buffer) => {
      text += data
    })
    await once(run, 'close')
    return JSON.parse(text)
  } finally {
    await ended(child)
  }
}

/** Starts an engine and waits for its open legs. Retries on other ports, because not every engine skips used ports. */
async function started(
  program: readonly string[],
  point: Point,
  legs: string,
  attempt = 1,
): Promise<{ readonly child: ChildProcess; readonly pids: string }> {
  const { mode, calls } = point
  // Use other ports each time: those of the previous engine may still be closing.
  const base = BASES.engine[runs++ % BASES.engine.length]
  const contract = { mode, calls, 'load-base': BASES.load, 'load-socks': 16, 'engine-base': base, 'legs-out': legs }
  const flags = Object.entries(contract).flatMap(([name, value]) => [`--${name}`, String(value)])
  const [file = '', ...args] = pinned(1, preferred([...program, ...flags]))
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    return { child, pids: await ready(child, program) }
  } catch (err) {
    await ended(child)
    if (attempt === ATTEMPTS) throw err
    return started(program, point, legs, attempt + 1)
  }
}

async function ended(child: ChildProcess): Promise<void> {
  child.stdin?.end()
  const killer = setTimeout(() => child.kill('SIGKILL'), 6000)
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  clearTimeout(killer)
}

async function ready(child: ChildProcess, program: readonly string[]): Promise<string> {
  let text = ''
  return new Promise((resolve, reject) => {
    const name = program.join(' ')
    const timer = setTimeout(() => reject(new Error(`${name} was not ready in 60 s`)), 60_000)
    child.stdout?.on('data', (data: Buffer) => {
      text += data
      const pids = /READY ([\d,]+)/.exec(text)?.[1]
      if (!pids) return
      clearTimeout(timer)
      resolve(pids)
    })
    child.on('exit', code => reject(new Error(`${name} ended (${code}) before it was ready`)))
  })
}

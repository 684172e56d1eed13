// One engine of the contract under one load generator: started, loaded, ended.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Point } from './bars.ts'

export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const tools = join(root, 'build/bench-media')
/** 1,000 calls take 4,200 ports of an engine. */
const BASES = { load: 20_000, engine: [23_000, 28_000, 46_000, 35_000] }
const ATTEMPTS = 4
/** The name of Strowger as it is where raw sockets are forbidden. */
export const WITHOUT_PACKET_RING = 'sockets'
let runs = 0

/** Arguments of a load generator that prints one JSON object when it is done. */
export type Generator = (load: { readonly legs: string; readonly pids: string; readonly point: Point }) => string[]

/** The program of each engine that the bench brings. */
export function command(engine: string): string[] {
  if (engine === 'forwarder') return [join(tools, 'forward')]
  if (engine === 'rtpengine') return [process.execPath, join(root, 'build/bench/media/rtpengine.js')]
  const own = [process.execPath, join(root, 'bench/media-engine.js')]
  return engine === WITHOUT_PACKET_RING ? [...own, '--packet-ring', 'off'] : own
}

/** The engine on the second core, the load on the first. */
export function pinned(core: number, args: readonly string[]): string[] {
  return cpus().length > 1 ? ['taskset', '-c', String(core), ...args] : [...args]
}

/** Before other processes of this machine, as far as we may: what they take is not the engine's. */
function preferred(args: readonly string[]): string[] {
  return process.getuid?.() === 0 ? ['nice', '-n', '-10', ...args] : [...args]
}

/** What the generator printed of `program` under its load. `work`: a folder for what passes between the two. */
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

/** An engine whose legs are open. Not every engine passes over ports that other programs hold: then again elsewhere. */
async function started(
  program: readonly string[],
  point: Point,
  legs: string,
  attempt = 1,
): Promise<{ readonly child: ChildProcess; readonly pids: string }> {
  const { mode, calls } = point
  // Other ports at each turn: those of the engine before may still be closing.
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

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { TREE } from '../../core/runtime/tree.ts'
import { lowPort } from '../up.ts'
import { fromBareRoot } from './bare-root.ts'

// Measures what a newcomer waits for: from a clone of the last commit to "Strowger is up", without ccache, and again on
// the prepared tree; and how large the folder is then. The reference is one compilation of the largest C file, so that
// the set-up's CPU time can be compared between machines.
//
//   npm run bench -- start [--clones 5]
//   npm run bench -- start --bare-root     once, in a root of debootstrap that has only Node.js and git

const LIMITS = { clone_to_up_s: 60, again_to_up_s: 5, folder_mb: 250 } as const
const LARGEST = 'node_modules/better-sqlite3/deps/sqlite3/sqlite3.c'

interface Newcomer {
  readonly clone_to_up_s: number
  readonly set_up_cpu_s: number
  readonly again_to_up_s: number
  readonly folder_mb: number
}

const { values } = parseArgs({
  options: { clones: { type: 'string', default: '5' }, 'bare-root': { type: 'boolean', default: false } },
})
if (values['bare-root']) {
  const took_s = await fromBareRoot()
  console.log(
    `from git clone to "Strowger is up" in a bare root: ${took_s.toFixed(1)} s (limit ${LIMITS.clone_to_up_s})`,
  )
  process.exit(took_s > LIMITS.clone_to_up_s ? 1 : 0)
}
const count = Number(values.clones)
if (!Number.isInteger(count) || count < 1) throw new Error('--clones takes a number from 1')
const reference_cpu_s = cpuOf('gcc', ['-O2', '-w', '-c', '-o', '/dev/null', join(TREE, LARGEST)], TREE)
const clones: Newcomer[] = []
for (let i = 0; i < count; i++) {
  clones.push(await newcomer())
  console.log(JSON.stringify(clones.at(-1)))
}
report(clones)

async function newcomer(): Promise<Newcomer> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-bench-start-'))
  const tree = join(folder, 'strowger')
  try {
    const cloned = performance.now()
    execFileSync('git', ['clone', '--quiet', '--single-branch', `file://${TREE}`, tree])
    const set_up_cpu_s = cpuOf('npm', ['run', '--silent', 'setup'], tree)
    const first = await timeToUp(tree)
    const clone_to_up_s = (first.at - cloned) / 1000
    const again_to_up_s = (await timeToUp(tree)).took_s
    const [size = ''] = execFileSync('du', ['-sm', tree], { encoding: 'utf8' }).split('\t')
    return { clone_to_up_s, set_up_cpu_s, again_to_up_s, folder_mb: Number(size) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs a command to its end. Returns the CPU time of it and its children in seconds. */
function cpuOf(command: string, args: readonly string[], cwd: string): number {
  const script = 'TIMEFORMAT="%U %S"; exec 3>&2; { time "$@" >&3 2>&3; } 2>&1'
  const printed = execFileSync('bash', ['-c', script, 'bash', command, ...args], {
    cwd,
    env: { ...process.env, CCACHE_DISABLE: '1' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [user = Number.NaN, system = Number.NaN] = printed.trim().split(' ').map(Number)
  return user + system
}

/** Runs `npm start` until the platform is up, then stops it. Returns when that was (ms), and the seconds it took. */
async function timeToUp(tree: string): Promise<{ at: number; took_s: number }> {
  const [http, sip, sips, ws] = [await lowPort(), await lowPort(), await lowPort(), await lowPort()]
  const started = performance.now()
  const child = spawn('npm', ['start'], {
    cwd: tree,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      STROWGER_HTTP_PORT: String(http),
      STROWGER_SIP_PORT: String(sip),
      STROWGER_SIPS_PORT: String(sips),
      STROWGER_WS_PORT: String(ws),
      STROWGER_LOG: 'warn',
    },
  })
  const ended = once(child, 'exit')
  let printed = ''
  const at = await new Promise<number>((resolve, reject) => {
    child.once('exit', status => reject(new Error(`npm start ended with ${status}:\n${printed}`)))
    child.stdout.setEncoding('utf8').on('data', text => {
      printed += text
      if (printed.includes('Strowger is up')) resolve(performance.now())
    })
  })
  // Ctrl-C reaches npm and the platform alike.
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT')
  await ended
  return { at, took_s: (at - started) / 1000 }
}

function report(all: readonly Newcomer[]): void {
  const median = (of: (one: Newcomer) => number): number =>
    all.map(of).sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN
  const measured = {
    clone_to_up_s: median(one => one.clone_to_up_s),
    again_to_up_s: median(one => one.again_to_up_s),
    folder_mb: median(one => one.folder_mb),
    set_up_cpu_s: median(one => one.set_up_cpu_s),
    reference_cpu_s,
    cpu_to_reference: median(one => one.set_up_cpu_s) / reference_cpu_s,
  }
  const over = Object.entries(LIMITS).filter(([name, limit]) => measured[name as keyof typeof LIMITS] > limit)
  const cores = cpus().length
  const results = { at: new Date().toISOString(), cores, load: loadavg(), limits: LIMITS, clones: all, measured }
  mkdirSync('bench/results', { recursive: true })
  writeFileSync('bench/results/start.json', `${JSON.stringify(results, null, 2)}\n`)
  for (const [name, value] of Object.entries(measured)) console.log(`${name.padEnd(18)} ${value.toFixed(1)}`)
  for (const [name, limit] of over) console.log(`over the limit: ${name} is over ${limit}`)
  if (over.length > 0) process.exitCode = 1
}

// Runs the steps of the set-up: each only when its inputs changed, beside others when it needs none of them, and never
// in two processes at once. Plain JavaScript without dependencies, because it runs before `npm ci`.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * A step: `name`; `needs`, the names of the steps before it; `inputs()`, paths of files and other strings that decide
 * its result; `outputs`, paths that exist afterwards; `stamp`, the file that records success; and `work(run, finished)`,
 * where `finished` tells that it last ended well, on other inputs. A step without `stamp` has `isDone()` instead;
 * one with both may be done in another way. `gives_way` lets its commands have only what others leave of the cores.
 * `remedy` says what to do after a failure.
 * @typedef {{ name: string, needs?: string[], inputs?: () => string[], outputs?: string[], stamp?: string,
 *   isDone?: () => boolean, gives_way?: boolean, work: (run: Run, finished: boolean) => Promise<void>, remedy?: string }} Step
 * `run(command, args, env)` rejects when the command fails. `run.whole` lets it end by itself when another step fails,
 * and keeps the terminal, by which sudo knows who asks: for a package manager.
 * @typedef {(command: string, args: string[], env?: Record<string, string>) => Promise<void>} Command
 * @typedef {Command & { whole: Command }} Run
 */

/** A step failed. `output` is what its command printed. */
class StepFailed extends Error {
  constructor(command, output) {
    super(`failed: ${command}`)
    this.output = output
  }
}

function digestOf(step) {
  const hash = createHash('sha256').update(process.version)
  for (const input of step.inputs()) hash.update(existsSync(input) ? `${input}\0${readFileSync(input, 'utf8')}` : input)
  return hash.digest('hex')
}

/** Tells whether a step has succeeded on the same inputs and its outputs still exist. */
export const isDone = step => (step.isDone ? step.isDone() : hasStamp(step))

export function hasStamp(step) {
  if (!existsSync(step.stamp) || !step.outputs.every(existsSync)) return false
  return readFileSync(step.stamp, 'utf8') === digestOf(step)
}

/**
 * Puts a copy of a file in the place of another. A process that has loaded the other keeps it: a library that is written
 * to while it is mapped crashes its processes, of this tree and of each that shares the file by a link.
 */
export function replaceFile(from, to) {
  copyFileSync(from, `${to}.new`)
  renameSync(`${to}.new`, to)
}

/** Renames a complete file into place: a process that is killed leaves the old stamp or the new one. */
function writeStamp(step, digest) {
  mkdirSync(dirname(step.stamp), { recursive: true })
  writeFileSync(`${step.stamp}.new`, digest)
  renameSync(`${step.stamp}.new`, step.stamp)
}

/**
 * Locks the current folder until this process and its commands have ended: the kernel holds the lock for every process
 * that has the returned descriptor, so a killed set-up leaves no lock, and its last command still keeps others out.
 */
function lockFolder(say) {
  const folder = openSync('.', 'r')
  const flock = (...options) => spawnSync('flock', [...options, '3'], { stdio: ['ignore', 2, 2, folder] })
  const first = flock('--nonblock')
  if (first.error) throw new Error("the command flock is missing. Install Debian's package util-linux.")
  if (first.status === 0) return folder
  say('another set-up works in this folder; waiting for it to end')
  if (flock().status !== 0) throw new Error('the folder cannot be locked')
  return folder
}

/** Starts commands, collects what they print, and ends those that still run when a step fails. */
class Commands {
  #running = new Set()
  #lock

  constructor(lock) {
    this.#lock = lock
  }

  /** Resolves with what the command warned of. An interruptible command leads a process group, so that `end` reaches its compilers. */
  async run({ interruptible, gives_way = false }, command, args, env = {}) {
    const [first, ...rest] = [...(gives_way ? ['nice', '-n', '10'] : []), command, ...args]
    const child = spawn(first, rest, {
      stdio: ['ignore', 'pipe', 'pipe', this.#lock],
      env: { ...process.env, ...env },
      detached: interruptible,
    })
    if (interruptible) this.#running.add(child)
    const output = []
    const warnings = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', bytes => output.push(bytes))
    child.stderr.on('data', bytes => warnings.push(bytes))
    const [status, error] = await new Promise(resolve => {
      child.once('error', error => resolve([null, error]))
      child.once('close', status => resolve([status]))
    })
    this.#running.delete(child)
    if (status === 0) return Buffer.concat(warnings)
    throw new StepFailed([command, ...args].join(' '), error ? `${error.message}\n` : Buffer.concat(output))
  }

  end() {
    for (const { pid } of this.#running) {
      try {
        process.kill(-pid, 'SIGTERM')
      } catch (error) {
        if (error.code !== 'ESRCH') throw error
      }
    }
  }
}

async function carryOut(step, commands, say) {
  if (isDone(step)) return
  const started = Date.now()
  say(`${step.name} ...`)
  const finished = step.stamp !== undefined && existsSync(step.stamp)
  // A stamp of other inputs must not outlive outputs that this run is about to replace.
  if (step.stamp) rmSync(step.stamp, { force: true })
  const digest = step.stamp && digestOf(step)
  const warnings = []
  const run = interruptible => async (command, args, env) => {
    warnings.push(await commands.run({ interruptible, gives_way: step.gives_way }, command, args, env))
  }
  await step.work(Object.assign(run(true), { whole: run(false) }), finished)
  const missing = (step.outputs ?? []).filter(path => !existsSync(path))
  if (missing.length > 0) throw new StepFailed(`${step.name} (no ${missing.join(', ')})`, Buffer.concat(warnings))
  // An edit during the work would be missed otherwise.
  if (step.stamp) writeStamp(step, digest)
  process.stderr.write(Buffer.concat(warnings))
  say(`${step.name} done in ${((Date.now() - started) / 1000).toFixed(1)} s`)
}

/**
 * Runs the steps that are not done. Resolves with true when all are done; false when one failed, after printing which
 * one, its output and its remedy. A tree in which nothing is to be done is neither locked nor written to.
 */
export async function runSteps(steps, say) {
  if (steps.every(isDone)) return true
  const commands = new Commands(lockFolder(say))
  const running = new Map()
  const failures = []
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, () => {
      failures.push([{ name: 'set-up' }, new Error(`ended by ${signal}`)])
      commands.end()
    })
  const start = step => {
    const before = (step.needs ?? []).map(name => start(steps.find(other => other.name === name)))
    if (!running.has(step))
      running.set(
        step,
        Promise.all(before).then(async done => {
          if (failures.length > 0 || done.includes(false)) return false
          try {
            await carryOut(step, commands, say)
            return true
          } catch (error) {
            // Later failures are only those of the commands that the first one ended.
            if (failures.push([step, error]) === 1) commands.end()
            return false
          }
        }),
      )
    return running.get(step)
  }
  await Promise.all(steps.map(start))
  const [first] = failures
  if (first === undefined) return true
  const [step, error] = first
  if (error instanceof StepFailed) process.stderr.write(error.output)
  say(`${step.name}: ${error.message}`)
  if (step.remedy) say(step.remedy)
  return false
}

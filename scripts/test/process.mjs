// Starts the process of a group of test files and passes on what it reports (test/support/harness/report.ts).
import { spawn } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { givesWay } from './schedule.mjs'

/** Limit of one file. Sanitizer builds of the native core take minutes on a cold cache beside other files. */
const FILE_LIMIT_MS = 900_000
/** After SIGTERM a process prints what it waits for. */
const TO_TELL_MS = 15_000
/** What a file printed is shown when it fails, at most this much of it. */
const OUTPUT_BYTES = 64 * 1024

const compiled = file => join('build', file.replace(/\.ts$/, '.js'))

/** The end of what a process printed. */
class Output {
  #text = ''
  take(stream) {
    stream.setEncoding('utf8').on('data', text => {
      this.#text = (this.#text + text).slice(-OUTPUT_BYTES)
    })
  }
  drain() {
    const text = this.#text
    this.#text = ''
    return text
  }
}

/** Resolves when the process has ended and everything that it printed was read. */
const ended = child =>
  new Promise(resolve => {
    child.once('error', error => resolve({ code: null, signal: String(error) }))
    child.once('close', (code, signal) => resolve({ code, signal }))
  })

/** Gives a started process, and all that it starts, the cores that live calls leave free. */
const giveWay = child => child.pid && setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL)

/** Starts Node.js, which is among `children` until it has ended. */
function start(args, options, children) {
  const child = spawn(process.execPath, args, options)
  children.add(child)
  child.once('close', () => children.delete(child))
  return child
}

async function runCheck(printer, children) {
  const child = start(['scripts/check.mjs', '--compiled'], { stdio: ['ignore', 'pipe', 'pipe'] }, children)
  giveWay(child)
  const output = new Output()
  output.take(child.stdout)
  output.take(child.stderr)
  const { code } = await ended(child)
  printer.checked(code === 0, output.drain())
}

/**
 * `scratch` is the folder for temporary files; undefined: the system's. The process is among `children` until it has
 * ended.
 */
export async function runGroup(group, printer, { scratch, children }) {
  const { check, files } = group
  if (check) return runCheck(printer, children)
  const env = { ...process.env, ...(scratch === undefined ? {} : { TMPDIR: scratch }), STROWGER_TEST_REPORT: '3' }
  const args = ['build/test/support/harness/main.js', ...files.map(compiled)]
  const child = start(args, { stdio: ['ignore', 'pipe', 'pipe', 'pipe'], env }, children)
  if (givesWay(group)) giveWay(child)
  const output = new Output()
  output.take(child.stdout)
  output.take(child.stderr)
  const left = new Set(files)
  let current
  let limit
  let kill
  const arm = () => {
    clearTimeout(limit)
    limit = setTimeout(() => {
      child.kill('SIGTERM')
      kill = setTimeout(() => child.kill('SIGKILL'), TO_TELL_MS)
    }, FILE_LIMIT_MS)
  }
  arm()
  createInterface({ input: child.stdio[3] }).on('line', line => {
    const message = JSON.parse(line)
    if (message.event === 'begin') {
      current = message.file
      arm()
    }
    if (message.event === 'end') left.delete(message.file)
    printer.take(message, message.event === 'end' ? output.drain() : '')
  })
  const { code, signal } = await ended(child)
  clearTimeout(limit)
  clearTimeout(kill)
  printer.exited({ files, left: [...left], current, code, signal, output: output.drain() })
}

import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cpu_ms } from './cpu-time.ts'
import { thrown } from './origin.ts'
import { report } from './report.ts'
import { Test, waitsFor } from './test.ts'

/**
 * After its last test, a process must end by itself. This is time for a busy machine, to end child processes, and for
 * werift: a DTLS client whose peer has left repeats its flight for 33 s.
 */
const TO_END_MS = 120_000

/** How long a test may wait for what does not keep the process alive, such as a socket after `unref`. */
const UNHELD_MS = 3_000

let root: Test | undefined

/** The outermost test of the file that runs. */
export function currentRoot(): Test {
  if (root === undefined) throw new Error('no test file is running')
  return root
}

const undos: (() => unknown)[] = []

/** Runs `undo` after the last file of this process, the last given first: for what the files of a group share. */
export function atProcessEnd(undo: () => unknown): void {
  undos.push(undo)
}

/** Counts the assertions of one file and reports its failures. */
class Count {
  pass = 0
  fail = 0
  skip = 0
  first_ms: number | undefined
  readonly #file: string
  constructor(file: string) {
    this.#file = file
  }
  #counted(): void {
    this.first_ms ??= performance.now()
  }
  passed(): void {
    this.#counted()
    this.pass++
  }
  failed(path: readonly string[], detail: string): void {
    this.#counted()
    this.fail++
    report({ event: 'failure', file: this.#file, path, detail })
  }
  skipped(): void {
    this.skip++
  }
  said(text: string): void {
    report({ event: 'comment', file: this.#file, text })
  }
}

async function runFile(url: string, last: boolean, begun_ms: number, begun_cpu_ms: number): Promise<boolean> {
  const file = relative('build', fileURLToPath(url)).replace(/\.js$/, '.ts')
  report({ event: 'begin', file })
  const count = new Count(file)
  const test = new Test(file, [], count)
  root = test
  // The file's own statements are the body: the import ends when they have ended.
  await test.run(async () => await import(url))
  if (last)
    await test.run(async () => {
      for (const undo of undos.splice(0)) test.teardown(undo)
    })
  const wall_ms = performance.now() - begun_ms
  const start_ms = (count.first_ms ?? performance.now()) - begun_ms
  const { pass, fail, skip } = count
  // The CPU time of a child that ends and is not waited for is lost, so the sum may fall.
  report({ event: 'end', file, pass, fail, skip, wall_ms, cpu_ms: Math.max(0, cpu_ms() - begun_cpu_ms), start_ms })
  return fail === 0
}

const stray = (what: string) => (error: unknown) => currentRoot().abort(`${what}\n${thrown(error)}`)

/** Fails the running test when nothing is left that could end it. Node.js would end the process without a word. */
function failUnheld(): void {
  if (process.getActiveResourcesInfo().length > 0) return
  const root = currentRoot()
  // Its teardowns wait in the same way.
  if (unheld === root) process.exit(1)
  unheld = root
  root.abort(`nothing is left that could end this test: no timer, socket or process\n${waitsFor()}`)
}

let unheld: Test | undefined

/** Runs test files one after the other in this process. Failures set the exit code. */
export async function runFiles(urls: readonly string[]): Promise<void> {
  process.on('uncaughtException', stray('uncaught exception'))
  process.on('unhandledRejection', stray('unhandled rejection'))
  process.on('SIGTERM', () => {
    currentRoot().abort(`the time limit of the file has ended\n${waitsFor()}`)
    // The teardowns get a moment; the kernel ends the platforms of a process that exits.
    setTimeout(() => process.exit(1), 2_000)
  })
  let done = false
  process.on('beforeExit', () => {
    // Node.js 20 has waited in its clean-up without end, with a whole core, after stories with broken connections.
    if (done) process.exit()
    const timer = setTimeout(() => {
      // Node.js counts a timer whose callback runs.
      timer.unref()
      failUnheld()
    }, UNHELD_MS)
  })
  let begun_ms = 0
  let begun_cpu_ms = 0
  for (const url of urls) {
    if (!(await runFile(url, url === urls.at(-1), begun_ms, begun_cpu_ms))) process.exitCode = 1
    begun_ms = performance.now()
    begun_cpu_ms = cpu_ms()
  }
  done = true
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(', ')
    currentRoot().fail('the process does not end after its tests', { open })
    process.exit(1)
  }, TO_END_MS).unref()
}

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { inspect } from 'node:util'
import { pendingWaits } from '../wait.ts'
import { differs, differsLoosely, mismatches } from './compare.ts'
import { framesOf, thrown } from './origin.ts'
import { Queue } from './queue.ts'

interface Options {
  /** Skips the test; a text says why. */
  readonly skip?: boolean | string
  /** Fails the test after this many milliseconds. The runner limits whole files. */
  readonly timeout?: number
  /** Lets the test run beside other buffered ones, up to `jobs` of the test around it. */
  readonly buffered?: boolean
  /** How many buffered subtests of this test run at once. */
  readonly jobs?: number
}

type Body = (t: Test) => unknown
/** A folder's content: by name, the text of a file or a folder. */
interface Content {
  readonly [name: string]: string | Buffer | Content
}
// biome-ignore lint/suspicious/noExplicitAny: any class can be thrown, with any constructor.
type Thrown = RegExp | Error | object | (new (...args: any[]) => unknown)

/** What happens to the assertions of a file. */
interface Ledger {
  passed(): void
  failed(path: readonly string[], detail: string): void
  skipped(): void
  said(text: string): void
}

const shown = (value: unknown): string => inspect(value, { depth: 6, maxStringLength: 4000 })
const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'

/** What waits now, for the message of a time limit. */
export const waitsFor = (): string => {
  const waits = [...pendingWaits]
  const counted = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) counted.set(kind, (counted.get(kind) ?? 0) + 1)
  const open = [...counted].map(([kind, count]) => `${count} ${kind}`).join(', ')
  return waits.length === 0
    ? `no wait is open; there is: ${open}`
    : waits.map(({ what }) => `waits for: ${what}`).join('\n')
}

let folders = 0

/** One test, with assertions and subtests. Its methods are those of node-tap that our tests use, with their meaning. */
export class Test {
  readonly name: string
  readonly #path: readonly string[]
  readonly #ledger: Ledger
  readonly #queue: Queue
  readonly #running = new Set<Test>()
  readonly #teardowns: (() => unknown)[] = []
  readonly #waits = new Set<Promise<unknown>>()
  readonly #over: Promise<void>
  #end: () => void = () => undefined
  #abort: (error: unknown) => void = () => undefined
  readonly #aborted: Promise<never>
  #passing = true
  #closed = false
  #folder: string | undefined

  constructor(name: string, path: readonly string[], ledger: Ledger, jobs = 1) {
    this.name = name
    this.#path = path
    this.#ledger = ledger
    this.#queue = new Queue(jobs)
    this.#over = new Promise(resolve => {
      this.#end = resolve
    })
    this.#aborted = new Promise((_resolve, reject) => {
      this.#abort = reject
    })
    this.#aborted.catch(() => undefined)
  }

  /** How many buffered subtests run at once. */
  get jobs(): number {
    return this.#queue.jobs
  }
  set jobs(jobs: number) {
    this.#queue.jobs = jobs
  }

  /** Runs a subtest after those before it. The promise is kept when it has ended, whether it passed or failed. */
  test(name: string, body: Body): Promise<void>
  test(name: string, options: Options, body: Body): Promise<void>
  test(name: string, ...rest: [Body] | [Options, Body]): Promise<void> {
    const [options, body] = rest.length === 1 ? [{}, rest[0]] : rest
    if (options.skip) {
      this.#ledger.skipped()
      return Promise.resolve()
    }
    const child = new Test(name, [...this.#path, name], this.#ledger, options.jobs)
    return this.#queue.add(options.buffered !== true, async () => {
      this.#running.add(child)
      await child.run(body, options.timeout)
      this.#running.delete(child)
      if (!child.#passing) this.#passing = false
    })
  }

  /** Runs the body, its subtests and its teardowns. */
  async run(body: Body, limit_ms?: number): Promise<void> {
    const limit =
      limit_ms === undefined
        ? undefined
        : setTimeout(() => this.abort(`the time limit of ${limit_ms} ms has ended\n${waitsFor()}`), limit_ms)
    try {
      const done = body(this)
      await Promise.race([isPromise(done) ? done : this.#over, this.#aborted])
    } catch (error) {
      this.#threw(error)
    }
    await this.finish()
    clearTimeout(limit)
  }

  /** Waits for subtests, then runs the teardowns, the last first. */
  async finish(): Promise<void> {
    try {
      while (this.#waits.size > 0 || this.#queue.busy)
        await Promise.race([Promise.all([...this.#waits, this.#queue.idle()]), this.#aborted])
    } catch (error) {
      this.#threw(error)
    }
    for (let undo = this.#teardowns.pop(); undo !== undefined; undo = this.#teardowns.pop())
      try {
        await undo()
      } catch (error) {
        this.#threw(error)
      }
    this.#closed = true
  }

  /** Ends the innermost running tests with a failure, or this one when none of its subtests runs. */
  abort(reason: string): void {
    if (this.#running.size > 0) {
      for (const child of this.#running) child.abort(reason)
      return
    }
    this.#queue.clear()
    this.#abort(new Aborted(reason))
  }

  #threw(error: unknown): void {
    const [title = ''] = String(error instanceof Error ? error.message : error).split('\n')
    this.#failed(title, error instanceof Aborted ? error.message : thrown(error))
  }

  #failed(name: string, detail: string): void {
    this.#passing = false
    this.#ledger.failed([...this.#path, name], detail)
  }

  #assert(holds: boolean, name: string, detail: () => string): boolean {
    // An assertion after the end shows that the test did not wait for what it tests.
    if (this.#closed) this.#failed(name, `asserted after the end of its test\n${framesOf(new Error().stack)}`)
    else if (holds) this.#ledger.passed()
    else this.#failed(name, `${detail()}\n${framesOf(new Error().stack)}`)
    return holds
  }

  pass(name = 'passed'): boolean {
    return this.#assert(true, name, () => '')
  }
  fail(name = 'failed', detail?: unknown): boolean {
    return this.#assert(false, name, () => (detail === undefined ? '' : shown(detail)))
  }
  ok(value: unknown, name = 'should be truthy'): boolean {
    return this.#assert(Boolean(value), name, () => `found: ${shown(value)}`)
  }
  notOk(value: unknown, name = 'should be falsy'): boolean {
    return this.#assert(!value, name, () => `found: ${shown(value)}`)
  }
  equal(found: unknown, wanted: unknown, name = 'should be equal'): boolean {
    const detail = () => `found:  ${shown(found)}\nwanted: ${shown(wanted)}`
    return this.#assert(found === wanted, name, detail)
  }
  not(found: unknown, unwanted: unknown, name = 'should not be equal'): boolean {
    return this.#assert(found !== unwanted, name, () => `found: ${shown(found)}`)
  }
  same(found: unknown, wanted: unknown, name = 'should be equivalent'): boolean {
    return this.#compared(differsLoosely(found, wanted), name)
  }
  strictSame(found: unknown, wanted: unknown, name = 'should be equivalent strictly'): boolean {
    return this.#compared(differs(found, wanted), name)
  }
  match(found: unknown, pattern: unknown, name = 'should match pattern'): boolean {
    return this.#compared(mismatches(found, pattern), name)
  }
  notMatch(found: unknown, pattern: unknown, name = 'should not match pattern'): boolean {
    const detail = () => `found:   ${shown(found)}\npattern: ${shown(pattern)}`
    return this.#assert(mismatches(found, pattern) !== null, name, detail)
  }
  #compared(difference: string | null, name: string): boolean {
    return this.#assert(difference === null, name, () => difference ?? '')
  }

  /** `type` is the name of a type as `typeof` gives it, or a class. */
  type(value: unknown, type: string, name = `type is ${type}`): boolean {
    return this.#assert(typeof value === type, name, () => `found: ${shown(value)}`)
  }

  throws(run: () => unknown, ...rest: [name?: string] | [wanted: Thrown, name?: string]): boolean {
    const [wanted, name] = expectation(rest, 'expected to throw')
    try {
      run()
    } catch (error) {
      return this.#caught(error, wanted, name)
    }
    return this.#assert(false, name, () => 'nothing was thrown')
  }
  doesNotThrow(run: () => unknown, name = 'expected to not throw'): boolean {
    try {
      run()
    } catch (error) {
      return this.#assert(false, name, () => thrown(error))
    }
    return this.#assert(true, name, () => '')
  }
  /** The test ends only when the promise is settled, also when nobody awaits the result. */
  rejects(
    given: PromiseLike<unknown> | (() => PromiseLike<unknown>),
    ...rest: [name?: string] | [wanted: Thrown, name?: string]
  ): Promise<boolean> {
    const [wanted, name] = expectation(rest, 'expected to reject')
    const outcome = (async () => {
      try {
        await (typeof given === 'function' ? given() : given)
      } catch (error) {
        return this.#caught(error, wanted, name)
      }
      return this.#assert(false, name, () => 'the promise was fulfilled')
    })()
    this.#waits.add(outcome)
    void outcome.finally(() => this.#waits.delete(outcome))
    return outcome
  }
  #caught(error: unknown, wanted: Thrown | undefined, name: string): boolean {
    const found = wanted instanceof RegExp && error instanceof Error ? error.message : error
    const difference = wanted === undefined ? null : mismatches(found, wanted)
    return this.#assert(difference === null, name, () => `${difference}\n${thrown(error)}`)
  }

  comment(text: string): void {
    this.#ledger.said(text)
  }
  /** Ends a test whose body is not asynchronous. */
  end(): void {
    this.#end()
  }
  passing(): boolean {
    return this.#passing
  }
  /** Runs `undo` when the test has ended, the last given first. */
  teardown(undo: () => unknown): void {
    this.#teardowns.push(undo)
  }

  /** The path of this test's folder. Only `testdir` makes it. */
  get testdirName(): string {
    this.#folder ??= resolve('build/test-folders', `${process.pid}-${++folders}`)
    return this.#folder
  }
  /** Makes a folder with this content for the time of the test. Returns its path. */
  testdir(content: Content = {}): string {
    const folder = this.testdirName
    rmSync(folder, { recursive: true, force: true })
    fill(folder, content)
    this.teardown(() => rmSync(folder, { recursive: true, force: true }))
    return folder
  }
}

/** Ends a test from outside. */
class Aborted extends Error {}

const expectation = (
  rest: [name?: string] | [wanted: Thrown, name?: string],
  unnamed: string,
): [Thrown | undefined, string] => {
  const [first, second] = rest
  return typeof first === 'string' || first === undefined ? [undefined, first ?? unnamed] : [first, second ?? unnamed]
}

function fill(folder: string, content: Content): void {
  mkdirSync(folder, { recursive: true })
  for (const [name, inside] of Object.entries(content)) {
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true })
    if (typeof inside === 'string' || Buffer.isBuffer(inside)) writeFileSync(path, inside)
    else fill(path, inside)
  }
}

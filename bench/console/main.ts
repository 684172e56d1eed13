import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'
import { openState } from '../../core/state/index.ts'
import { queueWrite } from '../../core/state/port.ts'
import { chromiumPath } from '../chromium.ts'
import { startUp } from '../up.ts'

// Measures the console's speed: on a CPU that is slowed down four times, the time to a usable overview and to a usable
// list of ten thousand calls; then the longest task that blocks the page while that list scrolls to its end, and while
// a page shows hundreds of running calls. The reference for the loads is an empty page of the same server.
//
// A page is usable at its Time to Interactive (web.dev/articles/tti): what was waited for is painted, and the last task
// of more than 50 ms is over, so that a click is answered within 50 ms. Tasks are watched for a second after the paint.
// Shorter tasks may follow: the charts below the first ones, the count of alerts.
//
// Both are judged by the CPU time of the page's main thread, as Chromium traces it: other work on the machine stretches
// the time of a clock, but not that. The clock's time is printed beside it, with that of an empty page.
//
//   npm run bench -- console [--profile FILE]    the CPU profile of one load of the list, for Chromium's tools

const LIMITS = { interactive_ms: 500, list_ms: 500, blocked_ms: 100, live_blocked_ms: 50 } as const
const SLOW_DOWN = 4
const CALLS = 10_000
const RUNNING = 500
/** How long the page of running calls is watched: several of its reloads. */
const WATCHED_MS = 15_000
/** A busy machine may draw few frames a second. What is judged is the longest task, not the time to the end. */
const SCROLL_LIMIT_MS = 600_000
const ROUNDS = 8
/** A task of this length delays the answer to a click (web.dev/articles/tti). */
const LONG_TASK_MS = 50
/** How long after the paint tasks are watched. */
const WATCHED_AFTER_MS = 1000
/** The mark that a page under measurement sets when what is waited for is painted. */
const USABLE = 'usable'
const ROWS = '.table-box.tall tbody tr'
const PROFILE = process.argv.includes('--profile') ? process.argv[process.argv.indexOf('--profile') + 1] : undefined

const executablePath = chromiumPath()
const platform = await startUp('console')
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  await fill()
  report(await measure(browser))
} finally {
  await browser.close()
  await platform.stop()
}

async function fill(): Promise<void> {
  const at = `strftime('%Y-%m-%dT%H:%M:%fZ', ${Date.now() / 1000} - (${CALLS} - i) * 5, 'unixepoch')`
  await write({
    sql: `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${CALLS})
      insert into call (sid, project_id, origin, direction, from_number, to_number, status, queued_at, initiated_at,
        answered_at, ended_at, duration_seconds, sip_code, ended_by, updated_at)
      select 'CA' || printf('%032x', i), ?, 'trunk', 'outbound', '+2342010000001', '+23480' || printf('%08d', i),
        iif(i % 3, 'completed', 'failed'), ${at}, ${at}, iif(i % 3, ${at}, null), ${at}, i % 600, iif(i % 3, 200, 503),
        'caller', ${at} from n`,
    parameters: [platform.made.project_id],
  })
}

async function write(statement: { readonly sql: string; readonly parameters: readonly string[] }): Promise<void> {
  const state = await openState({ data_dir: platform.folder })
  await queueWrite(state.db, statement)
  await state.close()
}

/** Adds calls that run. No node has them, so nothing ends them. */
function addRunning(): Promise<void> {
  return write({
    sql: `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${RUNNING})
      insert into call (sid, project_id, origin, direction, from_number, to_number, status, queued_at, initiated_at,
        answered_at, updated_at)
      select 'CA' || printf('%032x', 1000000 + i), ?, 'trunk', 'outbound', '+2342010000001',
        '+23480' || printf('%08d', i), 'in-progress', at, at, at, at
        from n, (select strftime('%Y-%m-%dT%H:%M:%fZ', 'now') as at)`,
    parameters: [platform.made.project_id],
  })
}

interface Load {
  /**
   * CPU time of the main thread from the start of the navigation until the page is usable, in the cheapest round: who
   * shares the processor's caches only ever adds to it.
   */
  readonly cpu_ms: number
  /** The time of a clock until then: in the fastest round, and in the median one. */
  readonly best_ms: number
  readonly median_ms: number
}

interface Measured {
  readonly interactive: Load
  readonly list: Load
  /** Reference: a page without scripts from the same server, in the same slowed-down browser. */
  readonly bare: Load
  readonly rows_scrolled: number
  /** CPU time of the longest task, in ms, and the time of a clock that the longest one took. */
  readonly longest_task_ms: number
  readonly longest_task_wall_ms: number
  /** The same while hundreds of calls run. */
  readonly live_longest_task_ms: number
  readonly live_longest_task_wall_ms: number
}

async function measure(in_browser: Browser): Promise<Measured> {
  const context = await in_browser.newContext({ viewport: { width: 1440, height: 900 } })
  const page = await context.newPage()
  await signIn(page)
  const devtools = await context.newCDPSession(page)
  const tracing = await in_browser.newBrowserCDPSession()
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: SLOW_DOWN })
  const load = (path: string, shown: string) =>
    loads({ page, devtools, tracing }, `${platform.made.base_url}${path}`, shown)
  const bare = await load('/healthz', 'document.body !== null')
  const interactive = await load('/console/', `document.querySelector('.shell main .stat') !== null`)
  const list = await load('/console/calls', `document.querySelectorAll('${ROWS}').length > 5`)
  if (PROFILE !== undefined) await profile(page, devtools, PROFILE)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 1 })
  await page.locator(ROWS).nth(5).waitFor()
  const { found: rows_scrolled, ...scrolled } = await traced(page, tracing, () => scroll(page))
  await addRunning()
  await page.goto(`${platform.made.base_url}/console/calls/live`)
  await page.locator(`table[aria-rowcount="${RUNNING + 1}"]`).waitFor()
  const live = await traced(page, tracing, () => page.waitForTimeout(WATCHED_MS))
  await context.close()
  return {
    ...{ interactive, list, bare, rows_scrolled },
    longest_task_ms: scrolled.longest_cpu_ms,
    longest_task_wall_ms: scrolled.longest_ms,
    live_longest_task_ms: live.longest_cpu_ms,
    live_longest_task_wall_ms: live.longest_ms,
  }
}

interface Traced<T> {
  readonly found: T
  readonly longest_cpu_ms: number
  readonly longest_ms: number
}

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly args?: { readonly data?: { readonly navigationId?: string } }
  /** When it began, in microseconds. */
  readonly ts: number
  /** Duration and CPU time, in microseconds. */
  readonly dur?: number
  readonly tdur?: number
}

function threadOf({ pid, tid }: TraceEvent): string {
  return `${pid} ${tid}`
}

/** Runs `work` while Chromium writes down each task of its threads. @throws without CPU times */
async function trace<T>(tracing: CDPSession, work: () => Promise<T>): Promise<[T, readonly TraceEvent[]]> {
  const wanted = new Set(['RunTask', 'navigationStart', USABLE])
  const events: TraceEvent[] = []
  const collect = ({ value }: { value: readonly object[] }): void => {
    // A trace of seconds has more events than a call takes arguments.
    for (const event of value as readonly TraceEvent[]) if (wanted.has(event.name)) events.push(event)
  }
  tracing.on('Tracing.dataCollected', collect)
  const includedCategories = ['disabled-by-default-devtools.timeline', 'blink.user_timing']
  await tracing.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories } })
  const found = await work()
  const complete = new Promise<void>(resolve => tracing.once('Tracing.tracingComplete', () => resolve()))
  await tracing.send('Tracing.end')
  await complete
  tracing.off('Tracing.dataCollected', collect)
  if (!events.some(({ name, tdur = 0 }) => name === 'RunTask' && tdur > 0))
    throw new Error('the trace has no CPU times of tasks')
  return [found, events]
}

/**
 * Runs `work`, and finds the longest task of the page's main thread meanwhile. Chromium has pages of its own, such as
 * that of its address bar, whose first tasks are longer. The page's thread is the one that sets the mark.
 */
async function traced<T>(page: Page, tracing: CDPSession, work: () => Promise<T>): Promise<Traced<T>> {
  const [found, events] = await trace(tracing, async () => {
    await page.evaluate(`performance.mark('${USABLE}')`)
    return work()
  })
  const mark = events.find(({ name }) => name === USABLE)
  if (!mark) throw new Error('the trace has no mark of the page')
  const tasks = events.filter(event => event.name === 'RunTask' && threadOf(event) === threadOf(mark))
  const most = (read: (task: TraceEvent) => number): number =>
    tasks.reduce((so_far, task) => Math.max(so_far, read(task)), 0) / 1000
  return { found, longest_cpu_ms: most(({ tdur = 0 }) => tdur), longest_ms: most(({ dur = 0 }) => dur) }
}

interface Loading {
  readonly page: Page
  readonly devtools: CDPSession
  readonly tracing: CDPSession
}

/** Sets the mark by what the page itself does: a question from outside, or in each frame, would be work of its own. */
function markWhen(shown: string): string {
  return `(() => {
  const look = () => {
    if (!(${shown})) return
    watcher.disconnect()
    requestAnimationFrame(() => setTimeout(() => {
      performance.mark('${USABLE}')
      ${USABLE}('')
    }))
  }
  const watcher = new MutationObserver(look)
  watcher.observe(document, { childList: true, subtree: true })
  look()
})()`
}

async function loads(on: Loading, url: string, shown: string): Promise<Load> {
  const { devtools } = on
  await devtools.send('Runtime.enable')
  await devtools.send('Runtime.addBinding', { name: USABLE })
  await devtools.send('Page.enable')
  const { identifier } = await devtools.send('Page.addScriptToEvaluateOnNewDocument', { source: markWhen(shown) })
  const rounds: { readonly wall_ms: number; readonly cpu_ms: number }[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await load(on, url))
  await devtools.send('Page.removeScriptToEvaluateOnNewDocument', { identifier })
  await devtools.send('Runtime.removeBinding', { name: USABLE })
  const walls = rounds.map(({ wall_ms }) => wall_ms)
  return {
    cpu_ms: Math.min(...rounds.map(({ cpu_ms }) => cpu_ms)),
    best_ms: Math.min(...walls),
    median_ms: median(walls),
  }
}

/** Loads a page once. Returns the time until it is usable, and the CPU time of its main thread in it. */
async function load({ page, devtools, tracing }: Loading, url: string) {
  const [, events] = await trace(tracing, async () => {
    const painted = new Promise<void>(resolve => devtools.once('Runtime.bindingCalled', () => resolve()))
    await page.goto(url, { waitUntil: 'commit' })
    await painted
    await page.waitForTimeout(WATCHED_AFTER_MS)
  })
  const mark = events.findLast(({ name }) => name === USABLE)
  const id = mark?.args?.data?.navigationId
  const start = events.find(({ name, args }) => name === 'navigationStart' && args?.data?.navigationId === id)
  if (!mark || !start) throw new Error('the trace has no start of the navigation or no paint')
  const tasks = events.filter(event => event.name === 'RunTask' && threadOf(event) === threadOf(mark))
  const ends = tasks
    .filter(({ ts, tdur = 0 }) => ts > start.ts && tdur > LONG_TASK_MS * 1000)
    .map(({ ts, dur = 0 }) => ts + dur)
  const usable = Math.max(mark.ts, ...ends)
  const until = tasks.filter(({ ts }) => ts >= start.ts && ts < usable)
  return {
    wall_ms: (usable - start.ts) / 1000,
    cpu_ms: until.reduce((sum, { tdur = 0 }) => sum + tdur, 0) / 1000,
  }
}

/** Writes the CPU profile of one load of the list. */
async function profile(page: Page, devtools: CDPSession, file: string): Promise<void> {
  await devtools.send('Profiler.enable')
  await devtools.send('Profiler.start')
  await page.goto(`${platform.made.base_url}/console/calls`)
  await page.locator(ROWS).nth(5).waitFor()
  const { profile } = await devtools.send('Profiler.stop')
  writeFileSync(file, JSON.stringify(profile))
}

async function signIn(page: Page): Promise<void> {
  await page.goto(`${platform.made.base_url}/console/`)
  await page.getByLabel('Email').fill('admin@strowger.local')
  await page.getByLabel('Password').fill(readFileSync(join(platform.folder, 'console-password'), 'utf8').trim())
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('.shell main h1').waitFor()
}

/** Scrolls the list to its end. Returns the number of rows that it then has. */
function scroll(page: Page): Promise<number> {
  return page.evaluate<number>(`new Promise((resolve, reject) => {
    const box = document.querySelector('.table-box.tall')
    const rows = () => Math.round(box.scrollHeight / 44) - 1
    const begun = performance.now()
    const step = () => {
      box.scrollTop += box.clientHeight
      if (rows() >= ${CALLS} && box.scrollTop + box.clientHeight >= box.scrollHeight - 1) return resolve(rows())
      if (performance.now() - begun > ${SCROLL_LIMIT_MS}) return reject(new Error(rows() + ' rows in the limit'))
      requestAnimationFrame(step)
    }
    step()
  })`)
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

function report(measured: Measured): void {
  const { interactive, list, bare, rows_scrolled, ...tasks } = measured
  const bad =
    !(interactive.cpu_ms <= LIMITS.interactive_ms) ||
    !(list.cpu_ms <= LIMITS.list_ms) ||
    !(tasks.longest_task_ms <= LIMITS.blocked_ms) ||
    !(tasks.live_longest_task_ms <= LIMITS.live_blocked_ms)
  const loadLine = (what: string, { cpu_ms, best_ms, median_ms }: Load, limit_ms: number): string =>
    `${what}, ${SLOW_DOWN} x slower processor: ${cpu_ms.toFixed(0)} ms of CPU (limit ${limit_ms}), ` +
    `x ${(cpu_ms / bare.cpu_ms).toFixed(1)} of an empty page; by the clock ${best_ms.toFixed(0)} at best, ` +
    `${median_ms.toFixed(0)} median, an empty page ${bare.best_ms.toFixed(0)}`
  console.log(loadLine('time to the overview', interactive, LIMITS.interactive_ms))
  console.log(loadLine(`time to the list of ${CALLS} calls`, list, LIMITS.list_ms))
  console.log(
    `${rows_scrolled} calls scrolled to the end: blocked ${tasks.longest_task_ms.toFixed(0)} ms of CPU at most ` +
      `(limit ${LIMITS.blocked_ms}; ${tasks.longest_task_wall_ms.toFixed(0)} by the clock)`,
  )
  console.log(
    `${RUNNING} calls running: blocked ${tasks.live_longest_task_ms.toFixed(0)} ms of CPU at most ` +
      `(limit ${LIMITS.live_blocked_ms}; ${tasks.live_longest_task_wall_ms.toFixed(0)} by the clock)`,
  )
  mkdirSync('bench/results', { recursive: true })
  const results = { at: new Date().toISOString(), limits: LIMITS, measured, within_limits: !bad }
  writeFileSync('bench/results/console.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exitCode = bad ? 1 : 0
}

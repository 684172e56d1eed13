import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'
import { openState } from '../../core/state/index.ts'
import { queueWrite } from '../../core/state/port.ts'
import { startUp } from '../up.ts'

// Measures the console's speed: on a CPU that is slowed down four times, the time to a usable overview and to a usable
// list of ten thousand calls; then the longest task that blocks the page while that list scrolls to its end, and while
// a page shows hundreds of running calls. The reference for the loads is an empty page of the same server.
//
// Tasks are measured by the CPU time of the page's main thread, as Chromium traces it: a busy machine stretches the
// time of a clock, but not that. A load also waits for the network and the server, so its clock counts; other work on
// the machine only ever adds to it, so the fastest of the rounds is judged.
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
const ROUNDS = 5
const ROWS = '.table-box.tall tbody tr'
const PROFILE = process.argv.includes('--profile') ? process.argv[process.argv.indexOf('--profile') + 1] : undefined
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/snap/bin/chromium']

const executablePath = CHROMIUM.find(existsSync)
if (executablePath === undefined) throw new Error('chromium is missing: `npm test` installs it')
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
  /** From the start of the navigation until the page is shown and its main thread is idle, in the fastest round. */
  readonly best_ms: number
  readonly median_ms: number
  /** CPU time of the main thread until then, in the median round. */
  readonly cpu_ms: number
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
  const load = (path: string, shown: string) => loads(page, tracing, `${platform.made.base_url}${path}`, shown)
  const bare = await load('/healthz', 'document.body !== null')
  const interactive = await load('/console/', `document.querySelector('.shell main h1') !== null`)
  const list = await load('/console/calls', `document.querySelectorAll('${ROWS}').length > 5`)
  if (PROFILE !== undefined) await profile(page, devtools, PROFILE)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 1 })
  await page.locator(ROWS).nth(5).waitFor()
  const { found: rows_scrolled, ...scrolled } = await traced(tracing, () => scroll(page))
  await addRunning()
  await page.goto(`${platform.made.base_url}/console/calls/live`)
  await page.locator(`table[aria-rowcount="${RUNNING + 1}"]`).waitFor()
  const live = await traced(tracing, () => page.waitForTimeout(WATCHED_MS))
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
  /** CPU time of all tasks of the main thread. */
  readonly cpu_ms: number
  readonly longest_cpu_ms: number
  readonly longest_ms: number
}

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly args?: { readonly name?: string }
  /** Duration and CPU time, in microseconds. */
  readonly dur?: number
  readonly tdur?: number
}

/** Runs `work` while Chromium writes down each task of the main threads of pages. @throws without CPU times */
async function traced<T>(tracing: CDPSession, work: () => Promise<T>): Promise<Traced<T>> {
  const events: TraceEvent[] = []
  const collect = ({ value }: { value: readonly object[] }): void => {
    // A trace of seconds has more events than a call takes arguments.
    for (const event of value as readonly TraceEvent[])
      if (event.name === 'RunTask' || event.name === 'thread_name') events.push(event)
  }
  tracing.on('Tracing.dataCollected', collect)
  const traceConfig = { includedCategories: ['disabled-by-default-devtools.timeline', '__metadata'] }
  await tracing.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig })
  const found = await work()
  const complete = new Promise<void>(resolve => tracing.once('Tracing.tracingComplete', () => resolve()))
  await tracing.send('Tracing.end')
  await complete
  tracing.off('Tracing.dataCollected', collect)
  const threadOf = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`
  const main = new Set(events.filter(({ args }) => args?.name === 'CrRendererMain').map(threadOf))
  const tasks = events.filter(event => event.name === 'RunTask' && main.has(threadOf(event)))
  if (!tasks.some(({ tdur = 0 }) => tdur > 0)) throw new Error('the trace has no CPU times of tasks')
  const most = (read: (task: TraceEvent) => number): number =>
    tasks.reduce((so_far, task) => Math.max(so_far, read(task)), 0) / 1000
  return {
    found,
    cpu_ms: tasks.reduce((sum, { tdur = 0 }) => sum + tdur, 0) / 1000,
    longest_cpu_ms: most(({ tdur = 0 }) => tdur),
    longest_ms: most(({ dur = 0 }) => dur),
  }
}

async function loads(page: Page, tracing: CDPSession, url: string, shown: string): Promise<Load> {
  const rounds: { readonly wall_ms: number; readonly cpu_ms: number }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { found, cpu_ms } = await traced(tracing, () => loaded(page, url, shown))
    rounds.push({ wall_ms: found, cpu_ms })
  }
  const walls = rounds.map(({ wall_ms }) => wall_ms)
  return {
    best_ms: Math.min(...walls),
    median_ms: median(walls),
    cpu_ms: median(rounds.map(({ cpu_ms }) => cpu_ms)),
  }
}

/** Writes the CPU profile of one load of the list. */
async function profile(page: Page, devtools: CDPSession, file: string): Promise<void> {
  await devtools.send('Profiler.enable')
  await devtools.send('Profiler.start')
  await loaded(page, `${platform.made.base_url}/console/calls`, `document.querySelectorAll('${ROWS}').length > 5`)
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

/** Returns the milliseconds from the start of a navigation until `shown` holds and the page's main thread is idle. */
async function loaded(page: Page, url: string, shown: string): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' })
  return page.evaluate<number>(`new Promise(resolve => {
    const look = () => (${shown}) ? requestIdleCallback(() => resolve(performance.now())) : requestAnimationFrame(look)
    look()
  })`)
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
    !(interactive.best_ms <= LIMITS.interactive_ms) ||
    !(list.best_ms <= LIMITS.list_ms) ||
    !(tasks.longest_task_ms <= LIMITS.blocked_ms) ||
    !(tasks.live_longest_task_ms <= LIMITS.live_blocked_ms)
  const loadLine = (what: string, { best_ms, median_ms, cpu_ms }: Load, limit_ms: number): string =>
    `${what}, ${SLOW_DOWN} x slower processor: ${best_ms.toFixed(0)} ms (limit ${limit_ms}), ` +
    `x ${(best_ms / bare.best_ms).toFixed(1)} of a bare page; median ${median_ms.toFixed(0)}, ` +
    `CPU of the page ${cpu_ms.toFixed(0)}`
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

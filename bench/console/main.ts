import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { openState } from '../../core/state/index.ts'
import { queueWrite } from '../../core/state/port.ts'
import { startUp } from '../up.ts'

// Measures the console's speed on a CPU that is slowed down four times: the time to a usable overview, and the longest
// task that blocks the page while a table of ten thousand calls scrolls to its end, and while a page shows hundreds of
// running calls. The reference for the overview is an empty page of the same server.
//
//   npm run bench -- console

const LIMITS = { interactive_ms: 500, blocked_ms: 100, live_blocked_ms: 50 } as const
const SLOW_DOWN = 4
const CALLS = 10_000
const RUNNING = 500
/** How long the page of running calls is watched: several of its reloads. */
const WATCHED_MS = 15_000
/** A busy machine may draw few frames a second. What is judged is the longest task, not the time to the end. */
const SCROLL_LIMIT_MS = 600_000
const ROUNDS = 5
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

interface Measured {
  readonly interactive_ms: number
  /** Reference: a page without scripts from the same server, in the same slowed-down browser. */
  readonly bare_ms: number
  readonly rows_scrolled: number
  readonly longest_task_ms: number
  /** The longest task while hundreds of calls run; 0: none of 50 ms. */
  readonly live_longest_task_ms: number
}

async function measure(in_browser: Browser): Promise<Measured> {
  const context = await in_browser.newContext({ viewport: { width: 1440, height: 900 } })
  const page = await context.newPage()
  await signIn(page)
  const devtools = await context.newCDPSession(page)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: SLOW_DOWN })
  const interactive: number[] = []
  const bare: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    bare.push(await loaded(page, `${platform.made.base_url}/healthz`, 'document.body !== null'))
    interactive.push(
      await loaded(page, `${platform.made.base_url}/console/`, `document.querySelector('.shell main h1') !== null`),
    )
  }
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 1 })
  const scrolled = await scroll(page)
  await addRunning()
  const live_longest_task_ms = await watchLive(page)
  await context.close()
  return { interactive_ms: median(interactive), bare_ms: median(bare), ...scrolled, live_longest_task_ms }
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

async function scroll(page: Page): Promise<Pick<Measured, 'rows_scrolled' | 'longest_task_ms'>> {
  await page.goto(`${platform.made.base_url}/console/calls`)
  await page.locator('.table-box.tall tbody tr').nth(5).waitFor()
  return page.evaluate<{ rows_scrolled: number; longest_task_ms: number }>(`new Promise((resolve, reject) => {
    let longest = 0
    new PerformanceObserver(list => {
      for (const { duration } of list.getEntries()) longest = Math.max(longest, duration)
    }).observe({ entryTypes: ['longtask'] })
    const box = document.querySelector('.table-box.tall')
    const rows = () => Math.round(box.scrollHeight / 44) - 1
    const begun = performance.now()
    const step = () => {
      box.scrollTop += box.clientHeight
      if (rows() >= ${CALLS} && box.scrollTop + box.clientHeight >= box.scrollHeight - 1)
        return setTimeout(() => resolve({ rows_scrolled: rows(), longest_task_ms: longest }), 500)
      if (performance.now() - begun > ${SCROLL_LIMIT_MS}) return reject(new Error(rows() + ' rows in the limit'))
      requestAnimationFrame(step)
    }
    step()
  })`)
}

async function watchLive(page: Page): Promise<number> {
  await page.goto(`${platform.made.base_url}/console/calls/live`)
  await page.locator(`table[aria-rowcount="${RUNNING + 1}"]`).waitFor()
  return page.evaluate<number>(`new Promise(resolve => {
    let longest = 0
    new PerformanceObserver(list => {
      for (const { duration } of list.getEntries()) longest = Math.max(longest, duration)
    }).observe({ entryTypes: ['longtask'] })
    setTimeout(() => resolve(longest), ${WATCHED_MS})
  })`)
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

function report(measured: Measured): void {
  const { interactive_ms, bare_ms, rows_scrolled, longest_task_ms, live_longest_task_ms } = measured
  const bad =
    !(interactive_ms <= LIMITS.interactive_ms) ||
    !(longest_task_ms <= LIMITS.blocked_ms) ||
    !(live_longest_task_ms <= LIMITS.live_blocked_ms)
  console.log(
    `time to interactive, ${SLOW_DOWN} x slower processor: ${interactive_ms.toFixed(0)} ms (limit ${LIMITS.interactive_ms}), ` +
      `x ${(interactive_ms / bare_ms).toFixed(1)} of a bare page`,
  )
  console.log(
    `${rows_scrolled} calls scrolled to the end: blocked ${longest_task_ms.toFixed(0)} ms at most (limit ${LIMITS.blocked_ms}; ` +
      'a browser tells nothing below 50)',
  )
  console.log(
    `${RUNNING} calls running: blocked ${live_longest_task_ms.toFixed(0)} ms at most (limit ${LIMITS.live_blocked_ms})`,
  )
  mkdirSync('bench/results', { recursive: true })
  const results = { at: new Date().toISOString(), limits: LIMITS, measured, within_limits: !bad }
  writeFileSync('bench/results/console.json', `${JSON.stringify(results, null, 2)}\n`)
  process.exitCode = bad ? 1 : 0
}

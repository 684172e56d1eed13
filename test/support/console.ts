import { mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import jsqr from 'jsqr'
import { type BrowserContext, type BrowserContextOptions, type CDPSession, chromium, type Page } from 'playwright-core'
import { chromiumPath } from '../../bench/chromium.ts'
import type { Test } from './harness/index.ts'
import { PATIENCE_MS, until } from './wait.ts'

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  // The pages are drawn without a GPU: its process would be one more start, to which all pictures are copied.
  '--in-process-gpu',
  // Otherwise the GPU thread, which is now one of this process, sets VK_ICD_FILENAMES for SwiftShader while the main
  // thread reads the environment: a segmentation fault at the start, now and then.
  '--disable-software-rasterizer',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // For calls in the page: a microphone that beeps, and IP addresses instead of mDNS names.
  '--use-fake-device-for-media-stream',
  '--use-fake-ui-for-media-stream',
  '--disable-features=WebRtcHideLocalIpsWithMdns',
  '--autoplay-policy=no-user-gesture-required',
]

export const WIDTHS = { narrow: 390, wide: 1440 } as const

/** The part of a browser that tests use. Its contexts have our timeout and reduced motion. */
interface TestBrowser {
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>
}

/** Opens Debian's Chromium without a window; `more` are further command-line arguments. */
export async function openBrowser(t: Pick<Test, 'teardown'>, more: readonly string[] = []): Promise<TestBrowser> {
  const args = [...ARGUMENTS, ...more]
  const executablePath = chromiumPath()
  const browser = await chromium.launch({ executablePath, args, headless: true, timeout: PATIENCE_MS })
  t.teardown(() => browser.close())
  return {
    async newContext(options = {}) {
      const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
      context.setDefaultTimeout(PATIENCE_MS)
      return context
    },
  }
}

interface Signer {
  readonly base_url: string
  readonly email: string
  readonly password: string
}

/** Opens the console, signs in and returns the page. */
export async function signIn(context: BrowserContext, { base_url, email, password }: Signer): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${base_url}/console/`)
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('nav[aria-label="Main"]').waitFor({ state: 'attached' })
  return page
}

/** Returns a list that collects the page's exceptions and console errors, such as violations of its security policy. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = []
  page.on('pageerror', error => complaints.push(String(error)))
  page.on('console', message => {
    // The page itself shows a refused request. The browser's line about it adds nothing.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text())
  })
  return complaints
}

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly impact: string | null
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

/**
 * Returns serious and critical findings of axe, one line each. `only` limits the rules, unless it is empty; `within`
 * limits the part of the page.
 */
export async function axeFindings(page: Page, only: readonly string[] = [], within = 'html'): Promise<string[]> {
  // The page's security policy blocks inline scripts, but not scripts that come over the DevTools protocol.
  const loaded = await page.evaluate('typeof axe === "object"')
  if (!loaded) await page.evaluate(await axeSource())
  // A selector for each element costs as much as the rules, and no rule in use reads the style sheets.
  const options = { resultTypes: ['violations'], selectors: false, preload: false }
  const given = JSON.stringify({ ...options, ...(only.length > 0 ? { runOnly: only } : {}) })
  const result = (await page.evaluate(`axe.run(${JSON.stringify(within)}, ${given})`)) as AxeResult
  return result.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.slice(0, 3).map(node => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary ?? ''}`),
    )
}

let source: string | undefined
async function axeSource(): Promise<string> {
  const { readFile } = await import('node:fs/promises')
  source ??= await readFile(axePath, 'utf8')
  return source
}

/**
 * What does not fit: a page that is wider than the window, and numbers and actions that their cell cuts; on a telephone
 * also all other values that their box cuts, cards of long lists that are too low, and lists that scroll sideways.
 */
const MISFITS = `[
  ...(document.documentElement.scrollWidth > innerWidth ? [document.documentElement] : []),
  ...[...document.querySelectorAll('main td:is(.num, :has(.num, button, .badge))')].filter(
    cell => cell.clientWidth > 0 && cell.scrollWidth > cell.clientWidth + 1,
  ),
  ...(innerWidth > ${WIDTHS.narrow} ? [] : [
    ...[...document.querySelectorAll('main td, main dd, main .badge, main h1, main h2')].filter(
      box => box.clientWidth > 0 && box.scrollWidth > box.clientWidth + 1,
    ),
    ...[...document.querySelectorAll('main table.fixed tr:not(.gap)')].filter(
      row => row.scrollHeight > row.clientHeight + 1,
    ),
    ...[...document.querySelectorAll('main .table-box')].filter(box => box.scrollWidth > box.clientWidth + 1),
  ]),
].map(box => box === document.documentElement ? 'the page' : box.getAttribute('aria-label') ?? box.textContent)`
/** Waits until the page `name` fits its window: it may have just turned to another look. */
export async function everythingFits(page: Page, name: string): Promise<void> {
  let misfits: string[] = []
  await until('everything fits', async () => {
    misfits = await page.evaluate<string[]>(MISFITS)
    return misfits.length === 0
  }).catch(cause => {
    const width = page.viewportSize()?.width
    throw new Error(`${name} at ${width} pixels cuts or hides: ${misfits.join('; ')}`, { cause })
  })
}

/** Opens a page of the console as a link in it does. It costs a fraction of a load by address. */
export const follow = (page: Page, path: string): Promise<unknown> =>
  page.evaluate(`history.pushState(null, '', '/console${path}'); dispatchEvent(new PopStateEvent('popstate'))`)

/** Reads a QR code off a picture as a telephone's camera does. The browser only decodes the PNG. */
export async function qrTextOf(context: BrowserContext, picture: Buffer): Promise<string> {
  const blank = await context.newPage()
  const url = `data:image/png;base64,${picture.toString('base64')}`
  const { width, height, pixels } = await blank.evaluate<{
    width: number
    height: number
    pixels: string
  }>(`(async () => {
    const bitmap = await createImageBitmap(await (await fetch('${url}')).blob())
    const { width, height } = bitmap
    const canvas = new OffscreenCanvas(width, height).getContext('2d')
    canvas.drawImage(bitmap, 0, 0)
    const { data } = canvas.getImageData(0, 0, width, height)
    let pixels = ''
    for (let at = 0; at < data.length; at += 4) pixels += data[at] < 128 ? '1' : '0'
    return { width, height, pixels }
  })()`)
  await blank.close()
  const rgba = Uint8ClampedArray.from(
    [...pixels].flatMap(dark => (dark === '1' ? [0, 0, 0, 255] : [255, 255, 255, 255])),
  )
  const found = jsqr.default(rgba, width, height)
  if (!found) throw new Error('no QR code is in the picture')
  return found.data
}

const sessions = new WeakMap<Page, CDPSession>()

/**
 * Saves a picture of the window as an artefact of the run. One of the whole page costs twice as much, and Playwright's
 * encoder three times.
 */
export async function screenshot(page: Page, folder: string, name: string): Promise<void> {
  const session = sessions.get(page) ?? (await page.context().newCDPSession(page))
  sessions.set(page, session)
  const picture = { format: 'png', optimizeForSpeed: true, captureBeyondViewport: false } as const
  const { data } = await session.send('Page.captureScreenshot', picture)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.png`), data, 'base64')
}

import { type TOTP, URI } from 'otpauth'
import { FIRST_READS } from '../../control/console/lib/first-reads.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { insertCall } from '../../core/state/calls/running-calls.ts'
import { putSandboxCarrier } from '../../core/state/configuration/bootstrap.ts'
import { insertOrganization, insertProject } from '../../core/state/people/customers.ts'
import { insertTestAlert, insertTestContainment } from '../support/alerts.ts'
import { chargedCall } from '../support/charges.ts'
import { standingClock } from '../support/clock.ts'
import {
  axeFindings,
  complaintsOf,
  everythingFits,
  follow,
  openBrowser,
  qrTextOf,
  screenshot,
  signIn,
  WIDTHS,
} from '../support/console.ts'
import { CONSOLE_PASSWORD, controlPlane } from '../support/control-plane.ts'
import { queuedCall, ranCall, trunkOf } from '../support/ended-calls.ts'
import t from '../support/harness/index.ts'
import { asks, operatorKey } from '../support/operators.ts'
import { UNHEARD_PORT } from '../support/ports.ts'
import { importPriceBook } from '../support/rated.ts'
import { addTenant } from '../support/tenants.ts'
import { toldCall } from '../support/told-call.ts'
import { until } from '../support/wait.ts'

// The pages that draw: a call on its axis, boards, live calls. They show rows, so they need no telephony.

const PICTURES = 'test-results/console-board'
const RUNNING = 500
const DAY_MS = 86_400_000
const naira = new Intl.NumberFormat('en-NG', { style: 'currency', currency: 'NGN', currencyDisplay: 'narrowSymbol' })

/** Pages of one thing, and what it is. */
const DETAILS: Readonly<Record<string, string>> = {
  '/calls/CA0': 'Call',
  '/rooms/x': 'Room',
  '/queues/x': 'Queue',
  '/trunks/x': 'Trunk',
  '/trunks/x/subtrunks/y': 'Subtrunk',
  '/applications/x': 'Voice application',
  '/policies/x': 'Outbound policy',
  '/subaccounts/x': 'Subaccount',
  '/audit/x': 'Event',
  '/webhooks/x': 'Webhook endpoint',
  '/operator/customers/x': 'Customer',
  '/operator/projects/x': 'Project',
  '/operator/carriers/x': 'Carrier',
  '/operator/rates/x': 'Price book',
}

/** How far the edge of a drawn bar may be from its amount. */
const BAR_PX = 2
/** Measures the bars of days in the picture: how many pixels in the middle of each have their colour. */
const BARS_OF_DAYS = (days: number): string => `(() => {
  const chart = document.querySelector('.chart[aria-label^="Spend by day"]')
  const canvas = chart?.querySelector('canvas')
  if (!canvas) return null
  const [over, whole] = [chart.querySelector('.u-over'), canvas].map(part => part.getBoundingClientRect())
  const scale = canvas.width / whole.width
  const probe = document.createElement('canvas').getContext('2d')
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--accent').trim()
  probe.fillRect(0, 0, 1, 1)
  const wanted = probe.getImageData(0, 0, 1, 1).data
  const heights = Array.from({ length: ${days} }, (_, day) => {
    const x = Math.round((over.left - whole.left + (over.width * (day + 0.5)) / ${days}) * scale)
    const { data } = canvas.getContext('2d').getImageData(x, 0, 1, canvas.height)
    let found = 0
    for (let at = 0; at < data.length; at += 4)
      if ([0, 1, 2].every(color => Math.abs(data[at + color] - wanted[color]) < 10)) found++
    return found / scale
  })
  return { of: over.height, heights }
})()`

const BARS_OF_DESTINATIONS = `
  [...document.querySelectorAll('.bars[aria-label="Spend by destination"] li')].map(item => ({
    text: item.textContent,
    width: item.querySelector('.bar').style.width,
  }))`

t.test('pages that draw what happened', async t => {
  // The clock stands, so that no hour ends between two calls of a step.
  const [w, browser] = await Promise.all([controlPlane(t, { clock: standingClock() }), openBrowser(t)])
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  const page = await signIn(context, { base_url: w.base_url, email: w.demo.email, password: CONSOLE_PASSWORD })
  const complaints = complaintsOf(page)
  const open = (path: string) => page.goto(`${w.base_url}/console${path}`)
  const shown = (text: string | RegExp) => page.locator('main').getByText(text).first().waitFor()

  await t.test('a call has one axis with messages, steps, keys, requests, turns, quality and audio', async t => {
    const { sid, child } = await toldCall(w)
    await open(`/calls/${sid}`)
    await shown('Answered and talked 0:32, hung up by the caller side.')
    const axis = page.getByRole('listbox', { name: 'What happened in the call' })
    await axis.waitFor()
    await until('the audio is drawn', async () => (await axis.locator('path').count()) === 2)
    await screenshot(page, PICTURES, 'call')
    t.same(await axeFindings(page, [], 'main'), [], 'nothing serious')
    const moment = (name: string | RegExp) => axis.getByRole('option', { name })
    for (const name of [
      /^Call: Talking/,
      /^SIP, 192\.0\.2\.7:5060: → INVITE/,
      /^SIP, 192\.0\.2\.7:5060: ← 200 OK/,
      /^Script: Say: For sales press 1\./,
      /^Script: Dial: \+2348030004712/,
      /^Keys: Key/,
      /^Webhooks: POST https:\/\/app\.example\/choice → 200/,
      /^Agent turns: 1101 ms/,
      /^Quality, leg of the called: 2\.40/,
    ]) {
      // The messages, the figures and the audio come each by a request of its own.
      await moment(name).first().waitFor()
      t.equal(await moment(name).count(), 1, String(name))
    }

    // Messages may be nearer to each other than their marks are wide.
    await axis.press('ArrowRight')
    await axis.press('ArrowRight')
    const side = page.getByRole('complementary', { name: 'What was chosen' })
    await side.getByText(/^INVITE sip:/).waitFor()
    await moment(/^Webhooks/).click()
    await side.getByText('<Response><Dial>').waitFor()
    await screenshot(page, PICTURES, 'call-request')

    const files = { Capture: `${sid}.pcapng`, Evidence: `${sid}-evidence.json` }
    for (const [name, file] of Object.entries(files)) {
      const download = page.waitForEvent('download')
      await page.getByRole('button', { name, exact: true }).click()
      t.equal((await download).suggestedFilename(), file)
    }

    const view = async () => (await page.locator('.axis').getAttribute('data-view'))?.split(' ').map(Number) ?? []
    const whole = await view()
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await until('it is zoomed', async () => (await view())[1] !== whole[1])
    const [from = 0, to = 0] = await view()
    t.ok(from < 8480 && to > 8480, 'around what was chosen')
    t.equal(await moment(/^SIP, .* → INVITE/).count(), 0, 'all lanes are zoomed together')
    await axis.press('0')
    await until('the whole call is shown again', async () => (await view())[1] === whole[1])

    await page
      .getByRole('row', { name: /Made by this call/ })
      .getByRole('link')
      .click()
    await page.getByRole('row', { name: /Made this call/ }).waitFor()
    t.ok(page.url().endsWith(`/calls/${child}`))
    t.same(complaints, [])
  })

  await t.test('a board has the figures of the API, one range for all charts, and leads to the calls', async t => {
    const trunk_id = await trunkOf(w, 'Head office')
    const call = { trunk_id }
    for (const hours_ago of [2, 2, 5]) await ranCall(w, { call, hours_ago, seconds: 60, pdd_ms: 900 })
    const busy = await ranCall(w, { call, hours_ago: 5, cause: 'refused', sip_code: 486 })
    const { body } = await w.ask('GET', `/v1/metrics/series?window=24h&trunk_id=${trunk_id}`)
    t.match(body.total, { attempts: 4, answered: 3 })
    await open(`/trunks/${trunk_id}`)
    const stat = (name: string) => page.locator('.stat').filter({ hasText: name })
    await stat('Calls now').getByText('of 1,000 at most').waitFor()
    t.match(body.ceilings, { concurrency: 1000, cps: 100 })
    await stat('Calls per second').getByText(`in the last second, of ${body.ceilings.cps} at most`).waitFor()
    await stat('Answered').getByText('75.0 %').waitFor()
    await stat('Post-dial delay').getByText(`${body.total.pdd_p95_ms} ms`).waitFor()
    await shown('Peer busy')

    const card = page.locator('.board .card').filter({ hasText: 'By the hour in which they ended' })
    const over = card.locator('.u-over')
    const xOf = async (index: number) => {
      const box = await over.boundingBox()
      if (!box) throw new Error('the chart has no place')
      return { x: box.x + (box.width * (index + 0.5)) / body.series.length, y: box.y + box.height / 2, box }
    }
    const steps: { at: string; attempts: number }[] = body.series
    const step = steps.findIndex(({ attempts }) => attempts === 2)
    await screenshot(page, PICTURES, 'trunk')
    // What is drawn above the chart moves it, and a new range scales it a moment after the address has it.
    const pointed = () =>
      until('the step under the pointer is told', async () => {
        const point = await xOf(step)
        await page.mouse.move(point.x, point.y)
        return (await card.getByText('2 (0.00/s)').count()) > 0 && point
      })
    await until('it is loaded', async () => (await page.locator('main output.loading').count()) === 0)
    await pointed()

    const [from, to] = [await xOf(step - 2), await xOf(step + 2)]
    await page.mouse.move(from.x, from.y)
    await page.mouse.down()
    await page.mouse.move(to.x, to.y, { steps: 3 })
    await page.mouse.up()
    await until('the range is in the address', async () => /[?&]from=\d+/.test(page.url()))
    t.match(page.url(), /\/trunks\//, 'the end of a drag is no click')
    await page.getByRole('button', { name: 'Whole window' }).click()
    await until('the whole window is shown again', async () => !/[?&]from=/.test(page.url()))

    const again = await pointed()
    await page.mouse.click(again.x, again.y)
    await page.waitForURL(/\/console\/calls\?/)
    const rows = page.locator('.table-box tbody a[href*="/calls/CA"]')
    await until('both calls of the step are listed', async () => (await rows.count()) === 2)
    const hrefs = await rows.evaluateAll(links => links.map(link => link.getAttribute('href')))
    t.equal(
      hrefs.some(href => href?.endsWith(busy)),
      step === steps.length - 6,
      'and no other',
    )
    t.same(complaints, [])
  })

  await t.test(
    'the operator compares carriers by what the API says of their calls, and sees the days of one',
    async t => {
      const desk = asks(w, await operatorKey(w))
      const target = { sip_uri: 'sip:203.0.113.9', transport: 'udp', priority: 1, weight: 100 }
      const given = { name: 'Long Lines', sources: [], targets: [target], routes: [] }
      const { body: carrier } = await desk('POST', '/carriers', given)
      // The page asks for the days of its own clock.
      const at = iso(Date.now())
      for (const [seconds, result] of [
        [90, 'answered'],
        [30, 'answered'],
        [null, 'failed'],
      ] as const) {
        const call_sid = await ranCall(w, {
          call: { carrier_id: carrier.id },
          seconds,
          pdd_ms: seconds && seconds * 10,
        })
        const row = { call_sid, carrier_id: carrier.id, sequence: 1, target: target.sip_uri, transport: 'udp', result }
        const times = { started_at: at, provisional_at: null, ended_at: at }
        const rest = { sip_call_id: null, address: null, sip_code: null, reason: null }
        await w.state.transaction(trx =>
          trx
            .insertInto('call_attempt')
            .values({ ...row, ...times, ...rest })
            .execute(),
        )
      }
      const day = at.slice(0, 10)
      const { total } = (await desk('GET', `/carriers/${carrier.id}/metrics?from=${day}&to=${day}`)).body
      t.match(total, { attempts: 3, answered: 2, asr_pct: 66.7, acd_seconds: 60, pdd_ms: 600 })
      await open('/operator/carriers')
      const row = page.getByRole('row').filter({ hasText: 'Long Lines' })
      for (const text of [`${total.asr_pct} %`, '1:00', `${total.pdd_ms} ms`]) await row.getByText(text).waitFor()
      await row.getByRole('link').first().click()
      const stat = (name: string) => page.locator('.stat').filter({ hasText: name })
      await stat('Answered (ASR)').getByText('2 of 3 attempts').waitFor()
      await stat('Mean duration (ACD)').getByText('1:00').waitFor()
      await stat('Post-dial delay (PDD)').getByText('600 ms').waitFor()
      await stat('Margin').waitFor()
      await page.getByRole('img', { name: /^Attempts by day: .*Answered/ }).waitFor()
      await screenshot(page, PICTURES, 'carrier')
      t.same(await axeFindings(page, [], 'main'), [], 'nothing serious')
    },
  )

  await t.test('the operator opens a closed prefix with one click, and drains a node', async t => {
    const containment_id = await insertTestContainment(w)
    const closed = async () => {
      const { body } = await w.ask('GET', '/v1/containments')
      type Row = { readonly id: string; readonly released_at: string | null }
      return body.data.find(({ id, released_at }: Row) => id === containment_id && released_at === null)
    }
    const { prefix, case_ref } = await closed()
    // The last one is on the second page.
    await insertTestAlert(w, 'new_source_ip')
    for (let more = 0; more < 50; more++) await insertTestAlert(w)
    await open('/operator/fraud')
    await shown(case_ref)
    const fired = page.locator('main').getByRole('button', { name: 'Acknowledge', exact: true })
    await until('the first page is shown', async () => (await fired.count()) === 50)
    await page.getByRole('button', { name: 'More alerts' }).click()
    await until('all alerts are shown', async () => (await fired.count()) > 50)
    const { name } = await w.state.db.selectFrom('project').select('name').executeTakeFirstOrThrow()
    await page.locator('main .card').getByRole('link', { name, exact: true }).first().waitFor()
    await page.getByRole('button', { name: `Open ${prefix}` }).click()
    await until('it is open', async () => (await closed()) === undefined)
    await page.getByRole('button', { name: `Open ${prefix}` }).waitFor({ state: 'detached' })

    const at = iso(w.clock.now())
    const node = { id: 'node_board', kind: 'signaling', pid: 1, started_at: at, heartbeat_at: at } as const
    await w.state.db.insertInto('node').values(node).execute()
    const past = iso(w.clock.now() - 60_000)
    const silent = { ...node, id: 'node_silent', started_at: past, heartbeat_at: past }
    const draining = async () => {
      const row = await w.state.db.selectFrom('node').select('draining_at').where('id', '=', node.id).executeTakeFirst()
      return row?.draining_at != null
    }
    await open('/operator/nodes')
    const row = page.getByRole('row').filter({ hasText: silent.id })
    await until('the silent process is shown', async () => {
      // The platform forgets it after 15 s.
      await w.state.db
        .insertInto('node')
        .values(silent)
        .onConflict(conflict => conflict.doNothing())
        .execute()
      return (await row.getByText('Silent', { exact: true }).count()) === 1
    })
    t.equal(await row.getByRole('button').count(), 0, 'nobody can drain a process that hears nothing')
    await page.getByRole('button', { name: `Drain ${node.id}` }).click()
    t.equal(await draining(), false, 'the page asks first')
    await page.getByRole('dialog').getByRole('button', { name: 'Drain', exact: true }).click()
    await until('it drains', draining)
    await page.getByRole('button', { name: `Take calls on ${node.id}` }).click()
    await until('it takes calls again', async () => !(await draining()))
    await w.state.db.deleteFrom('node').where('id', 'in', [node.id, silent.id]).execute()
    t.same(complaints, [])
  })

  await t.test('the map of destinations and its list have the rates of the API, also after they changed', async t => {
    const asked: string[] = []
    page.on('request', request => asked.push(request.url()))
    const shapes = () => asked.filter(url => url.includes('/world-map'))
    await open('/')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    t.same(shapes(), [], 'other pages do without the shapes of the countries')
    // A destination is covered by a rate and a route.
    await putSandboxCarrier(w.state, {
      machine_id: 'mac_1',
      host: '127.0.0.1',
      port: UNHEARD_PORT,
      now: iso(w.clock.now()),
    })
    const book = { project_id: w.demo.project_id, direction: 'outbound', currency: 'NGN' } as const
    const minute = { rate_unit: 'minute', increment_initial_seconds: 60, increment_additional_seconds: 60 } as const
    const nigeria = { ...minute, prefix: '234', label: 'Nigeria', rate_micro: 9_000_000_000 }
    const mobile = { ...nigeria, prefix: '234803', rate_micro: 12_500_000_000 }
    const kenya = { ...minute, prefix: '254', label: 'Kenya', rate_micro: 33_000_000_000 }
    const from = (day: string) => ({ effective_from: `${day}T00:00:00.000Z`, created_at: `${day}T00:00:00.000Z` })
    const agrees = async (iso_code: string, name: string, code: string) => {
      const { body } = await w.ask('GET', '/v1/rates/coverage?direction=outbound')
      const rates = body.data.filter(({ match }: { match: string }) => match.startsWith(code))
      const minor: number[] = rates.map(({ rate_minor }: { rate_minor: number }) => rate_minor)
      const ends = [...new Set([Math.min(...minor), Math.max(...minor)])].map(end => naira.format(end / 100))
      const price = minor.length === 0 ? 'not covered' : ends.join(' – ')
      // Of a long list, only the rows in view are drawn.
      await page.getByLabel('Country or code').fill(name)
      await page.getByRole('row').filter({ hasText: name }).getByText(price, { exact: true }).waitFor()
      const shape = page.locator(`path[data-country="${iso_code}"]`)
      await shape.hover()
      await shown(`${name}, ${code}: ${price}${minor.length === 0 ? '' : ' a minute'}`)
      t.equal(/\bnone\b/.test((await shape.getAttribute('class')) ?? ''), minor.length === 0, `${name} on the map`)
      return minor.length
    }
    await importPriceBook(w.state, { ...book, ...from('2026-01-01'), name: 'Retail' }, [nigeria, mobile])
    await open('/destinations')
    t.equal(await agrees('NG', 'Nigeria', '+234'), 2)
    t.equal(await agrees('KE', 'Kenya', '+254'), 0)
    t.equal(shapes().length, 1)
    await screenshot(page, PICTURES, 'destinations')
    t.same(await axeFindings(page, [], 'main'), [], 'nothing serious')
    await page.getByLabel('Country or code').fill('')
    await page.locator('path[data-country="KE"]').click()
    await until(
      'the list has the country that was chosen',
      async () => (await page.locator('main tbody tr').count()) === 1,
    )
    await importPriceBook(w.state, { ...book, ...from('2026-02-01'), name: 'Wider' }, [nigeria, kenya])
    await open('/destinations')
    t.equal(await agrees('NG', 'Nigeria', '+234'), 1)
    t.equal(await agrees('KE', 'Kenya', '+254'), 1)
  })

  await t.test('Billing draws what the API says was spent, by day and by destination, also after more was', async t => {
    const spend = (day: string, label: string, charge_minor: number) =>
      chargedCall(w, { day, label, charge_minor, trunk_id: null, seconds: 60 })
    await spend('2026-03-02', 'Nigeria', 40_000)
    await spend('2026-03-09', 'Ghana', 100_000)
    const agrees = async () => {
      const usage = async (group: string) => (await w.ask('GET', `/v1/billing/usage?group_by=${group}`)).body
      const by_day = await usage('day')
      await open('/billing')
      const spent = new Map<string, number>(
        by_day.data.map((row: { day: string; settled_spend_minor: number }) => [row.day, row.settled_spend_minor]),
      )
      const first_ms = Date.parse(by_day.from)
      const days = (Date.parse(by_day.to) - first_ms) / DAY_MS + 1
      const amounts = Array.from(
        { length: days },
        (_, index) => spent.get(iso(first_ms + index * DAY_MS).slice(0, 10)) ?? 0,
      )
      t.equal(
        amounts.reduce((sum, amount) => sum + amount, 0),
        by_day.total.settled_spend_minor,
      )
      const most = Math.max(...amounts)
      await until('the bars of the days are as high as the amounts', async () => {
        const drawn = await page.evaluate<{ of: number; heights: number[] } | null>(BARS_OF_DAYS(days))
        return drawn?.heights.every((height, at) => {
          // The axis ends a tenth above the highest bar.
          const wanted = (drawn.of * (amounts[at] ?? 0)) / (1.1 * most)
          return Math.abs(height - wanted) <= BAR_PX
        })
      })
      const { data } = await usage('destination')
      type Row = { destination: string; settled_spend_minor: number; calls: number }
      const longest = Math.max(...data.map((row: Row) => row.settled_spend_minor))
      await until('each destination has its amount, and a bar of its length', async () => {
        const rows = await page.evaluate<{ text: string; width: string }[]>(BARS_OF_DESTINATIONS)
        return (
          rows.length === data.length &&
          data.every(({ destination, settled_spend_minor, calls }: Row, at: number) => {
            const text = `${destination}${naira.format(settled_spend_minor / 100)} · ${calls} ${calls === 1 ? 'call' : 'calls'}`
            // A browser keeps six digits of a width.
            const wrong_by = Number.parseFloat(rows[at]?.width ?? '') - (100 * settled_spend_minor) / longest
            return rows[at]?.text === text && Math.abs(wrong_by) < 0.01
          })
        )
      })
    }
    await agrees()
    await screenshot(page, PICTURES, 'billing')
    await spend('2026-03-02', 'Nigeria', 110_000)
    // Today, the last bar.
    await spend('2026-03-11', 'Ghana', 25_000)
    await agrees()
  })

  await t.test(
    'a page takes the answers that the browser asked for beside its scripts, and asks nothing twice',
    async t => {
      const fresh = await context.newPage()
      // Without timers nothing is read again.
      await fresh.addInitScript('window.setInterval = () => 0')
      for (const [path, { paths }] of Object.entries(FIRST_READS)) {
        await fresh.goto(`${w.base_url}/console${path}`)
        await fresh
          .locator(path === '/' ? '.shell main .stat' : '.table-box.tall tbody tr')
          .first()
          .waitFor()
        const by = (read: string) =>
          fresh.evaluate<string[]>(
            `performance.getEntriesByName('${w.base_url}/console/api${read}').map(({ initiatorType }) => initiatorType)`,
          )
        // An answer is listed once it is there, and the overview is drawn before it has all of its answers.
        for (const read of ['/session', ...paths])
          await until(`${path} has read ${read}`, async () => (await by(read)).length > 0)
        await until('all is drawn', async () => (await fresh.locator('main .loading').count()) === 0)
        for (const read of ['/session', ...paths]) t.same(await by(read), ['link'], `${path} reads ${read}`)
      }
      await fresh.close()
    },
  )

  await t.test('a list that cannot be read says so, and comes when the platform answers again', async t => {
    const detail = 'The store is busy.'
    const problem = { type: '', title: 'Busy', status: 503, detail, code: 'state_unavailable', request_id: 'req_1' }
    const reads = '**/console/api/{v1,operator/v1}/**'
    await page.route(reads, route => route.fulfill({ status: 503, json: problem }))
    for (const [path, title] of Object.entries(DETAILS)) {
      await follow(page, path)
      await page.getByRole('heading', { name: title, level: 1 }).waitFor()
      await shown(detail)
      t.match(await page.title(), title, `${path} has its title in the list of windows`)
      await page.locator('main .crumbs a').waitFor()
    }
    for (const path of [
      '/operator/customers',
      '/operator/numbers',
      '/numbers',
      '/recordings',
      '/calls/live',
      '/',
      '/calls',
    ]) {
      await open(path)
      await shown(detail)
      t.equal(await page.locator('main .empty').count(), 0, `${path} does not say that there is nothing`)
    }
    await page.unroute(reads)
    await page.locator('main tbody tr').first().waitFor()
    t.equal(await page.locator('main .notice.bad').count(), 0, 'the error is gone with its cause')
  })

  await t.test("a rival's number is refused as one that nobody has; one that was just taken is told", async t => {
    const [foreign, absent, free] = ['+2342017770001', '+2342017770002', '+2342017770003'] as const
    const rival = await addTenant(w.state, w.settings.master_key, [foreign])
    const alert = page.locator('main').getByRole('alert')
    await open('/numbers/blocks')
    for (const e164 of [foreign, absent]) {
      await page.getByLabel('First number').fill(e164)
      await page.getByLabel('Last number').fill(e164)
      await page.getByRole('button', { name: 'Make the block' }).click()
      const headers = { 'Idempotency-Key': `block ${e164}` }
      const told = await w.ask('POST', '/v1/number-blocks', { body: { start: e164, end: e164 }, headers })
      t.match(told, { status: 404, body: { code: 'not_found' } })
      await alert.getByText(told.body.detail).waitFor()
      t.notMatch(await alert.innerText(), /Rival|in use/i)
    }

    const number = await w.state.db
      .insertInto('number')
      .values({
        ...{ id: newId.number(), e164: free, status: 'available', project_id: null, route_kind: null, route_id: null },
        ...{ quarantined_until: null, revision: 1, created_at: iso(w.clock.now()), updated_at: iso(w.clock.now()) },
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    await open('/numbers/order')
    await page.getByLabel(free).check()
    const taken = { status: 'held', project_id: rival.project_id } as const
    await w.state.db.updateTable('number').set(taken).where('id', '=', number.id).execute()
    await page.getByRole('button', { name: 'Order 1' }).click()
    await alert.getByText(free).waitFor()
    await page.getByLabel(free).waitFor({ state: 'detached' })
    t.same((await w.ask('GET', `/v1/numbers?prefix=${encodeURIComponent(free)}`)).body.data, [], 'nothing was ordered')
  })

  await t.test(
    'an authenticator app reads the second factor off the screen, and a recovery code replaces it',
    async t => {
      await open('/account')
      const card = page.locator('main .card').filter({ hasText: 'Two-factor sign-in' })
      await card.getByRole('button', { name: 'Set it up' }).click()
      const picture = await card.getByRole('img', { name: /^QR code/ }).screenshot()
      const totp = URI.parse(await qrTextOf(context, picture)) as TOTP
      t.match(totp, { issuer: 'Strowger', label: w.demo.email })
      await screenshot(page, PICTURES, 'second-factor')
      await card.getByLabel('Code of your app').fill(totp.generate({ timestamp: w.clock.now() }))
      await card.getByRole('button', { name: 'Turn it on' }).click()
      const list = page.getByRole('dialog').locator('[data-recovery-codes] li')
      await list.nth(9).waitFor()
      const [first = ''] = await list.allInnerTexts()
      await page.getByRole('dialog').getByRole('button', { name: 'I have kept them' }).click()
      await card.getByText('10 recovery codes are left.').waitFor()

      const visitor = await browser.newContext()
      const door = await visitor.newPage()
      const enter = async (given: string) => {
        await door.goto(`${w.base_url}/console/`)
        await door.getByLabel('Email').fill(w.demo.email)
        await door.getByLabel('Password').fill(CONSOLE_PASSWORD)
        await door.getByLabel('One-time code').fill(given)
        await door.getByRole('button', { name: 'Sign in' }).click()
      }
      await enter('')
      await door.getByRole('alert').first().waitFor()
      await enter(first)
      await door.locator('nav[aria-label="Main"]').waitFor({ state: 'attached' })
      await door.goto(`${w.base_url}/console/account`)
      await door.getByText('9 recovery codes are left.').waitFor()
      await visitor.close()
    },
  )

  await t.test('a page of hundreds of live calls draws those in view, and each change of a call at once', async t => {
    const sids = Array.from({ length: RUNNING }, () => newId.call())
    const talking = (sid: string) => queuedCall(w, sid, iso(w.clock.now()), { status: 'in-progress' })
    await w.state.transaction(async trx => {
      for (const sid of sids) await insertCall(trx, talking(sid), w.clock.now())
    })
    await open('/calls/live')
    const table = page.getByRole('table', { name: 'Live calls' })
    await until('all are known', async () => (await table.getAttribute('aria-rowcount')) === String(RUNNING + 1))
    const drawn = await table.locator('tbody tr').count()
    t.ok(drawn < RUNNING / 4, `${drawn} rows of ${RUNNING} are drawn`)
    for (const width of Object.values(WIDTHS)) {
      await page.setViewportSize({ width, height: 900 })
      await everythingFits(page, 'live calls')
      await screenshot(page, PICTURES, `${width}-live-calls`)
    }
  })

  await t.test('an operator sees all projects of a customer, and the name of each beside its number', async t => {
    const [e164 = ''] = w.demo.numbers
    const now = iso(w.clock.now())
    const given = { name: 'Chain', time_zone: 'Africa/Lagos', contact_email: 'desk@chain.example' }
    const { organization_id, last } = await w.state.transaction(async trx => {
      const { id: organization_id } = await insertOrganization(trx, given, now)
      const terms = { organization_id, sandbox: true, prepaid: false, credit_minor: 0 }
      const made = []
      for (let at = 1; at <= 201; at++)
        made.push(
          await insertProject(trx, { ...terms, name: `Branch ${at}` }, { master_key: w.settings.master_key, now }),
        )
      const last = made.sort((one, other) => (one.id < other.id ? -1 : 1)).at(-1)
      await trx
        .updateTable('number')
        .set({ project_id: last?.id ?? '' })
        .where('e164', '=', e164)
        .execute()
      return { organization_id, last }
    })
    await open(`/operator/customers/${organization_id}`)
    const projects = page.getByRole('table', { name: 'Projects' }).locator('tbody tr')
    await until('the first page is shown', async () => (await projects.count()) === 50)
    await page.getByRole('button', { name: 'More projects' }).click()
    await until('the second, too', async () => (await projects.count()) === 100)
    await open('/operator/numbers')
    const row = page.getByRole('row').filter({ hasText: e164 })
    await row.getByRole('link', { name: last?.name ?? '', exact: true }).waitFor()
    t.same(complaints, [])
  })
})

import { readFileSync, rmSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { addCarrier } from '../support/carriers.ts'
import {
  axeFindings,
  complaintsOf,
  everythingFits,
  follow,
  openBrowser,
  screenshot,
  signIn,
  WIDTHS,
} from '../support/console.ts'
import { FAR_AWAY, truthStory } from '../support/console-truth.ts'
import t from '../support/harness/index.ts'
import { operatorStory } from '../support/operator-story.ts'
import { UNHEARD_PORT } from '../support/ports.ts'
import { importPriceBook } from '../support/rated.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { addAdmin } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

// Every page of the console with content: axe's findings, overflow, and a screenshot of each width and of each theme,
// which test-results/console stores.
// #own-process: the operator's pages list the numbers of all stories, more than a page has.

const PICTURES = 'test-results/console'
const LOAD_BUDGET_BYTES = 100 * 1024
/** Rules of axe that depend on width and theme. All others are checked once. */
const RULES_OF_LOOKS = ['color-contrast', 'scrollable-region-focusable', 'target-size']
/**
 * Each page turns from one look to the next without being loaded again, and must fit each. Axe checks each width and
 * each theme once. These looks have a picture: one costs as much as all other work on a look.
 */
const LOOKS = [
  { width: WIDTHS.wide, theme: 'light', rules: [] },
  { width: WIDTHS.wide, theme: 'dark', rules: null },
  { width: WIDTHS.narrow, theme: 'dark', rules: RULES_OF_LOOKS },
  { width: WIDTHS.narrow, theme: 'light', rules: null },
] as const
/** Numbers of the sandbox carrier. */
const [ANSWERS, BUSY] = ['+2348030004712', '+2348030000002'] as const
const POLICY = { name: 'Daytime', recording_channels: 2, recording_mode: 'off', recording_retention_days: 30 }
const APPLICATION = { name: 'Menu', voice_url: 'https://example.com/menu', voice_method: 'POST' }

t.test('pages of the console', async t => {
  rmSync(PICTURES, { recursive: true, force: true })
  const [w, browser] = await Promise.all([sharedWorld(t), openBrowser(t)])
  const trunk_id = await w.addTrunk('127.0.0.9', {
    targets: [{ sip_uri: 'sip:127.0.0.1:9', transport: 'udp', priority: 10, weight: 100 }],
  })
  const key = () => ({ 'idempotency-key': `page-${Math.random()}` })
  const policy = await w.manage('POST', '/outbound-policies', POLICY, key())
  const application = await w.manage('POST', '/voice/applications', APPLICATION, key())
  t.equal(policy.status, 201, JSON.stringify(policy.body))
  t.equal(application.status, 201, JSON.stringify(application.body))
  const per_minute = { rate_micro: 90_000_000, rate_unit: 'minute' } as const
  const { id: price_book_id } = await importPriceBook(
    w.state,
    {
      ...{ project_id: w.project_id, name: 'Retail', direction: 'outbound', currency: 'NGN' },
      ...{ effective_from: '2026-01-01T00:00:00.000Z', created_at: '2026-01-01T00:00:00.000Z' },
    },
    [
      {
        ...per_minute,
        prefix: '234',
        label: 'Nigeria',
        increment_initial_seconds: 60,
        increment_additional_seconds: 60,
      },
    ],
  )
  const placed = await w.voice('POST', '/Calls.json', {
    ...{ From: w.numbers[0] ?? '', To: '+2348030004711' },
    // The callee may stand still for two seconds of the recording. One without sound is none.
    InlineMarkup: '<Response><Say>Hello.</Say><Record maxLength="4" playBeep="false" trim="do-not-trim"/></Response>',
  })
  await w.ended(placed.body.sid)
  const call = `/calls/${placed.body.sid}`
  const trunk = `/trunks/${trunk_id}`
  const subaccount = await w.manage(
    'POST',
    '/subaccounts',
    { name: 'Harbour', configuration: { currency: 'NGN' } },
    key(),
  )
  t.equal(subaccount.status, 201, JSON.stringify(subaccount.body))
  const subtrunk = await w.manage('POST', `${trunk}/subtrunks`, { name: 'Quay', status: 'enabled' }, key())
  t.equal(subtrunk.status, 201, JSON.stringify(subtrunk.body))
  const hook = { url: `http://127.0.0.1:${UNHEARD_PORT}/quay`, event_kinds: ['call.ended'] }
  const { endpoint } = (await w.manage('POST', '/webhook-endpoints', hook, key())).body
  const carrier_id = await addCarrier(
    w.state,
    {
      ...{ name: 'Lagos Telecom', codecs: ['PCMA'], sources: ['203.0.113.128/25'] },
      targets: [{ sip_uri: 'sip:198.51.100.4', transport: 'udp', priority: 1, weight: 100 }],
      routes: [{ prefix: '88213', priority: 5, cost_minor: 120 }],
    },
    new Date().toISOString(),
  )
  const { organization_id } = await w.state.db
    .selectFrom('project')
    .select('organization_id')
    .where('id', '=', w.project_id)
    .executeTakeFirstOrThrow()
  const event_id = (await w.manage('GET', '/audit?range=24h')).body.data[0].id
  const pages = [
    ...[
      '/',
      '/welcome',
      '/calls',
      '/calls/live',
      '/rooms',
      '/queues',
      '/recordings',
      ...['/alerts', '/alerts/containments', '/alerts/policies'],
      '/trunks',
      '/trunks/new',
    ],
    ...[call, `${call}/ladder`, `${call}/decision`, `${call}/media`, `${call}/script`, `${call}/recordings`],
    ...[
      trunk,
      ...['access', 'numbers', 'tests', 'quality', 'connect', 'revisions', 'settings'].map(tab => `${trunk}/${tab}`),
    ],
    `${trunk}/subtrunks/${subtrunk.body.id}`,
    ...['/numbers', '/numbers/order', '/numbers/blocks', '/destinations/tester', '/destinations/rates'],
    ...['/applications', `/applications/${application.body.id}`],
    ...['/editor', '/policies', `/policies/${policy.body.id}`, '/destinations', '/subaccounts'],
    ...['customers', 'carriers', 'money', 'rates', 'numbers', 'fraud', 'nodes', 'audit'].map(
      name => `/operator/${name}`,
    ),
    `/operator/projects/${w.project_id}`,
    ...[
      `/operator/customers/${organization_id}`,
      `/operator/carriers/${carrier_id}`,
      `/operator/rates/${price_book_id}`,
    ],
    ...[`/subaccounts/${subaccount.body.id}`, `/audit/${event_id}`],
    `/webhooks/${endpoint.id}`,
    ...['/billing', '/audit', '/keys', '/webhooks', '/debugger', '/platform', '/members', '/account', '/no-such-page'],
  ]
  const names = Object.entries({
    ...{ [placed.body.sid]: 'call', [trunk_id]: 'trunk', [w.project_id]: 'project' },
    ...{ [application.body.id]: 'application', [policy.body.id]: 'policy', [organization_id]: 'customer' },
    ...{ [carrier_id]: 'carrier', [price_book_id]: 'book', [subaccount.body.id]: 'subaccount', [event_id]: 'event' },
    ...{ [subtrunk.body.id]: 'subtrunk', [endpoint.id]: 'endpoint' },
  })
  const pictureOf = (path: string): string =>
    path === '/'
      ? 'overview'
      : names.reduce((so_far, [id, name]) => so_far.replace(id, name), path.slice(1)).replaceAll('/', '-')
  const admin = { base_url: w.base_url, email: 'pages@customer.test', password: 'a long enough password' }
  await addAdmin(w.state, w.project_id, admin.email, admin.password)
  await w.state.db.updateTable('member').set({ operator: 1 }).where('email', '=', admin.email).execute()

  t.test('every page is drawn at both widths and in both themes, fits, and has no serious finding', async t => {
    const context = await browser.newContext({ viewport: { width: WIDTHS.wide, height: 900 } })
    const page = await signIn(context, admin)
    const complaints = complaintsOf(page)
    /** Opens a page by its address, or as a link in the console does, which costs less: some pages each way. */
    const show = (path: string, index: number): Promise<unknown> =>
      index % 8 === 0 ? page.goto(`${w.base_url}/console${path}`) : follow(page, path)
    for (const [index, path] of pages.entries()) {
      await show(path, index)
      await page.locator('main').locator('h1, h3').first().waitFor()
      const unfinished = page.locator('main :is(output.loading, .chart:not(:has(canvas)))')
      await until('it is loaded, and its charts are drawn', async () => (await unfinished.count()) === 0)
      for (const { width, theme, rules } of LOOKS) {
        await page.setViewportSize({ width, height: 900 })
        await page.emulateMedia({ colorScheme: theme })
        const undrawn = page.locator(`main .chart:not([data-theme="${theme}"])`)
        await until('its charts are drawn in this theme', async () => (await undrawn.count()) === 0)
        await everythingFits(page, path)
        // The menu and the head are the same on all pages.
        const part = index === 0 ? 'html' : 'main'
        if (rules === null) continue
        t.same(await axeFindings(page, rules, part), [], `${path}, ${theme}: nothing serious`)
        await screenshot(page, PICTURES, `${width}-${pictureOf(path)}-${theme}`)
      }
    }
    t.same(complaints, [], 'no page logged an error')
    await w.manage('DELETE', `/webhook-endpoints/${endpoint.id}`, undefined, {
      ...key(),
      'if-match': `"${endpoint.revision}"`,
    })
    await context.close()
  })

  t.test('pages say of calls, policies and targets what the API says', async t => {
    const context = await browser.newContext()
    const page = await signIn(context, admin)
    const open = async (path: string) => {
      await page.goto(`${w.base_url}/console${path}`)
      await until('it is loaded', async () => (await page.locator('main output.loading').count()) === 0)
    }
    const shown = (text: string | RegExp) => page.locator('main').getByText(text).first().waitFor()

    await t.test('the steps of a script are those of its log', async () => {
      const { body } = await w.manage('GET', `/calls/${placed.body.sid}`)
      const steps = body.events.filter(({ kind }: { kind: string }) => kind === 'script')
      const told = steps.map(
        ({ detail }: { detail: { verb: string; text: string } }) => `${detail.verb}: ${detail.text}`,
      )
      t.match(told.slice(0, 2), ['Say: Hello.', 'Record: records for at most 4 s'])
      t.match(told.join('\n'), /Record: recorded \d+ s/)
      await open(`${call}/script`)
      for (const step of told) await shown(step)
      await open(call)
      t.equal(await page.locator('main .notice.bad').count(), 0, 'a good call is not red')
      t.same(
        body.events.filter(({ kind }: { kind: string }) => kind === 'error'),
        [],
      )
    })

    await t.test('a call whose document failed is red, with the sentence of the error', async () => {
      const InlineMarkup = '<Response><Redirect/></Response>'
      const made = await w.voice('POST', '/Calls.json', {
        From: w.numbers[0] ?? '',
        To: '+2348030004711',
        InlineMarkup,
      })
      t.equal((await w.ended(made.body.sid)).status, 'completed')
      const { body } = await w.manage('GET', `/calls/${made.body.sid}`)
      const [fault] = body.events.filter(({ kind }: { kind: string }) => kind === 'error')
      t.equal(fault.number, 11100)
      await open(`/calls/${made.body.sid}`)
      const notice = page
        .locator('main .notice.bad')
        .filter({ hasText: `Its script failed: 11100: ${fault.detail.detail}` })
      await notice.waitFor()
      t.equal(await notice.getByRole('link').getAttribute('href'), '/docs/errors/11100')
      t.equal(body.reason, 'document_failed')
      await open('/calls')
      const line = page.getByRole('row').filter({ has: page.locator(`a[href$="${made.body.sid}"]`) })
      await line.locator('.badge.bad', { hasText: 'Document failed' }).waitFor()
    })

    await t.test('rooms and queues show who is there; who is muted or taken out is so for the API too', async () => {
      const run = async (InlineMarkup: string): Promise<string> => {
        const form = { From: w.numbers[0] ?? '', To: '+2348030004711', InlineMarkup }
        return (await w.voice('POST', '/Calls.json', form)).body.sid
      }
      const join = '<Response><Dial><Conference>console</Conference></Dial></Response>'
      const calls = [await run(join), await run(join)]
      const room = await until('the room is there', async () => {
        const { body } = await w.manage('GET', '/conferences?name=console&status=in-progress')
        return body.data[0]
      })
      const inside = async () => (await w.manage('GET', `/conferences/${room.id}/participants`)).body.data
      await open('/rooms')
      await page.getByRole('link', { name: 'console' }).click()
      type Inside = { readonly muted: boolean; readonly hold: boolean; readonly speaking: boolean }
      const badge = (hasText: string) => page.locator('main .badge', { hasText }).first().waitFor()
      await until('both are heard: the callees hum', async () => {
        const all: readonly Inside[] = await inside()
        return all.length === 2 && all.every(one => one.speaking)
      })
      await badge('Talks')
      await page
        .getByRole('button', { name: /^Put .* on hold$/ })
        .first()
        .click()
      await until('it is on hold', async () => (await inside()).some((one: Inside) => one.hold && !one.speaking))
      await badge('On hold')
      // Both clicks come before the answer of the first.
      await page.evaluate(`(() => {
        const rows = [...document.querySelectorAll('main tbody tr')]
        const held = rows.find(row => row.textContent.includes('Off hold'))
        for (const button of held.querySelectorAll('button:not(.danger)')) button.click()
      })()`)
      await until('it is muted and nobody is on hold', async () => {
        const all: readonly Inside[] = await inside()
        return all.every(({ hold }) => !hold) && all.some(({ muted }) => muted)
      })
      await badge('Muted')
      t.equal(await page.locator('main .notice.bad').count(), 0, 'neither click was refused')
      const out = page.getByRole('button', { name: /out of the room$/ }).first()
      await out.click()
      await until('one is left', async () => (await inside()).length === 1)
      await page.getByRole('button', { name: 'End the room' }).click()
      await page.getByRole('button', { name: 'End it now' }).click()
      for (const sid of calls) t.equal((await w.ended(sid)).status, 'completed')

      const waiting = await run('<Response><Enqueue>console</Enqueue></Response>')
      const queue = await until('it waits', async () => {
        const { body } = await w.manage('GET', '/queues')
        return body.data.find((one: { name: string; waiting: number }) => one.name === 'console' && one.waiting === 1)
      })
      await open(`/queues/${queue.id}`)
      await page.getByRole('button', { name: 'Take number 1 out of the queue' }).click()
      await page.getByLabel('Document').fill(`http://127.0.0.1:${UNHEARD_PORT}/next`)
      await page.getByRole('dialog').getByRole('button', { name: 'Take out' }).click()
      t.equal((await w.ended(waiting)).status, 'completed', 'it left the queue for a document that is not there')
      await shown('Nobody waits')
    })

    await t.test('the operator serves a project the wider voice-calls API, which its members see', async () => {
      const served = async () => (await w.manage('GET', '/voice-account')).body.voice_api
      await open(`/operator/projects/${w.project_id}`)
      await page.getByRole('button', { name: 'Serve the wider API' }).click()
      await until('it is served', async () => (await served()) === 'extended')
      await open('/keys')
      await shown('The wider API')
      await open(`/operator/projects/${w.project_id}`)
      await page.getByRole('button', { name: 'Serve the specification alone' }).click()
      await until('it is no more', async () => (await served()) === 'spec')
    })

    await t.test('a policy is attached to and detached from every kind of service', async () => {
      const subtrunk = await w.manage(
        'POST',
        `/trunks/${trunk_id}/subtrunks`,
        { name: 'Branch', status: 'enabled' },
        key(),
      )
      t.equal(subtrunk.status, 201, JSON.stringify(subtrunk.body))
      const services = [
        [`/applications/${application.body.id}`, `/voice/applications/${application.body.id}`],
        [`/trunks/${trunk_id}/subtrunks/${subtrunk.body.id}`, `/trunks/${trunk_id}/subtrunks/${subtrunk.body.id}`],
        [`${trunk}/settings`, `/trunks/${trunk_id}`],
        ['/keys', '/voice-account'],
      ] as const
      for (const [path, resource] of services) {
        const attached = async () => (await w.manage('GET', resource)).body.outbound_policy?.id ?? null
        await open(path)
        const choice = page.getByLabel('Policy', { exact: true })
        await choice.selectOption({ label: POLICY.name })
        await until(`${resource} has it`, async () => (await attached()) === policy.body.id)
        await choice.selectOption('')
        await until(`${resource} has none`, async () => (await attached()) === null)
      }
    })

    await t.test(
      'the debugger shows faults with what was sent; a dead endpoint is red, and an alert fires',
      async () => {
        const url = `http://127.0.0.1:${UNHEARD_PORT}/dead`
        const made = await w.manage('POST', '/webhook-endpoints', { url, event_kinds: ['call.ended'] }, key())
        t.equal(made.status, 201, JSON.stringify(made.body))
        const { id } = made.body.endpoint
        const sent = await w.manage('POST', `/webhook-endpoints/${id}/test`, undefined, key())
        t.ok(sent.status < 300, JSON.stringify(sent.body))
        await open('/debugger')
        const row = (text: string) => page.locator('main').getByRole('row').filter({ hasText: text })
        await row(url).getByText('Failing').waitFor()
        await row('11100').getByText('Script').first().waitFor()
        const again = page.getByRole('button', { name: `Send again endpoint.test to ${url}` })
        const tries = async () => {
          const { body } = await w.manage('GET', `/webhook-endpoints/${id}/deliveries`)
          return body.data.reduce((sum: number, delivery: { attempts: number }) => sum + delivery.attempts, 0)
        }
        const before = await tries()
        await again.first().click()
        await until('it is tried again', async () => (await tries()) > before)
        await open(`/webhooks/${id}`)
        await until('tries and next tries are those of the API', async () => {
          const { body } = await w.manage('GET', `/webhook-endpoints/${id}/deliveries`)
          const rows = await page.getByRole('region', { name: 'Deliveries' }).locator('tbody tr').allInnerTexts()
          return body.data.every((delivery: { attempts: number; state: string }, index: number) => {
            const [, state, , tries, next] = rows[index]?.split('\t').map(cell => cell.trim()) ?? []
            const same = state?.toLowerCase() === delivery.state && tries === String(delivery.attempts)
            // A next try is never in the past.
            return same && /^(–|due now|now|in .+)$/.test(next ?? '')
          })
        })
        await open('/debugger')
        await page
          .getByRole('button', { name: /^Details: endpoint.test/ })
          .first()
          .click()
        await page.getByRole('dialog').getByText('"endpoint.test"').first().waitFor()
        await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
        await until('an alert fires', async () => {
          const { body } = await w.manage('GET', '/alerts?range=24h')
          return body.alerts.some((alert: { subject: { id: string } }) => alert.subject.id === id)
        })
        await w.manage('DELETE', `/webhook-endpoints/${id}`, undefined, {
          ...key(),
          'if-match': `"${made.body.endpoint.revision}"`,
        })
      },
    )

    await t.test('the call list says trunk, MOS and price; filters have a name, and columns are chosen', async () => {
      await open('/calls')
      const row = page.locator('main').getByRole('row').filter({ hasText: '+2348030004711' }).first()
      await row.waitFor()
      const { body } = await w.manage('GET', `/calls?call_id=${placed.body.sid}`)
      await page.getByLabel('SID').first().fill(placed.body.sid)
      await until('one call is left', async () => (await page.locator('main tbody tr').count()) === 1)
      await row.getByText(body.data[0].mos.toFixed(1), { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Export as CSV' }).click()
      const download = page.waitForEvent('download')
      const ready = page.getByRole('dialog').getByRole('button', { name: 'Download' })
      await until('the export is written', async () => ready.isEnabled())
      await ready.click()
      const csv = readFileSync((await (await download).path()) ?? '', 'utf8')
        .trim()
        .split('\n')
      t.equal(csv.length, 2, 'the head and the one call')
      t.match(csv[1], placed.body.sid)
      await page.getByRole('dialog').getByRole('button', { name: 'Close', exact: true }).last().click()
      await page.getByRole('button', { name: 'Save these filters' }).first().click()
      await page.getByRole('dialog').getByLabel('Name').fill('The recorded one')
      await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click()
      await page.getByRole('button', { name: 'Clear' }).first().click()
      await until('all calls are back', async () => (await page.locator('main tbody tr').count()) > 1)
      await page.getByLabel('Saved filters').first().selectOption('The recorded one')
      await until('the filter is used', async () => (await page.locator('main tbody tr').count()) === 1)
      await page.getByRole('button', { name: 'Columns' }).click()
      await page.getByRole('dialog').getByLabel('SID').check()
      await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
      await row.getByText(placed.body.sid).waitFor()
      await page.setViewportSize({ width: WIDTHS.narrow, height: 900 })
      await page.getByRole('button', { name: 'Filters (1)' }).click()
      await page.getByRole('dialog').getByLabel('SID').fill('')
      await page.getByRole('dialog').getByRole('button', { name: 'Show the calls' }).click()
      await until('all calls are back', async () => (await page.locator('main tbody tr').count()) > 1)
      await page.setViewportSize({ width: WIDTHS.wide, height: 900 })
    })

    await t.test('the editor completes verbs, marks what the check of calls finds, and shows differences', async () => {
      await open('/editor')
      const text = page.getByLabel('Markup document')
      await text.fill('<Response>\n  <Gat')
      await page.keyboard.press('Control+End')
      await page.keyboard.press('Control+Space')
      // The editor ignores Enter in the first 75 ms of its list, a click never.
      await page.getByRole('option', { name: 'Gather' }).click()
      await until('the verb is written', async () => (await text.innerText()).includes('<Gather'))
      const markup = '<Response>\n<Redirect/>\n</Response>'
      await text.fill(markup)
      const { advice } = (await w.manage('POST', '/markup/check', { markup })).body
      const errors = advice.filter(({ level }: { level: string }) => level === 'error')
      t.ok(errors.length > 0, 'the document has an error')
      await until('each error is marked', async () => {
        const marked = await page.locator('.cm-lint-marker-error').count()
        return marked === new Set(errors.map(({ line }: { line: number }) => line)).size
      })
      await shown(errors[0].detail)
      const differing = page.locator('.cm-changedLine, .cm-insertedLine, .cm-deletedChunk')
      t.equal(await differing.count(), 0)
      await page.getByLabel('Show what differs from').selectOption('Greeting')
      await differing.first().waitFor()
      await page.getByLabel('Show what differs from').selectOption('Nothing')
      await until('no difference is shown', async () => (await differing.count()) === 0)
    })

    await t.test('a call that the editor places shows the events of its log, and its end', async () => {
      await open('/editor')
      const run = page.locator('[data-run]')
      for (const [to, status, last] of [
        [ANSWERS, 'Completed', /Say Good day\./],
        [BUSY, 'Busy', null],
      ] as const) {
        await page.getByLabel('Markup document').fill('<Response><Say>Good day.</Say></Response>')
        await page.getByLabel('Call', { exact: true }).fill(to)
        await page.getByRole('button', { name: 'Place the call' }).click()
        const link = run.getByRole('link', { name: "The call's page" })
        await until(`the call to ${to} has ended on the page`, async () => {
          const { data } = (await w.manage('GET', `/calls?number=${encodeURIComponent(to)}&limit=1`)).body
          const placed = data[0]?.id
          if (!placed || !(await link.count()) || !(await link.getAttribute('href'))?.includes(placed)) return false
          return (await run.locator('.badge').innerText()) === status
        })
        t.equal(await run.getByText('Waiting for the first step').count(), 0, `${to}: nothing is waited for`)
        if (last) await run.getByText(last).waitFor()
      }
    })

    await t.test('a trunk whose only target is silent is red', async () => {
      await until('the target is degraded', async () => {
        const { body } = await w.manage('GET', `/trunks/${trunk_id}`)
        return body.endpoint_evidence[0].state === 'degraded'
      })
      await open(trunk)
      await shown('No target answers')
      await page.locator('main .notice.bad').waitFor()
      await open('/trunks')
      await page.getByRole('row', { name: /PBX/ }).getByText('No target answers').waitFor()
      const alert = await until('an alert fires', async () => {
        const { body } = await w.manage('GET', '/alerts?range=24h')
        return body.alerts.find(({ subject }: { subject: { name: string } }) => subject.name === 'PBX')
      })
      await open('/alerts')
      const card = page.locator('main .card').filter({ hasText: /Endpoint health: PBX/ })
      for (const { label, text } of alert.evidence)
        await card
          .getByText(label === 'Asked' ? label : text)
          .first()
          .waitFor()
      t.notMatch(await card.innerText(), /\dT\d\d:\d\d/, 'times are written as everywhere')
    })
    await context.close()
  })

  t.test('pages say of figures, times, prices and ceilings what the API says while it changes', async t => {
    const context = await browser.newContext(FAR_AWAY)
    const subjects = { recorded: placed.body.sid, trunk_id, policy_id: policy.body.id }
    await truthStory(t, w, await signIn(context, admin), subjects)
    await context.close()
  })

  t.test(
    'an operator takes a new customer live by clicks alone, and the customer sees nothing of that menu',
    async t => {
      const context = await browser.newContext()
      await operatorStory(t, w, await signIn(context, admin))
      await context.close()
    },
  )

  t.test('the first page loads few bytes', async t => {
    const context = await browser.newContext()
    const page = await context.newPage()
    let bytes = 0
    const hosts = new Set<string>()
    const counted: Promise<void>[] = []
    page.on('response', response => {
      hosts.add(new URL(response.url()).host)
      counted.push(
        response.body().then(
          body => {
            bytes += gzipSync(body).length
          },
          () => undefined,
        ),
      )
    })
    await signInOn(page)
    await page.waitForLoadState('networkidle')
    await Promise.all(counted)
    t.ok(bytes < LOAD_BUDGET_BYTES, `${(bytes / 1024).toFixed(0)} KiB compressed`)
    t.ok(bytes > 10_000, 'it was counted')
    t.same([...hosts], [new URL(w.base_url).host], 'from no other host')
    const policy = (await fetch(`${w.base_url}/console/`)).headers.get('content-security-policy') ?? ''
    t.match(policy, /default-src '(self|none)'/)
    t.notMatch(policy, /unsafe-(inline|eval)/)
    await context.close()

    async function signInOn(to: typeof page): Promise<void> {
      await to.goto(`${w.base_url}/console/`)
      await to.getByLabel('Email').fill(admin.email)
      await to.getByLabel('Password').fill(admin.password)
      await to.getByRole('button', { name: 'Sign in' }).click()
      await to.getByRole('navigation', { name: 'Main' }).waitFor({ state: 'attached' })
    }
  })
})

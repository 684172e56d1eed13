import type { Page } from 'playwright-core'
import { follow } from './console.ts'
import type { Test } from './harness/index.ts'
import { until } from './wait.ts'
import type { World } from './world.ts'

/** A browser far from the organization's time zone, with American dates. */
export const FAR_AWAY = { timezoneId: 'America/Los_Angeles', locale: 'en-US' } as const

interface Subjects {
  /** A call that recorded, and has ended. */
  readonly recorded: string
  readonly trunk_id: string
  readonly policy_id: string
}

interface LegOfApi {
  readonly figures: {
    readonly side: string
    readonly packets_received: number
    readonly octets_received: number
    readonly packets_sent: number
  } | null
  readonly samples: readonly { readonly stats: { readonly packets_received: number } }[]
}

/** The settings of the trunk, whose ceiling changes. */
const TRUNK = {
  ...{ name: 'PBX', direction: 'both', auth_mode: 'ip_allow_list', source_validation: 'relaxed' },
  ...{ codecs: ['PCMU', 'PCMA'], media_security: 'rtp', require_tls: false },
} as const

const count = (value: number): string => new Intl.NumberFormat('en').format(value)

/** What pages say, beside what the API says of the same thing, while it changes. `page` is of a browser FAR_AWAY. */
export async function truthStory(t: Test, w: World, page: Page, of: Subjects): Promise<void> {
  const main = page.locator('main')
  const open = async (path: string) => {
    await follow(page, path)
    await until('it is loaded', async () => (await page.locator('main output.loading').count()) === 0)
  }
  const api = async (path: string) => (await w.manage('GET', path)).body
  const legsOf = async (sid: string): Promise<LegOfApi[]> => (await api(`/calls/${sid}/media`)).legs
  /** The packets that the media worker has received; undefined while it is too busy to say. */
  const packets = async () => {
    const received = (await w.metrics())('media_packets_received_total')
    return Number.isNaN(received) ? undefined : received
  }
  /** Waits until the page has all the texts that the API's answer at that moment makes. */
  const agrees = (what: string, texts: () => Promise<readonly string[]>) =>
    until(what, async () => {
      const wanted = await texts()
      const shown = await main.innerText()
      return wanted.every(text => shown.includes(text))
    })

  const place = async (InlineMarkup: string): Promise<string> => {
    const form = { From: w.numbers[0] ?? '', To: '+2348030004711', InlineMarkup }
    return (await w.voice('POST', '/Calls.json', form)).body.sid
  }

  await t.test(
    'figures of media are those of the API: while the call runs, and the final ones of each leg',
    async () => {
      const sid = await place('<Response><Dial>+2348030010001</Dial></Response>')
      const child = await until('the child talks', async () => {
        const { data } = await api(`/calls?parent_call_id=${sid}`)
        return data.find((call: { status: string }) => call.status === 'in-progress')
      })
      const before = await until('the packets so far are known', packets)
      await open(`/calls/${sid}/media`)
      await agrees('the page has the samples so far, or says that there are none', async () => {
        const legs = await legsOf(sid)
        return legs.length === 0
          ? ['No media was measured', 'ten seconds into a call']
          : legs.map(({ samples }) => `${count(samples.at(-1)?.stats.packets_received ?? 0)} packets`)
      })

      await until('both legs have been heard', async () => ((await packets()) ?? 0) >= before + 100)
      await page.getByRole('button', { name: 'Hang up', exact: true }).click()
      await page.getByRole('dialog').getByText('are cut off at once').waitFor()
      t.equal((await api(`/calls/${sid}`)).status, 'in-progress', 'the page asks first')
      await page.getByRole('button', { name: 'Hang up now' }).click()
      for (const call of [sid, child.id]) t.equal((await w.ended(call)).status, 'completed')

      for (const call of [sid, child.id]) {
        // The first page stays open while the call ends.
        if (call !== sid) await open(`/calls/${call}/media`)
        const legs = await legsOf(call)
        t.ok(legs.length > 0 && legs.every(({ figures }) => figures !== null), JSON.stringify(legs))
        await agrees('the page has the final figures of each leg', async () =>
          legs.flatMap(({ figures }) => [
            `Leg of the ${figures?.side}`,
            `${count(figures?.packets_received ?? 0)} packets, ${count(figures?.octets_received ?? 0)} octets`,
          ]),
        )
        for (const { figures } of legs)
          t.ok((figures?.packets_received ?? 0) > 0 && (figures?.packets_sent ?? 0) > 0, 'packets went both ways')
        t.equal(await main.getByText('No media was measured').count(), 0)
      }
      // We called the only leg of a call of the API: nobody on it is its caller.
      t.same(
        (await legsOf(sid)).map(({ figures }) => figures?.side),
        ['called'],
      )
      t.equal(await main.getByText('Leg of the caller').count(), 0)
    },
  )

  await t.test('times are the organization’s, in one form, wherever the browser is', async () => {
    const { time_zone } = await api('/organization')
    const call = await api(`/calls/${of.recorded}`)
    const form = { dateStyle: 'medium', timeStyle: 'medium', timeZone: time_zone, hourCycle: 'h23' } as const
    const told = (at: string): string => new Intl.DateTimeFormat('en-GB', form).format(new Date(at))
    await open(`/calls/${of.recorded}`)
    await agrees('queued, answered and ended', async () => [call.queued_at, call.start_time, call.ended_at].map(told))
    await open('/calls')
    const row = main.getByRole('row').filter({ has: page.locator(`a[href$="${of.recorded}"]`) })
    await row.getByText(told(call.queued_at)).waitFor()
  })

  await t.test('the price of a call is the sentence of the API', async () => {
    const { price } = await api(`/calls/${of.recorded}`)
    t.match(price.sentence, /^\S.* = ₦\d/, JSON.stringify(price))
    await open(`/calls/${of.recorded}`)
    await agrees('the sentence', async () => [price.sentence])
    t.notMatch(await main.innerText(), /millionth/)
  })

  await t.test('a recording whose time has not come is to be deleted, not deleted', async () => {
    const [recording] = (await api(`/calls/${of.recorded}`)).recordings
    t.ok(Date.parse(recording.expires_at) > Date.now(), 'its time has not come')
    await open(`/calls/${of.recorded}/recordings`)
    await main.getByText(/^To be deleted/).waitFor()
    t.equal(await main.locator('time').first().getAttribute('datetime'), recording.expires_at)
  })

  await t.test('the calls per second of a trunk are those that it has, of its ceiling', async () => {
    const trunk = `/trunks/${of.trunk_id}`
    await open(trunk)
    const stat = main.locator('.stat', { hasText: 'Calls per second' }).locator('dd')
    const before = await api(trunk)
    for (const cps of [7, 9]) {
      const { revision } = await api(trunk)
      const limits = { concurrency: 30, cps, max_call_duration_seconds: 7200 }
      const set = await w.manage('PATCH', trunk, { ...TRUNK, limits }, { 'if-match': `"${revision}"` })
      t.equal(set.status, 200, JSON.stringify(set.body))
      await until(`the ceiling is ${cps}`, async () => {
        const { now } = await api(`/metrics/series?window=24h&trunk_id=${of.trunk_id}`)
        const shown = (await stat.innerText()).split('\n')
        return shown[0] === String(now.calls_last_second) && shown[1] === `in the last second, of ${cps} at most`
      })
    }
    t.not(before.limits.cps.configured, 9)
  })

  await t.test('a target that is silent has the words of the API, and no answer', async () => {
    const evidence = async () => (await api(`/trunks/${of.trunk_id}`)).endpoint_evidence[0]
    await until('the target is silent', async () => (await evidence())?.state === 'degraded')
    await open(`/trunks/${of.trunk_id}`)
    await until('the row says the same', async () => {
      const { sip_uri, detail, last_result } = await evidence()
      const shown = await main.getByRole('row').filter({ hasText: sip_uri }).innerText()
      const answer = String(last_result?.code ?? '–').replaceAll('_', ' ')
      return shown.includes(detail) && shown.toLowerCase().includes(answer)
    })
  })

  await t.test('a policy opens at its top', async () => {
    await page.goto(`${w.base_url}/console/policies/${of.policy_id}`)
    await main.getByRole('heading', { level: 1 }).waitFor()
    t.equal(await page.evaluate('scrollY'), 0)
  })
}

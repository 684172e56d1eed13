import type { Page, Route, WebSocketRoute } from 'playwright-core'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { insertProject } from '../../core/state/people/customers.ts'
import { follow, openBrowser, signIn } from '../support/console.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { addAdmin } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import type { World } from '../support/world.ts'

// The telephone of the console through lost connections, refusals, closed panels, sign-outs and changes of project.

const TONE = '+2348030001234'
const ANNOUNCEMENT = '+2348030000007'

/** The page's way to the SIP port. A test cuts it, refuses connections, and answers in the platform's place. */
interface Way {
  away: boolean
  /** Connections refused while away. */
  refused: number
  /** Registrations are granted for some seconds only, as the page sees it. */
  brief: boolean
  /** Each REGISTER is answered 503. */
  unwilling: boolean
  cut(): Promise<void>
}

async function wayOf(page: Page, ws_port: number): Promise<Way> {
  const open = new Set<WebSocketRoute>()
  const way: Way = {
    ...{ away: false, refused: 0, brief: false, unwilling: false },
    async cut() {
      const ends = [...open]
      open.clear()
      await Promise.all(ends.map(end => end.close()))
    },
  }
  await page.routeWebSocket(
    url => url.port === String(ws_port),
    browser => {
      if (way.away) {
        way.refused++
        void browser.close()
        return
      }
      const platform = browser.connectToServer()
      open.add(browser).add(platform)
      browser.onMessage(message => {
        const text = String(message)
        if (way.unwilling && text.startsWith('REGISTER ')) browser.send(unavailable(text))
        else platform.send(message)
      })
      platform.onMessage(message => {
        const text = String(message)
        const granted = text.startsWith('SIP/2.0 200') && /^CSeq: \d+ REGISTER/im.test(text)
        browser.send(way.brief && granted ? text.replaceAll(/;expires=\d+/g, ';expires=4') : message)
      })
    },
  )
  return way
}

/** Answers a request as a registrar does whose database is away. */
function unavailable(request: string): string {
  const copied = request.split('\r\n').filter(line => /^(via|from|to|call-id|cseq):/i.test(line))
  const lines = copied.map(line => (/^to:/i.test(line) ? `${line};tag=away` : line))
  return ['SIP/2.0 503 Service Unavailable', ...lines, 'Content-Length: 0', '', ''].join('\r\n')
}

/** Measures what the telephone plays: the loudest of the latest samples; 0 when its element plays nothing. */
const loudness = (page: Page): Promise<number> =>
  page.evaluate(`(async () => {
    const audio = document.querySelector('.phone audio')
    const [track] = audio?.srcObject?.getAudioTracks() ?? []
    if (!track || audio.paused) return 0
    if (window.ear?.track !== track) {
      await window.ear?.context.close()
      const context = new AudioContext()
      const analyser = context.createAnalyser()
      context.createMediaStreamSource(audio.srcObject).connect(analyser)
      window.ear = { context, analyser, track }
    }
    const wave = new Float32Array(window.ear.analyser.fftSize)
    window.ear.analyser.getFloatTimeDomainData(wave)
    return Math.max(...wave)
  })()`)

/** Adds a second project with one number to the customer's organization. */
async function addProject(w: World, e164: string): Promise<{ id: string; account_sid: string }> {
  const now = new Date().toISOString()
  const { organization_id } = await w.state.db
    .selectFrom('project')
    .select('organization_id')
    .where('id', '=', w.project_id)
    .executeTakeFirstOrThrow()
  const { id } = await w.state.transaction(async trx => {
    const terms = { name: 'Second project', sandbox: true, prepaid: false, credit_minor: 0 }
    const project = await insertProject(trx, { organization_id, ...terms }, { master_key: w.master_key, now })
    const held = { project_id: project.id, status: 'held', route_kind: null, route_id: null } as const
    const row = { id: `pn_${e164.slice(1)}`, e164, ...held, quarantined_until: null, revision: 1 }
    await trx
      .insertInto('number')
      .values({ ...row, created_at: now, updated_at: now })
      .execute()
    await bumpConfiguration(trx)
    return project
  })
  const { account_sid } = await w.state.db
    .selectFrom('voice_account')
    .select('account_sid')
    .where('project_id', '=', id)
    .executeTakeFirstOrThrow()
  return { id, account_sid }
}

t.test('the telephone of the console', async t => {
  const [w, browser] = await Promise.all([sharedWorld(t), openBrowser(t)])
  const admin = { base_url: w.base_url, email: 'ada@customer.test', password: 'a long enough password' }
  await addAdmin(w.state, w.project_id, admin.email, admin.password)
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  const page = await signIn(context, admin)
  const way = await wayOf(page, w.sip.ws_port)
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const badge = (text: string) => page.locator('.phone header').getByText(text, { exact: true }).waitFor()
  const state = (name: string) => page.locator(`[data-phone-state="${name}"]`)
  /** Loads the page anew, and opens the telephone. */
  const opened = async () => {
    await page.goto(`${w.base_url}/console/calls`)
    await button('Phone').click()
    await badge('Ready')
  }
  const dial = async (number: string) => {
    if ((await state('ended').count()) > 0) await button('Another call').click()
    await page.locator('.phone').getByLabel('Number').fill(number)
    await button('Call').click()
  }
  /** Calls until the call is answered, as a person does while the platform is too busy to decide. */
  const talks = async (number: string) => {
    await dial(number)
    await until('the call is answered', async () => {
      if ((await state('ended').count()) > 0) await dial(number)
      return (await state('talking').count()) > 0
    })
  }
  const contacts = async (project_id: string): Promise<readonly string[]> => {
    const credential_id = `client:${project_id}:ada`
    const rows = await w.state.db
      .selectFrom('registration')
      .select('contact')
      .where('credential_id', '=', credential_id)
      .execute()
    return rows.map(({ contact }) => contact)
  }
  /** Opens the telephone, and returns its own contact. A page that is loaded anew leaves the one before to expire. */
  const openedAs = async (): Promise<string> => {
    const before = await contacts(w.project_id)
    await opened()
    const own = (await contacts(w.project_id)).filter(contact => !before.includes(contact))
    return own[0] ?? ''
  }
  const callAda = async (): Promise<string> => {
    const InlineMarkup = '<Response><Dial timeout="600"><Client>ada</Client></Dial></Response>'
    const { body } = await w.voice('POST', '/Calls.json', {
      From: w.numbers[0] ?? '',
      To: '+2348030000008',
      InlineMarkup,
    })
    return body.sid
  }
  /** Calls the telephone until it rings: the platform takes one that answers too late for unreachable. */
  const rings = async (): Promise<string> => {
    let sid = await callAda()
    await until('it rings', async () => {
      if ((await page.getByText('is calling').count()) > 0) return true
      const { body } = await w.voice('GET', `/Calls/${sid}.json`)
      if (body.status === 'completed') sid = await callAda()
      return false
    })
    await page.getByText('is calling').waitFor()
    return sid
  }
  const over = async (sid: string) => {
    await w.voice('POST', `/Calls/${sid}.json`, { Status: 'completed' })
    await w.ended(sid)
  }

  await t.test('it registers again after an absence of the platform of more than one try, and rings', async () => {
    await opened()
    way.away = true
    await way.cut()
    await badge('No line')
    await until('it tries more than once', () => way.refused > 1)
    way.away = false
    await badge('Ready')
    const sid = await rings()
    await over(sid)
    await state('ended').waitFor()
  })

  await t.test('a refresh that is refused shows that there is no line, and is tried again', async () => {
    way.brief = true
    await opened()
    way.unwilling = true
    await badge('No line')
    way.brief = false
    way.unwilling = false
    await badge('Ready')
  })

  await t.test('what is said before an answer is heard', async () => {
    await opened()
    await dial(ANNOUNCEMENT)
    await until('the announcement is heard', async () => {
      if ((await state('ended').count()) > 0) await dial(ANNOUNCEMENT)
      return (await loudness(page)) > 0.01
    })
    await state('ended').waitFor()
  })

  await t.test('a call goes on while the panel is closed, and a call that comes opens it', async () => {
    await opened()
    await talks(TONE)
    await until('the tone is heard', async () => (await loudness(page)) > 0.01)
    await button('Close the telephone').click()
    await page.locator('.phone').waitFor({ state: 'hidden' })
    await until('the tone is still heard', async () => (await loudness(page)) > 0.01)
    await button('Phone: in a call').click()
    await button('Hang up').click()
    await state('ended').waitFor()
    await button('Close the telephone').click()
    const sid = await rings()
    await over(sid)
    await state('ended').waitFor()
  })

  await t.test('signing out ends the call and the registration, and not before the platform says so', async t => {
    const contact = await openedAs()
    t.not(contact, '')
    await talks(TONE)
    const id = await until('the call is listed', async () => {
      const { body } = await w.manage('GET', '/calls')
      return body.data.find((call: { status: string }) => call.status === 'in-progress')?.id as string | undefined
    })
    await page.route(
      url => url.pathname === '/console/api/session',
      route => (route.request().method() === 'DELETE' ? route.fulfill({ status: 503 }) : route.continue()),
    )
    await button('Sign out').click()
    await page.getByText(/You are still signed in/).waitFor()
    t.equal(await state('talking').count(), 1)
    await page.unrouteAll()
    await button('Sign out').click()
    await page.getByLabel('Email').waitFor()
    await w.ended(id)
    await until('the registration is gone', async () => !(await contacts(w.project_id)).includes(contact))
    await page.getByLabel('Email').fill(admin.email)
    await page.getByLabel('Password').fill(admin.password)
    await button('Sign in').click()
    await page.locator('nav[aria-label="Main"]').waitFor({ state: 'attached' })
  })

  const second = await addProject(w, '+2348039990001')

  await t.test('the telephone and the page go to the other project, and nothing of the first stays', async t => {
    const contact = await openedAs()
    t.not(contact, '')
    const held: Route[] = []
    const hold = (path: string) =>
      page.route(
        url => url.pathname === `/console/api${path}`,
        route => void held.push(route),
      )
    const release = async () => {
      await page.unrouteAll()
      await Promise.all(held.splice(0).map(route => route.continue().catch(() => undefined)))
    }
    const change = async (name: RegExp) => {
      const option = page.getByLabel('Project').getByRole('option', { name })
      await page.getByLabel('Project').selectOption((await option.getAttribute('value')) ?? '')
    }
    const main = page.locator('main')
    await follow(page, '/keys')
    await main.getByText(w.account_sid).first().waitFor()
    await hold('/v1/voice-account')
    await change(/^Second/)
    await until('the account of the second is asked for', () => held.length > 0)
    t.equal(await main.getByText(w.account_sid).count(), 0, 'the account of the first is gone')
    await release()
    await main.getByText(second.account_sid).first().waitFor()
    await until('it is registered in the second alone', async () => {
      const [before, now] = await Promise.all([contacts(w.project_id), contacts(second.id)])
      return !before.includes(contact) && now.length > 0
    })
    await badge('Ready')

    await follow(page, '/numbers')
    await main.getByText('9990001').first().waitFor()
    await hold('/v1/numbers')
    await change(/^Customer/)
    await until('the numbers of the first are asked for', () => held.length > 0)
    t.equal(await main.getByText('9990001').count(), 0, 'the number of the second is gone')
    await release()
    await until('it has left the second', async () => (await contacts(second.id)).length === 0)
    await badge('Ready')
  })

  // Its connection would outlast the story.
  await context.close()
})

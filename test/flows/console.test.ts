import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { acceptRecordingConsent, TERMS_VERSION } from '../../core/state/calls/recording-consent.ts'
import { insertTestAlert } from '../support/alerts.ts'
import { tone, wavBytes } from '../support/audio.ts'
import { wasDecided } from '../support/busy.ts'
import { strowger } from '../support/child.ts'
import { complaintsOf, follow, openBrowser, signIn } from '../support/console.ts'
import { onlyFirstStories } from '../support/engine.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { callee, MANY, receive, sipp } from '../support/sipp.ts'
import { addAdmin } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

// An operator's daily work in a real browser. Every step uses what the page shows.

const ECHO = '+2348030000001'
const PITCH_HZ = 1000

/** Measures the audio of the telephone in the page: the strongest frequency and its share of full scale. */
const heardIn = (page: Page): Promise<{ hz: number; level: number }> =>
  page.evaluate(`(async () => {
    const stream = document.querySelector('.phone audio').srcObject
    const [track] = stream?.getAudioTracks() ?? []
    if (!track) return { hz: 0, level: 0 }
    // Early media and the answer may be two tracks. A source reads only the track that existed at its creation.
    if (window.ear?.track !== track) {
      await window.ear?.context.close()
      const context = new AudioContext()
      const analyser = context.createAnalyser()
      analyser.fftSize = 4096
      context.createMediaStreamSource(stream).connect(analyser)
      window.ear = { context, analyser, track }
    }
    const { context, analyser } = window.ear
    const bins = new Float32Array(analyser.frequencyBinCount)
    analyser.getFloatFrequencyData(bins)
    const wave = new Float32Array(analyser.fftSize)
    analyser.getFloatTimeDomainData(wave)
    const best = bins.indexOf(Math.max(...bins))
    const level = Math.sqrt(wave.reduce((sum, value) => sum + value * value, 0) / wave.length)
    return { hz: (best * context.sampleRate) / analyser.fftSize, level }
  })()`)

t.test('the console in a browser', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-microphone-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  // Bursts, because the browser's microphone processing removes an endless tone as noise.
  const beep = tone(PITCH_HZ, 400, 48_000, -8)
  const pause = new Int16Array(48_000 * 0.3)
  const microphone = join(folder, 'microphone.wav')
  writeFileSync(microphone, wavBytes(48_000, Int16Array.from([...beep, ...pause])))

  const [w, browser] = await Promise.all([
    sharedWorld(t),
    openBrowser(t, [`--use-file-for-fake-audio-capture=${microphone}`]),
  ])
  const admin = { base_url: w.base_url, email: 'admin@customer.test', password: 'a long enough password' }
  await addAdmin(w.state, w.project_id, admin.email, admin.password)
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  const page = await signIn(context, admin)
  const complaints = complaintsOf(page)
  // The first sign-in of a project without a call leads to its first call.
  await page.waitForURL('**/console/welcome')
  const open = (path: string) => follow(page, path)
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const seen = (text: string | RegExp) => page.getByText(text).first().waitFor()

  // It answers the keep-alives of the trunk until the end: a silent target raises an alert, and the page counts alerts.
  const peer = await sipp(t, {
    calls: MANY,
    steps: [receive.request('INVITE'), callee.respond(486, 'Busy Here'), receive.request('ACK')],
  })

  t.test('a wrong password shows an error', async t => {
    const stranger = await browser.newContext()
    const door = await stranger.newPage()
    await door.goto(`${w.base_url}/console/`)
    await door.getByLabel('Email').fill(admin.email)
    await door.getByLabel('Password').fill('not the password')
    await door.getByRole('button', { name: 'Sign in' }).click()
    const alert = await door.getByRole('alert').first().innerText()
    t.notMatch(alert, /trunk|source address/, 'a person at a console has no trunk to mend')
    t.match(alert, /email|password/)
    t.equal(await door.getByRole('navigation', { name: 'Main' }).count(), 0)
    await stranger.close()
  })

  t.test('creates a digest trunk step by step, and shows it applied', async t => {
    await open('/trunks/new')
    await page.getByLabel('Name').fill('Head office')
    await button('Continue').click()
    await page.getByLabel(/^Addresses/).fill('10.1.2.3/24')
    await button('Continue').click()
    await seen(/10\.1\.2\.0\/24|host bits/)
    await page.getByLabel(/^Addresses/).fill('')
    await button('Continue').click()
    await button('Add a target').click()
    await page.getByLabel('Target 1').fill(`sip:127.0.0.1:${peer.port}`)
    await button('Continue').click()
    await button('Continue').click()
    await button('Create the trunk').click()
    await seen('User and password of the PBX')
    await seen(/^Applied · revision 1$/)
    const row = await w.state.db.selectFrom('trunk').selectAll().where('name', '=', 'Head office').executeTakeFirst()
    t.match(row, { auth_mode: 'digest', status: 'enabled' })

    await page.getByRole('link', { name: 'Open the trunk' }).click()
    await page.getByRole('link', { name: 'Tests' }).click()
    await button('Check the configuration').click()
    await until('checks arrive in the page', async () => (await page.locator('[data-checks] > li').count()) >= 3)
    await seen(/no finding|is right|passed/i)
    const run = await until('the run is kept', async () => {
      const { body } = await w.manage('GET', `/trunks/${row?.id}/tests`)
      return body.data[0]?.result === 'running' ? undefined : body.data[0]
    })
    const { body } = await w.manage('GET', `/trunks/${row?.id}/tests/${run.id}`)
    await until('every check is shown', async () => {
      const shown = await page.locator('[data-checks] > li').count()
      return shown === body.run.checks.length
    })
    t.equal(run.result, 'passed', run.finding)
  })

  if (onlyFirstStories()) return

  t.test('a call from the page is heard, shown live, drawn as a ladder, and hung up', async t => {
    await open('/')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('Control+k')
    const finder = page.getByRole('dialog')
    await finder.getByLabel('Page, trunk, number or SID').fill('head off')
    await finder.getByRole('button', { name: /^Head office/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Head office', level: 1 }).waitFor()
    await open('/welcome')
    const done = (step: string) => page.locator('.card', { hasText: step }).getByText('Done')
    await done('1. Have a number').waitFor()
    await done('3. Connect your PBX').waitFor()
    t.same((await w.manage('GET', '/calls')).body.data, [], 'nobody has called yet')
    t.equal(await done('2. Call the sandbox').count(), 0)
    await page.getByRole('button', { name: `Call ${ECHO}` }).click()
    await page.getByText('Ready', { exact: true }).waitFor()
    await button('Call').click()
    const ended = page.locator('[data-phone-state="ended"]')
    await until('both talk', async () => {
      if ((await ended.count()) === 0) return (await page.locator('[data-phone-state="talking"]').count()) > 0
      // As telephones of tests do, it calls again when the platform was too busy to decide.
      const { data } = (await w.manage('GET', '/calls')).body
      const told = await ended.innerText()
      if (!told.includes('503') || data.some(wasDecided)) throw new Error(`${told}: ${JSON.stringify(data)}`)
      await button('Another call').click()
      await page.locator('.phone').getByLabel('Number').fill(ECHO)
      await button('Call').click()
      return false
    })
    // The step ticks itself off while the call runs.
    await done('2. Call the sandbox').waitFor()
    const heard = await until('the tone of the microphone comes back', async () => {
      const now = await heardIn(page)
      return now.level > 0.01 && Math.abs(now.hz - PITCH_HZ) < 30 ? now : undefined
    })
    t.ok(heard.level > 0.01, `energy ${heard.level.toFixed(3)} at ${heard.hz.toFixed(0)} Hz`)
    await page
      .locator('[data-quality]')
      .getByText(/MOS [1-5]\.\d/)
      .waitFor()

    await button('Mute').click()
    await until('a muted microphone is not heard', async () => (await heardIn(page)).level < 0.001)
    await button('Unmute').click()

    await page.getByRole('link', { name: 'its SIP ladder' }).waitFor()
    await page.getByRole('link', { name: 'Calls', exact: true }).first().click()
    await page.getByRole('link', { name: 'Live' }).click()
    const line = page.getByRole('row').filter({ hasText: ECHO })
    await line.getByText('In progress').waitFor()
    await line.getByRole('link').first().click()
    await page.getByRole('link', { name: 'SIP ladder' }).click()
    const invite = page.getByRole('button', { name: /^INVITE/ }).first()
    await invite.waitFor()
    await invite.click()
    const text = await page.locator('[data-message]').innerText()
    t.match(text, /^INVITE sip:/)
    t.match(text, /a=fingerprint:sha-256/, 'what the browser has sent')
    const { pathname } = new URL(page.url())
    const call_id = pathname.split('/').find(part => part.startsWith('CA')) ?? ''

    const accepted = { accepted_at: new Date().toISOString(), accepted_by: admin.email, terms_version: TERMS_VERSION }
    await w.state.transaction(trx => acceptRecordingConsent(trx, { project_id: w.project_id, ...accepted }))
    await button('Listen in').click()
    await page.locator('[data-listening]', { hasText: 'You hear both sides.' }).waitFor()
    const { body: trail } = await w.manage('GET', '/audit?range=24h')
    const kept = trail.data.find((event: { action: string }) => event.action === 'call.listened')
    t.match(kept, { resource: { id: call_id }, actor: { name: admin.email } })
    await button('Stop listening').click()

    await page.locator('main').getByRole('button', { name: 'Hang up', exact: true }).click()
    await button('Hang up now').click()
    await ended.waitFor()
    t.match(await w.ended(call_id), { status: 'completed', to: ECHO })
    await page.getByRole('link', { name: 'Decision' }).click()
    await seen(/admitted/i)
    await button('Close the telephone').click()
  })

  t.test('a live call is transferred from the list: it dials the other number, and is connected to it', async t => {
    const form = { From: w.numbers[0] ?? '', InlineMarkup: '<Response><Pause length="600"/></Response>' }
    const { sid } = (await w.voice('POST', '/Calls.json', { ...form, To: '+2348030000008' })).body
    await open('/calls/live')
    await page.getByRole('button', { name: 'Transfer the call to +2348030000008' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Number').fill('0803')
    await dialog.getByRole('button', { name: 'Transfer now' }).click()
    await dialog.locator('[aria-invalid="true"]').waitFor()
    await dialog.getByLabel('Number').fill('+2348030010008')
    await dialog.getByRole('button', { name: 'Transfer now' }).click()
    const made = await until('the new leg talks', async () => {
      const { body } = await w.manage('GET', `/calls?parent_call_id=${sid}`)
      return body.data.find((call: { status: string }) => call.status === 'in-progress')
    })
    t.match(made, { to: '+2348030010008', direction: 'outbound-dial' })
    await page.getByRole('row').filter({ hasText: '+2348030010008' }).getByText('In progress').waitFor()
    await w.voice('POST', `/Calls/${sid}.json`, { Status: 'completed' })
    t.equal((await w.ended(sid)).status, 'completed')
    t.equal((await w.ended(made.id)).status, 'completed')
  })

  t.test('the overview shows the alerts, calls and load of the API while they change', async t => {
    await open('/')
    const stat = (name: string) => page.locator('.stat', { hasText: name }).locator('dd')
    const shows = (name: string, value: string) =>
      until(`${name} is ${value}`, async () => (await stat(name).innerText()).split('\n')[0] === value)
    const firing = async () => {
      const { body } = await w.manage('GET', '/alerts?range=24h')
      return body.alerts.filter(({ state }: { state: string }) => state === 'firing').length
    }
    const agrees = async (at_least: number) => {
      const seen = await until('the tile shows the alerts of the API', async () => {
        const now = await firing()
        return now >= at_least && (await stat('Alerts').innerText()).split('\n')[0] === String(now) && { now }
      })
      const menu = await page
        .getByRole('link', { name: /^Alerts/ })
        .first()
        .innerText()
      t.equal(menu.replace(/\D/g, ''), seen.now === 0 ? '' : String(seen.now), 'the menu counts them')
      return seen.now
    }
    const before = await agrees(0)
    const alert_id = await insertTestAlert({ state: w.state, demo: w }, 'new_source_ip')
    t.equal(await agrees(before + 1), before + 1)
    t.equal((await w.manage('POST', `/alerts/${alert_id}/acknowledge`)).status, 200)
    t.equal(await agrees(before), before)

    await page.getByLabel('Charts of the').selectOption('1h')
    const calls: string[] = []
    for (const to of ['+2348030000003', '+2348030010003', '+2348030020003']) {
      const form = { From: w.numbers[0] ?? '', To: to, Timeout: '600', InlineMarkup: '<Response/>' }
      calls.push((await w.voice('POST', '/Calls.json', form)).body.sid)
    }
    await shows('Calls now', '3')
    await until('the load is 3 while the calls run', async () =>
      /Most calls at once from 0 to 3, last 3/.test(
        (await page.locator('.chart').first().getAttribute('aria-label')) ?? '',
      ),
    )
    for (const sid of calls) await w.voice('POST', `/Calls/${sid}.json`, { Status: 'canceled' })
    await shows('Calls now', '0')
  })

  t.test('a live project is called live, and nothing says that its calls are free', async t => {
    const state = page.locator('[data-project-state]')
    const put = (sandbox: 0 | 1) =>
      w.state.db.updateTable('project').set({ sandbox }).where('id', '=', w.project_id).execute()
    await open('/welcome')
    t.equal(await state.innerText(), 'Sandbox')
    await seen(/nothing is billed in the sandbox/)
    await put(0)
    for (const path of ['/welcome', '/editor']) {
      // A load reads the session anew, which a page that stays open does only now and then.
      await page.goto(`${w.base_url}/console${path}`)
      await state.getByText('Live').waitFor()
      t.notMatch(await page.locator('main').innerText(), /sandbox|nothing is billed/i, `${path} of a live project`)
      await seen(/billed/)
    }
    await put(1)
    await page.goto(`${w.base_url}/console/`)
    await state.getByText('Sandbox').waitFor()
  })

  t.test('draws and plays a recording', async t => {
    const placed = await w.voice('POST', '/Calls.json', {
      ...{ From: w.numbers[0] ?? '', To: '+2348030004711' },
      // The callee may stand still for two of its seconds. A recording without sound is none.
      InlineMarkup: '<Response><Record maxLength="4" playBeep="false" trim="do-not-trim"/></Response>',
    })
    await w.ended(placed.body.sid)
    await open(`/calls/${placed.body.sid}/recordings`)
    await page.locator('[data-player]').waitFor()
    // Two seconds may pass between two checks of the page, so it records the labels of its button.
    await page.evaluate(`(() => {
      const player = document.querySelector('[data-player]')
      window.labels = []
      const note = () => window.labels.push(player.querySelector('button').textContent.trim())
      new MutationObserver(note).observe(player, { subtree: true, childList: true, characterData: true })
    })()`)
    await button('Play').click()
    const place = page.getByRole('slider', { name: 'Place in the recording' })
    await until('the recording plays to its end', async () => {
      const labels = await page.evaluate<string[]>('window.labels')
      return labels.includes('Pause') && labels.at(-1) === 'Play'
    })
    t.ok(Number(await place.getAttribute('aria-valuemax')) >= 2)
    const drawn = await page.evaluate<number>(`(() => {
      const canvas = document.querySelector('canvas.wave')
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
      return data.filter((value, at) => at % 4 === 3 && value > 0).length / (data.length / 4)
    })()`)
    t.ok(drawn > 0.05, `the waveform covers ${drawn} of its space`)
    const [saved] = await Promise.all([page.waitForEvent('download'), button('Download MP3').click()])
    t.match(saved.suggestedFilename(), /^RE[0-9a-f]{32}\.mp3$/)
    const mp3 = readFileSync(await saved.path())
    t.equal(mp3.readUInt16BE(0) & 0xffe0, 0xffe0, 'it begins with a frame of MPEG audio (ISO 11172-3 §2.4.1)')
    t.ok(mp3.length > 4000, 'and holds two seconds of it')
  })

  t.test('rotates the voice token, and the old one is rejected', async t => {
    await open('/keys')
    await button('Rotate the token').click()
    await button('Rotate now').click()
    const token = (await page.locator('[data-token]').innerText()).trim()
    t.not(token, w.auth_token)
    t.equal((await w.voice('GET', '/Calls.json')).status, 401)
    const basic = Buffer.from(`${w.account_sid}:${token}`).toString('base64')
    const now = await fetch(`${w.base_url}/2010-04-01/Accounts/${w.account_sid}/Calls.json`, {
      headers: { authorization: `Basic ${basic}` },
    })
    t.equal(now.status, 200)
  })

  t.test('each role sees its own pages and is refused the others', async t => {
    const may = {
      'org:engineer': { shown: ['Trunks', 'Keys and credentials'], hidden: ['Members'], refused: '/members' },
      'org:billing': { shown: ['Billing'], hidden: ['Keys and credentials', 'Members'], refused: '/keys' },
      'org:viewer': { shown: ['Trunks', 'Calls'], hidden: ['Keys and credentials', 'Webhooks'], refused: '/members' },
    }
    const trunk = await w.state.db.selectFrom('trunk').select('id').where('name', '=', 'Head office').executeTakeFirst()
    for (const [role, { shown, hidden, refused }] of Object.entries(may)) {
      await open('/members')
      await button('Add a member').click()
      const dialog = page.getByRole('dialog')
      const email = `${role.slice(4)}@strowger.local`
      await dialog.getByLabel('Email').fill(email)
      await dialog.getByLabel(/password/i).fill('a long enough password')
      await dialog.getByLabel('Role').selectOption(role)
      await dialog.getByRole('button', { name: 'Add' }).click()
      await dialog.waitFor({ state: 'detached' })
      const other = await browser.newContext()
      const theirs = await signIn(other, { base_url: w.base_url, email, password: 'a long enough password' })
      const menu = theirs.getByRole('navigation', { name: 'Main' })
      for (const name of shown)
        t.equal(await menu.getByRole('link', { name, exact: true }).count(), 1, `${role}: ${name}`)
      for (const name of hidden)
        t.equal(await menu.getByRole('link', { name, exact: true }).count(), 0, `${role}: no ${name}`)
      await theirs.goto(`${w.base_url}/console${refused}`)
      await theirs
        .getByText(/role|not allowed|may not/i)
        .first()
        .waitFor()
      const hears = role !== 'org:billing'
      t.equal(await theirs.locator('.live-dot').count(), hears ? 1 : 0, `${role}: who hears no events waits for none`)
      if (role === 'org:viewer') {
        await follow(theirs, `/trunks/${trunk?.id}/settings`)
        await theirs.getByText('Your role may not see this page').waitFor()
        t.equal(await theirs.getByRole('button', { name: 'Suspend the trunk' }).count(), 0, 'no form that is refused')
      }
      await other.close()
    }
  })

  t.test('the first admin of a new customer sets a password by the link, and sees only that organization', async t => {
    const words = ['org', 'create', 'Acme', '--email', 'ada@acme.example', '--time-zone', 'Africa/Lagos', '--json']
    const { stdout, stderr } = await strowger(words, { ...w.place }).ended
    const { url } = JSON.parse(stdout).invitation as { url: string }
    t.ok(url, stderr)
    const visitor = await browser.newContext()
    const link = await visitor.newPage()
    await link.goto(`${w.base_url}/console/invitation${new URL(url).hash}`)
    const accept = async (chosen: string) => {
      await link.getByLabel('Password').fill(chosen)
      await link.getByRole('button', { name: 'Accept the invitation' }).click()
    }
    await accept('too short')
    await link.getByRole('alert').first().waitFor()
    await accept('a password of her own')
    await link.getByText('Sign in as ada@acme.example').waitFor()
    const again = await visitor.newPage()
    await again.goto(`${w.base_url}/console/invitation${new URL(url).hash}`)
    await again.getByLabel('Password').fill('a thief’s password')
    await again.getByRole('button', { name: 'Accept the invitation' }).click()
    await again.getByRole('alert').first().waitFor()
    const theirs = await signIn(visitor, {
      base_url: w.base_url,
      email: 'ada@acme.example',
      password: 'a password of her own',
    })
    await theirs.goto(`${w.base_url}/console/members`)
    await theirs.getByText('ada@acme.example').first().waitFor()
    t.equal(await theirs.getByText(admin.email).count(), 0)
    await visitor.close()
  })

  t.test('no page logged an error', async t => t.same(complaints, []))
})

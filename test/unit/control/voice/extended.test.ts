import { iso } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { insertRecording, updateRecording } from '../../../../core/state/calls/recordings.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import { standingClock } from '../../../support/clock.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { acceptConsent } from '../../../support/recordings.ts'
import { stockClient } from '../../../support/stock-library.ts'
import { addTenant } from '../../../support/tenants.ts'

/** The stock library reads what an account of the wider API has, and nothing of its neighbour. */

/** A request of the specification. */
const SPEC = /^POST \/Calls\.json$/

const rate_limit = { burst: 1_000_000, per_second: 1_000_000 }
const w = await controlPlane(t, { clock: standingClock(), rate_limit, bad_credentials: rate_limit })
const { account_sid, auth_token, project_id } = w.demo
const { client, requests } = stockClient({ base_url: w.base_url, account_sid, auth_token })
const rival = await addTenant(w.state, w.settings.master_key, ['+2342019999901'])
const theirs = stockClient({ base_url: w.base_url, ...rival }).client
const serve = (voice_api: 'spec' | 'extended') => w.state.db.updateTable('voice_account').set({ voice_api }).execute()
await serve('extended')
/** What the library refuses with when the thing is not the account's. */
const UNKNOWN = { status: 404, code: 20404 }

t.test('the account and its balance', async t => {
  const account = await client.api.v2010.accounts(account_sid).fetch()
  t.match(account, { sid: account_sid, status: 'active', authToken: null })
  t.ok(account.dateCreated instanceof Date)
  const { billing_account_id } = await w.state.db
    .selectFrom('project')
    .select('billing_account_id')
    .where('id', '=', project_id)
    .executeTakeFirstOrThrow()
  const pay = (balance_minor: number) =>
    w.state.db.updateTable('billing_account').set({ balance_minor }).where('id', '=', billing_account_id).execute()
  for (const [minor, shown] of [
    [123_456, '1234.56'],
    [-5, '-0.05'],
  ] as const) {
    await pay(minor)
    t.match(await client.balance.fetch(), { accountSid: account_sid, balance: shown, currency: 'NGN' })
  }
  await t.rejects(theirs.api.v2010.accounts(account_sid).fetch(), { status: 401 })
})

t.test('the numbers of the project and what answers them', async t => {
  const urls = { voice_url: 'https://app.example.com/voice', voice_method: 'GET', fallback_url: null }
  const headers = { 'Idempotency-Key': newId.uuid() }
  const body = { name: 'Front desk', ...urls, status_callback_url: 'https://app.example.com/status' }
  const { id } = (await w.ask('POST', '/v1/voice/applications', { body, headers })).body
  const [e164 = ''] = w.demo.numbers
  await w.state.db
    .updateTable('number')
    .set({ route_kind: 'voice_application', route_id: id })
    .where('e164', '=', e164)
    .execute()
  const all = await client.incomingPhoneNumbers.list({ pageSize: 1 })
  t.same(all.map(({ phoneNumber }) => phoneNumber).sort(), [...w.demo.numbers].sort(), 'page by page')
  const [one] = await client.incomingPhoneNumbers.list({ phoneNumber: e164 })
  t.same(
    (await client.incomingPhoneNumbers.list({ friendlyName: e164 })).map(({ phoneNumber }) => phoneNumber),
    [e164],
    'by name',
  )
  for (const typed of [e164, `${e164}*`]) {
    const { body: found } = await w.voice('GET', `/IncomingPhoneNumbers.json?PhoneNumber=${typed}`)
    t.same(found.incoming_phone_numbers.length, 1, 'a plus sign that is not written %2B')
  }
  t.same(await client.incomingPhoneNumbers.list({ friendlyName: 'Sales' }), [], 'no other number stands for it')
  t.same(await client.outgoingCallerIds.list({ friendlyName: 'Sales' }), [])
  const answered = { voiceUrl: urls.voice_url, voiceMethod: 'GET', statusCallback: body.status_callback_url }
  t.match(one, { phoneNumber: e164, voiceApplicationSid: id, capabilities: { voice: true, sms: false }, ...answered })
  const sid = one?.sid ?? ''
  t.equal((await client.incomingPhoneNumbers(sid).fetch()).phoneNumber, e164)
  t.same(
    (await client.outgoingCallerIds.list()).map(({ phoneNumber }) => phoneNumber),
    all.map(({ phoneNumber }) => phoneNumber),
  )
  t.equal((await client.outgoingCallerIds(sid).fetch()).phoneNumber, e164)
  const [application] = await client.applications.list({ friendlyName: 'Front desk' })
  t.match(application, { sid: id, friendlyName: 'Front desk', ...answered })
  t.equal((await client.applications(id).fetch()).voiceUrl, urls.voice_url)
  await t.rejects(theirs.incomingPhoneNumbers(sid).fetch(), UNKNOWN)
  await t.rejects(theirs.outgoingCallerIds(sid).fetch(), UNKNOWN)
  await t.rejects(theirs.applications(id).fetch(), UNKNOWN)
  t.same(
    (await theirs.incomingPhoneNumbers.list()).map(({ phoneNumber }) => phoneNumber),
    ['+2342019999901'],
  )
  await t.rejects(client.incomingPhoneNumbers(sid).update({ friendlyName: 'x' }), { status: 405, code: 20004 })

  await w.state.db.updateTable('number').set({ status: 'quarantined' }).where('id', '=', sid).execute()
  await t.rejects(client.incomingPhoneNumbers(sid).fetch(), UNKNOWN)
  t.equal((await client.incomingPhoneNumbers.list()).length, all.length - 1, 'a number that was given back is gone')
  await w.state.db.updateTable('number').set({ status: 'held' }).where('id', '=', sid).execute()
})

t.test('usage: what calls took and cost, in all, by day, by month', async t => {
  const today = iso(w.clock.now()).slice(0, 10)
  const before = (days: number) => iso(Date.parse(today) - days * 86_400_000).slice(0, 10)
  const spent = async (day: string, direction: 'inbound' | 'outbound', charge_minor: number) => {
    const { billing_account_id } = await w.state.db
      .selectFrom('project')
      .select('billing_account_id')
      .where('id', '=', project_id)
      .executeTakeFirstOrThrow()
    const now = iso(w.clock.now())
    await w.state.db
      .insertInto('reservation')
      .values({
        ...{ call_sid: newId.call(), project_id, billing_account_id, billing: 'rated', direction, destination: '234' },
        ...{ price_book_id: null, price_book_revision: null, rate_id: null, rate_prefix: null, rate_label: null },
        ...{ rate_micro: 0, rate_unit: 'minute', increment_initial_seconds: 60, increment_additional_seconds: 60 },
        ...{ currency: 'NGN', day, held_minute: 0, caps: '[]', held_minor: 0, begun_at: now, settled_at: now },
        ...{ billed_seconds: 90, charge_minor, paid_until_seconds: null, duration_seconds: 80 },
      })
      .execute()
  }
  await spent(before(3), 'outbound', 250)
  await spent(before(3), 'inbound', 100)
  await spent(before(4), 'outbound', 150)
  const of = async (records: Promise<readonly { category: string; count: string; price: unknown }[]>) =>
    (await records).map(({ category, count, price }) => [category, count, String(price)])
  t.same(await of(client.usage.records.list()), [
    ['calls', '3', '5.00'],
    ['calls-inbound', '1', '1.00'],
    ['calls-outbound', '2', '4.00'],
  ])
  const day = new Date(before(3))
  t.same(await of(client.usage.records.list({ category: 'calls', startDate: day, endDate: day })), [
    ['calls', '2', '3.50'],
  ])
  const daily = await client.usage.records.daily.list({ category: 'calls-outbound', startDate: new Date(before(5)) })
  t.same(
    daily.filter(({ count }) => count !== '0').map(({ startDate, count }) => [iso(+startDate).slice(0, 10), count]),
    [
      [before(3), '1'],
      [before(4), '1'],
    ],
  )
  const monthly = await client.usage.records.monthly.list({ category: 'calls' })
  t.equal(
    monthly.reduce((sum, { count }) => sum + Number(count), 0),
    3,
  )
  t.ok(monthly.length >= 12 && monthly.length <= 13, 'the last 366 days')
  const { yesterday, thisMonth, lastMonth } = client.usage.records
  t.same(await of(yesterday.list({ category: 'calls' })), [['calls', '0', '0.00']])
  t.equal((await thisMonth.list({ category: 'calls' })).length, 1)
  t.equal((await lastMonth.list({ category: 'calls' })).length, 1)
  t.same(await of(client.usage.records.today.list({ category: 'calls' })), [['calls', '0', '0.00']])
  t.same(
    (await theirs.usage.records.list({ category: 'calls' })).map(({ count }) => count),
    ['0'],
  )
  await w.state.db.deleteFrom('reservation').execute()
})

t.test('every recording is listed once, also while those listed are deleted', async t => {
  const call_sid = newId.call()
  // Its requests are not among those that the last test repeats: they are many.
  const { client } = stockClient({ base_url: w.base_url, account_sid, auth_token })
  const row = { call_sid, project_id, source: 'Conference', channels: 1, track: 'both' } as const
  const made = Array.from({ length: 1100 }, () => newId.recording())
  const conference_sid = newId.conference()
  await w.state.transaction(async trx => {
    for (const [at, sid] of made.entries()) {
      // Many are of one instant. Those of the conference are of two.
      const ms = w.clock.now() + Math.floor(at / 100)
      const of = { conference_sid: at < 120 ? conference_sid : null }
      await insertRecording(trx, { ...row, ...of, sid, file: `${sid}.wav`, expires_at: null }, ms)
      await updateRecording(trx, sid, { status: 'completed' }, ms)
    }
  })
  const listed = async (options: object) => (await client.recordings.list(options)).map(({ sid }) => sid)
  const all = await listed({ callSid: call_sid })
  t.same([...all].sort(), [...made].sort(), 'also more than a thousand')

  const path = `/Recordings.json?CallSid=${call_sid}&PageSize=50`
  const page = async (uri: string) => (await w.voice('GET', uri)).body
  const [first, second] = [await page(path), await page((await page(path)).next_page_uri)]
  t.same(
    [...first.recordings, ...second.recordings].map(({ sid }) => sid),
    all.slice(0, 100),
  )
  t.same((await page(`${path}&Page=1`)).recordings, second.recordings, 'a page without a token')
  t.same((await page(second.previous_page_uri)).recordings, first.recordings)
  for (const token of ['x', 'PA1', `PA${all[0]}`, 'PA9999999999999999-RE1'])
    t.match(await w.voice('GET', `${path}&PageToken=${token}`), { status: 400, body: { code: 21481 } }, token)

  const deleted: string[] = []
  for (let at = await client.recordings.page({ conferenceSid: conference_sid, pageSize: 50 }); ; ) {
    for (const { sid } of at.instances) {
      await client.recordings(sid).remove()
      deleted.push(sid)
    }
    if (!at.nextPageUrl) break
    at = await client.recordings.getPage(at.nextPageUrl)
  }
  t.same(deleted.sort(), made.slice(0, 120).sort(), 'none is left out, though each page is deleted before the next')
  t.same(
    await listed({ callSid: call_sid }),
    all.filter(sid => !deleted.includes(sid)),
  )
})

t.test('streams, recording servers, transcriptions and messages of a call that talks', async t => {
  const [from = ''] = w.demo.numbers
  await putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now: iso(w.clock.now()) })
  const { sid } = await client.calls.create({ from, to: '+2348030000001', twiml: '<Response/>' })
  const live = (changes: object) => w.state.db.updateTable('call').set(changes).where('sid', '=', sid).execute()
  const commands = async () =>
    (
      await w.state.db
        .selectFrom('call_command')
        .select('payload')
        .where('call_sid', '=', sid)
        .where('kind', '=', 'activity')
        .orderBy('id')
        .execute()
    ).map(({ payload }) => JSON.parse(payload))
  const url = 'wss://app.example.com/media'
  await t.rejects(client.calls(sid).streams.create({ url }), { status: 400, code: 21220 })
  await live({ status: 'in-progress', node_id: 'node_1' })

  const given = { name: 'ears', track: 'both_tracks' as const, statusCallback: 'https://app.example.com/told' }
  const stream = await client.calls(sid).streams.create({
    ...{ url, ...given },
    ...{ 'parameter1.name': 'tone', 'parameter1.value': 'warm' },
  })
  t.match(stream, { name: 'ears', status: 'in-progress', callSid: sid, accountSid: account_sid })
  const callback = { url: given.statusCallback, method: 'POST' }
  t.match(await commands(), [
    {
      act: 'start',
      kind: 'stream',
      sid: stream.sid,
      url,
      track: 'both_tracks',
      parameters: { tone: 'warm' },
      callback,
    },
  ])
  await t.rejects(client.calls(sid).streams.create({ url, name: 'ears' }), { status: 400 })
  await t.rejects(client.calls(sid).streams.create({ url: 'https://app.example.com' }), { status: 400, code: 21205 })
  await t.rejects(theirs.calls(sid).streams.create({ url }), UNKNOWN)
  await t.rejects(theirs.calls(sid).streams(stream.sid).update({ status: 'stopped' }), UNKNOWN)
  t.match(await client.calls(sid).streams('ears').update({ status: 'stopped' }), { sid: stream.sid, status: 'stopped' })
  t.match((await commands()).at(-1), { act: 'stop', sid: stream.sid })
  t.equal((await commands()).length, 2)
  await client.calls(sid).streams(stream.sid).update({ status: 'stopped' })
  t.equal((await commands()).length, 2, 'what is over is not stopped again')
  for (let at = 0; at < 10; at++) await client.calls(sid).streams.create({ url })
  await t.rejects(client.calls(sid).streams.create({ url }), { status: 400, details: { reason: 'limit_reached' } })

  await w.state.db.deleteFrom('recording_consent').execute()
  await t.rejects(client.calls(sid).siprec.create(), { status: 403, details: { reason: 'recording_consent_required' } })
  await acceptConsent(w)
  const siprec = await client.calls(sid).siprec.create({ connectorName: 'vault' })
  t.match((await commands()).at(-1), { kind: 'siprec', connector: 'vault', track: 'both_tracks', sid: siprec.sid })
  t.match(await client.calls(sid).siprec(siprec.sid).update({ status: 'stopped' }), { status: 'stopped' })

  const said = 'https://app.example.com/said'
  const notes = await client
    .calls(sid)
    .transcriptions.create({ statusCallbackUrl: said, hints: 'Strowger, exchange', partialResults: true })
  t.match((await commands()).at(-1), {
    ...{ kind: 'transcription', language: 'en-US', hints: ['Strowger', 'exchange'], partial_results: true },
    callback: { url: said, method: 'POST' },
  })
  t.match(await client.calls(sid).transcriptions(notes.sid).update({ status: 'stopped' }), { status: 'stopped' })

  const content = '{"seat":12}'
  await t.rejects(client.calls(sid).userDefinedMessages.create({ content }), { status: 400 }, 'no carrier gets it')
  await live({ origin: 'client' })
  await t.rejects(client.calls(sid).userDefinedMessages.create({ content: '{' }), { status: 400, code: 20001 })
  t.match((await client.calls(sid).userDefinedMessages.create({ content })).sid, /^KX[0-9a-f]{32}$/)
  t.match((await commands()).at(-1), { act: 'message', content })
  const heard = await client.calls(sid).userDefinedMessageSubscriptions.create({ callback: said })
  t.match((await commands()).at(-1), { kind: 'subscription', callback: { url: said } })
  await t.rejects(theirs.calls(sid).userDefinedMessageSubscriptions(heard.sid).remove(), UNKNOWN)
  t.equal(await client.calls(sid).userDefinedMessageSubscriptions(heard.sid).remove(), true)
  t.match((await commands()).at(-1), { act: 'stop', sid: heard.sid })
})

t.test('every path that the library used is 404 for an account without the wider API', async t => {
  await serve('spec')
  const used = [...new Set(requests)].filter(request => !SPEC.test(request))
  t.comment(used.join('\n'))
  t.ok(used.length >= 25)
  for (const request of used) {
    const [method = '', path = ''] = request.split(' ')
    const answer = await w.voice(method, path, method === 'POST' ? {} : undefined)
    t.match(answer, { status: 404, body: { code: 'voice_route_not_proxied' } }, request)
  }
})

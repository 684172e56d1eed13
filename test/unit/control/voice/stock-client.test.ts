import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import twilio from 'twilio'
import { ending } from '../../../../core/domain/calls/endings.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { insertRecording, updateRecording } from '../../../../core/state/calls/recordings.ts'
import { finishCall, insertCall, writeCall } from '../../../../core/state/calls/running-calls.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import { openState, type State } from '../../../../core/state/index.ts'
import { onPostgres } from '../../../support/engine.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { freePort } from '../../../support/ports.ts'
import { stockClient } from '../../../support/stock-library.ts'
import { addTenant } from '../../../support/tenants.ts'
import { until } from '../../../support/wait.ts'
import { bodyOf } from '../../../support/web.ts'

const script = join(dirname(fileURLToPath(import.meta.url)), '../../../../control/process.js')
const TO = '+2348030000001'

interface Platform {
  readonly state: State
  readonly client: ReturnType<typeof twilio>
  readonly base_url: string
  readonly account_sid: string
  readonly auth_token: string
  readonly project_id: string
  /** The number of the account. */
  readonly from: string
  readonly data_dir: string
}

/** Starts a control process with a fresh data folder, for all tests. The tests act as signaling and write its rows. */
async function start(t: Test) {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-stock-'))
  const port = await freePort()
  const database_url = onPostgres() ? await (await import('../../../support/postgres.ts')).postgresDatabase() : null
  const where = database_url === null ? {} : { STROWGER_DATABASE_URL: database_url }
  const own = { STROWGER_DATA: data_dir, STROWGER_HTTP_PORT: String(port), STROWGER_LOG: 'error' }
  const env = { ...process.env, ...own, ...where }
  const child = fork(script, { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  t.teardown(() => ended(child))
  await once(child, 'message')
  const master_key = Buffer.from(readFileSync(join(data_dir, 'master.key'), 'utf8').trim(), 'hex')
  const state = await openState({ data_dir, database_url })
  t.teardown(async () => {
    await state.close()
    rmSync(data_dir, { recursive: true, force: true })
  })
  await putSandboxCarrier(state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now: iso(Date.now()) })
  return { state, master_key, base_url: `http://127.0.0.1:${port}`, data_dir }
}

const started = await start(t)
let customers = 0

/** Gives the test a customer of its own, who has one number. */
async function platform(): Promise<Platform> {
  const { state, master_key, base_url, data_dir } = started
  const from = `+23420100000${String(++customers).padStart(2, '0')}`
  const { account_sid, auth_token, project_id } = await addTenant(state, master_key, [from], `Customer ${customers}`)
  const { client } = stockClient({ base_url, account_sid, auth_token })
  return { state, client, base_url, account_sid, auth_token, project_id, from, data_dir }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  await exit
}

const commands = (p: Platform, sid: string) =>
  p.state.db.selectFrom('call_command').selectAll().where('call_sid', '=', sid).orderBy('id').execute()

const TALKED_MS = 12_500

/** Answers the call in the past, so that its conversation can end now. */
async function answer(p: Platform, sid: string): Promise<void> {
  const at = Date.now() - TALKED_MS
  await p.state.transaction(async trx => {
    await writeCall(trx, sid, [
      { step: 'initiated', at_ms: at, changes: { node_id: 'node_test', sip_call_id: 'call-id' } },
      { step: 'ringing', at_ms: at + 1 },
      { step: 'answered', at_ms: at + 2 },
    ])
  })
}

/** Ends the call 12.5 s after its answer, however long the test took. */
async function end(p: Platform, sid: string): Promise<void> {
  const final = ending({ cause: 'called_hung_up', answered: true })
  const { answered_at } = await p.state.db
    .selectFrom('call')
    .select('answered_at')
    .where('sid', '=', sid)
    .executeTakeFirstOrThrow()
  const ended_ms = Date.parse(answered_at ?? '') + TALKED_MS
  await p.state.transaction(trx => finishCall(trx, sid, { ending: final, ended_ms, pdd_ms: 1, media: null }))
}

t.test('the stock client creates, fetches, redirects, ends, cancels and removes calls', async t => {
  const p = await platform()
  const inline = await p.client.calls.create({ to: TO, from: p.from, twiml: '<Response><Say>hello</Say></Response>' })
  t.match(inline, { status: 'queued', direction: 'outbound-api', from: p.from, to: TO, accountSid: p.account_sid })
  t.match(inline.sid, /^CA[0-9a-f]{32}$/)
  t.ok(inline.dateCreated instanceof Date && Math.abs(inline.dateCreated.getTime() - Date.now()) < 60_000)
  const { sid } = await p.client.calls.create({
    to: TO,
    from: p.from,
    url: 'https://app.example.test/voice',
    method: 'GET',
    statusCallbackEvent: ['initiated', 'answered', 'completed'],
    statusCallback: 'https://app.example.test/status',
    machineDetection: 'Enable',
    timeout: 20,
  })
  await answer(p, sid)
  const live = await p.client.calls(sid).fetch()
  t.match(live, { status: 'in-progress', answeredBy: null, price: null, apiVersion: '2010-04-01' })
  t.ok(live.startTime instanceof Date)
  t.equal(live.endTime, null)

  const redirected = await p.client.calls(sid).update({ twiml: new twilio.twiml.VoiceResponse().toString() })
  t.equal(redirected.status, 'in-progress')
  await live.update({ url: 'https://app.example.test/next', method: 'POST' })
  await live.update({ status: 'completed' })
  t.same(
    (await commands(p, sid)).map(({ kind, outcome }) => [kind, outcome]),
    [
      ['originate', null],
      ['redirect', 'replaced'],
      ['redirect', 'replaced'],
      ['hangup', null],
    ],
  )
  await end(p, sid)
  const over = await live.fetch()
  t.match(over, { status: 'completed', duration: '12' })
  t.ok(over.endTime instanceof Date)
  t.equal((await p.client.calls(inline.sid).update({ status: 'canceled' })).status, 'canceled')
  t.equal(await p.client.calls(inline.sid).remove(), true)
  t.equal((await p.client.calls(inline.sid).fetch()).status, 'canceled', "the call's record remains")
})

t.test('the stock client pages through 120 calls, with and without filters', async t => {
  const p = await platform()
  const sids: string[] = []
  const number = await p.state.db.selectFrom('number').select('id').where('e164', '=', p.from).executeTakeFirstOrThrow()
  await p.state.transaction(async trx => {
    for (let at = 0; at < 120; at++) {
      const sid = newId.call()
      sids.unshift(sid)
      const account = { project_id: p.project_id, account_sid: p.account_sid, number_id: number.id }
      const numbers = { from_number: p.from, to_number: at % 2 === 0 ? TO : '+2348030000002' }
      const kind = { origin: 'rest', direction: 'outbound-api', status: 'queued' } as const
      await insertCall(trx, { sid, ...account, ...numbers, ...kind, queued_at: iso(Date.now()) }, Date.now())
    }
  })
  const all = await p.client.calls.list({ limit: 1000 })
  t.same(
    all.map(call => call.sid),
    sids,
  )
  t.equal((await p.client.calls.list({ limit: 7 })).length, 7)
  t.equal((await p.client.calls.list({ pageSize: 20, limit: 45 })).length, 45)
  t.equal((await p.client.calls.list({ to: TO, pageSize: 25 })).length, 60, 'every page keeps the filters')
  t.equal((await p.client.calls.list({ status: 'completed' })).length, 0)
  await answer(p, sids[3] ?? '')
  const today = new Date(Date.now() - 3_600_000)
  t.same(
    (await p.client.calls.list({ startTimeAfter: today })).map(call => call.sid),
    [sids[3]],
  )
  t.same(await p.client.calls.list({ startTimeBefore: new Date('2020-01-01') }), [])
  const first = await p.client.calls.page({ pageSize: 50 })
  t.equal(first.instances.length, 50)
  const second = await first.nextPage()
  t.same(
    second?.instances.map(call => call.sid),
    sids.slice(50, 100),
  )
  t.same(
    (await second?.previousPage())?.instances.map(call => call.sid),
    sids.slice(0, 50),
  )
})

t.test('the stock client reads recordings and events, and downloads the audio', async t => {
  const p = await platform()
  const { sid } = await p.client.calls.create({ to: TO, from: p.from, twiml: '<Response><Record/></Response>' })
  t.same(await p.client.calls(sid).recordings.list(), [])
  const recording_sid = newId.recording()
  const file = `recordings/${recording_sid}.wav`
  const audio = Buffer.alloc(4000, 'RIFF')
  mkdirSync(join(p.data_dir, 'recordings'), { recursive: true })
  writeFileSync(join(p.data_dir, file), audio)
  const made = { sid: recording_sid, call_sid: sid, project_id: p.project_id, source: 'RecordVerb', file }
  await insertRecording(p.state.db, { ...made, channels: 1, track: 'inbound' }, Date.now())
  await updateRecording(
    p.state.db,
    recording_sid,
    { status: 'completed', duration_ms: 3700, bytes: audio.length },
    Date.now(),
  )
  const [listed] = await p.client.calls(sid).recordings.list({ limit: 20 })
  t.match(listed, { sid: recording_sid, callSid: sid, duration: 4, channels: 1, status: 'completed' })
  t.ok(listed?.dateCreated instanceof Date)
  const fetched = await p.client.recordings(recording_sid).fetch()
  t.match(fetched, { sid: recording_sid, source: 'RecordVerb', mediaUrl: undefined })
  const url = `${p.base_url}/2010-04-01/Accounts/${p.account_sid}/Recordings/${recording_sid}.wav`
  const credentials = Buffer.from(`${p.account_sid}:${p.auth_token}`).toString('base64')
  const got = await fetch(url, { headers: { authorization: `Basic ${credentials}`, range: 'bytes=-100' } })
  t.equal(got.status, 206)
  t.same(Buffer.from(await got.arrayBuffer()), audio.subarray(-100))
  t.equal((await fetch(url)).status, 401, 'the audio requires credentials')
  t.same(await p.client.calls(sid).events.list(), [])
})

t.test('the stock client raises exceptions with the documented status, code and message', async t => {
  const p = await platform()
  const good = { to: TO, from: p.from, twiml: '<Response/>' }
  const thrown = async (work: Promise<unknown>) =>
    work.then(
      () => null,
      error => ({ ...error, message: error.message, name: error.constructor.name }),
    )
  const raised = (status: number, code: number | string, message: RegExp) => ({
    name: 'RestException',
    status,
    code,
    message,
    moreInfo: new RegExp(`/docs/errors/${code}$`),
  })
  t.match(await thrown(p.client.calls.create({ ...good, from: '+15550001111' })), raised(400, 21210, /not a number/))
  t.match(await thrown(p.client.calls.create({ ...good, to: 'sip:a@b.test' })), raised(400, 21211, /To/))
  t.match(await thrown(p.client.calls.create({ ...good, twiml: '<Response>' })), raised(400, 12100, /parse/))
  t.match(await thrown(p.client.calls.create({ ...good, applicationSid: 'AP1' })), raised(400, 21605, /ApplicationSid/))
  t.match(await thrown(p.client.calls(newId.call()).fetch()), raised(404, 20404, /not found/))
  t.match(await thrown(p.client.calls('CAnonsense').fetch()), raised(404, 20404, /CAnonsense/))
  const { sid } = await p.client.calls.create(good)
  await answer(p, sid)
  await end(p, sid)
  t.match(await thrown(p.client.calls(sid).update({ status: 'completed' })), {
    ...raised(400, 21220, /completed/),
    details: { reason: 'call_not_live' },
  })
  const { client: wrong } = stockClient({ ...p, auth_token: 'not the token' })
  t.match(await thrown(wrong.calls.list()), raised(401, 20003, /token/))
  const { client: unknown } = stockClient({ ...p, account_sid: newId.account() })
  t.match(await thrown(unknown.calls.list()), raised(404, 'voice_route_not_proxied', /unknown/))
  t.match(await thrown(p.client.messages.list()), raised(404, 'voice_route_not_proxied', /not served/))
})

t.test('callbacks arrive in order, as forms or queries, with signatures that the stock validator accepts', async t => {
  const p = await platform()
  const valid: boolean[] = []
  const seen: string[] = []
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request)
    if (body === null) return
    const form = Object.fromEntries(new URLSearchParams(body.toString()))
    const url = `http://${request.headers.host}${request.url}`
    valid.push(twilio.validateRequest(p.auth_token, String(request.headers['x-twilio-signature']), url, form))
    const query = Object.fromEntries(new URL(url).searchParams)
    seen.push(`${request.method} ${{ ...query, ...form }['CallStatus']} ${{ ...query, ...form }['SequenceNumber']}`)
    response.writeHead(204).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => server.close(resolve).closeAllConnections()))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/status?shop=a%26b`
  const statusCallbackEvent = ['initiated', 'ringing', 'answered', 'completed']
  for (const statusCallbackMethod of ['POST', 'GET']) {
    seen.length = 0
    const { sid } = await p.client.calls.create({
      to: TO,
      from: p.from,
      twiml: '<Response/>',
      statusCallback: url,
      statusCallbackEvent,
      statusCallbackMethod,
    })
    await answer(p, sid)
    await end(p, sid)
    await until('all callbacks have arrived', () => seen.length === 4)
    const events = ['initiated 0', 'ringing 1', 'in-progress 2', 'completed 3']
    t.same(
      seen,
      events.map(event => `${statusCallbackMethod} ${event}`),
    )
    await until(
      'the callbacks are events of the call',
      async () => (await p.client.calls(sid).events.list()).length === 4,
    )
  }
  t.same(new Set(valid), new Set([true]))
})

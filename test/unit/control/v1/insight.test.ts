import { seriesOf } from '../../../../control/v1/call-words.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import { checkEvidence } from '../../../../core/runtime/evidence.ts'
import { addCallEvent } from '../../../../core/state/calls/call-events.ts'
import { forgetOldSteps } from '../../../../core/state/calls/call-steps.ts'
import { recordExchange } from '../../../../core/state/calls/calls.ts'
import { insertMessages } from '../../../../core/state/calls/ladder.ts'
import { addMediaQuality } from '../../../../core/state/calls/media-quality.ts'
import { writeCall } from '../../../../core/state/calls/running-calls.ts'
import { standingClock } from '../../../support/clock.ts'
import { controlPlane, openSandbox } from '../../../support/control-plane.ts'
import { HOUR_MS, ranCall, trunkOf } from '../../../support/ended-calls.ts'
import t from '../../../support/harness/index.ts'
import { packetsIn } from '../../../support/pcap.ts'
import { addRecording, WAV } from '../../../support/recordings.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'

t.test('trunk metrics and diagnostics cover the calls that ended in the window', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const trunk_id = await trunkOf(w, 'Measured')
  const other = await trunkOf(w, 'Other')
  const metrics = `/v1/trunks/${trunk_id}/metrics`
  const diagnostics = `/v1/trunks/${trunk_id}/diagnostics`
  const read = async (path: string) => (await w.ask('GET', path)).body
  t.match(await read(metrics), {
    attempts: 0,
    asr_7d_pct: null,
    acd_seconds: null,
    acd_reason: /no call/,
    pdd_ms: null,
    pdd_reason: /no call/,
    top_failures: [],
    window_hours: 24,
  })
  t.match(await read(diagnostics), { media: { mos: null, unavailable_reason: /no call/, window_hours: 24 } })

  const call = { trunk_id }
  const leg = (packets_received: number, more: object = {}) => ({
    packets_received,
    packets_lost: 0,
    jitter_ms: 4,
    mos: 4.4,
    ...more,
  })
  const media = { a: leg(990, { packets_lost: 10, jitter_ms: 2, mos: 4.2 }), b: leg(1000), mode: 'transcode' }
  await ranCall(w, { call, hours_ago: 0.5, seconds: 60, pdd_ms: 1000, media })
  const deaf = { a: leg(1000), b: leg(0), mode: 'relay' }
  await ranCall(w, { call, hours_ago: 2, seconds: 31, pdd_ms: 2001, media: deaf })
  await ranCall(w, { call, hours_ago: 3, cause: 'refused', sip_code: 486 })
  await ranCall(w, { call, hours_ago: 3, cause: 'refused', sip_code: 503 })
  await ranCall(w, { call, hours_ago: 4, cause: 'refused', sip_code: 503 })
  await ranCall(w, { call, hours_ago: 30, cause: 'refused', sip_code: 404 })
  await ranCall(w, { call, hours_ago: 24 * 20, seconds: 10, media: { a: leg(0), b: leg(0), mode: 'relay' } })
  await ranCall(w, { call: { ...call, origin: 'test' }, seconds: 5 })
  await ranCall(w, { call: { trunk_id: other }, seconds: 5 })
  await ranCall(w, { seconds: 5 })

  const day = await read(`${metrics}?window=24h`)
  t.match(day, { attempts: 5, answered: 2, failed: 3, acd_seconds: 46, pdd_ms: 1501, asr_7d_pct: '33.3' })
  t.match(day.top_failures, [
    { calls: 2, share_pct: '66.7', sip_code: 503 },
    { calls: 1, share_pct: '33.3', sip_code: 486 },
  ])
  t.match(await read(`${metrics}?window=1h`), {
    attempts: 1,
    answered: 1,
    failed: 0,
    top_failures: [],
    window_hours: 1,
  })
  t.match(await read(`${metrics}?window=7d`), { attempts: 6, answered: 2, failed: 4, window_hours: 168 })
  t.match(await read(`${metrics}?window=30d`), { attempts: 7, answered: 3, asr_7d_pct: '33.3', window_hours: 720 })
  t.match(await read(diagnostics), {
    media: {
      // The leg that received nothing has no jitter and no MOS.
      jitter_ms: 3.33,
      mos: 4.33,
      packet_loss_pct: '0.33',
      no_media_calls: 0,
      one_way_calls: 1,
      transcoded_calls: 1,
      unavailable_reason: null,
      window_hours: 24,
    },
  })
  t.match(await read(`${diagnostics}?window=30d`), { media: { no_media_calls: 1, window_hours: 720 } })
  t.match(await read(`${diagnostics}?window=1h`), { media: { one_way_calls: 0, transcoded_calls: 1 } })
  for (const path of [metrics, diagnostics]) {
    const wrong = await w.ask('GET', `${path}?window=2h`)
    t.match([wrong.status, wrong.body.code], [422, 'validation_failed'])
  }

  const before = await read(`${metrics}?window=30d`)
  await forgetOldSteps(w.state.db, w.clock.now())
  t.same(
    { ...(await read(`${metrics}?window=30d`)), as_of: before.as_of },
    before,
    'steps within the longest window are kept',
  )
  await forgetOldSteps(w.state.db, w.clock.now() + 32 * 24 * HOUR_MS)
  const left = await w.state.db.selectFrom('call_step').select('subject_id').execute()
  t.same(left, [], 'older steps are deleted')
})

t.test('call history filters and pages, and hanging up a call that no node has taken ends it at once', async t => {
  const w = await controlPlane(t)
  await openSandbox(w)
  const sids: string[] = []
  for (let at = 0; at < 5; at += 1) {
    const form = { To: `+23480300000${at}0`, From: w.demo.numbers[0] ?? '', Twiml: '<Response/>' }
    const { body, status, text } = await w.voice('POST', '/Calls.json', form)
    t.equal(status, 201, text)
    sids.push(body.sid)
  }
  const seen: string[] = []
  let cursor = ''
  do {
    const { body } = await w.ask('GET', `/v1/calls?limit=2${cursor}`)
    seen.push(...body.data.map((call: { id: string }) => call.id))
    cursor = body.next_cursor ? `&cursor=${body.next_cursor}` : ''
  } while (cursor !== '')
  t.same(seen, [...sids].reverse())
  t.same(
    (await w.ask('GET', '/v1/calls?number=%2B2348030000030')).body.data.map((call: { id: string }) => call.id),
    [sids[3]],
  )
  t.equal((await w.ask('GET', '/v1/live-calls')).body.data.length, 5)
  const ended = await w.ask('POST', `/v1/live-calls/${sids[0]}/hang-up`)
  t.match(ended.body, { status: 'canceled' })
  t.equal((await w.ask('POST', `/v1/live-calls/${sids[0]}/hang-up`)).body.code, 'call_not_live')
  t.equal((await w.ask('GET', '/v1/live-calls')).body.data.length, 4)
  t.match((await w.ask('GET', `/v1/calls/${sids[0]}`)).body, { status: 'canceled', attempts: [] })
})

t.test('a call that talks is transferred by the document that dials, once nothing ends it', async t => {
  const w = await controlPlane(t)
  await openSandbox(w)
  const form = { To: '+2348030000008', From: w.demo.numbers[0] ?? '', Twiml: '<Response><Pause/></Response>' }
  const { sid } = (await w.voice('POST', '/Calls.json', form)).body
  const transfer = (body: object) => w.ask('POST', `/v1/live-calls/${sid}/transfer`, { body })
  const set = (columns: object) => w.state.db.updateTable('call').set(columns).where('sid', '=', sid).execute()
  const redirects = async () => {
    const rows = await w.state.db.selectFrom('call_command').selectAll().where('call_sid', '=', sid).execute()
    const waiting = rows.filter(({ kind, done_at }) => kind === 'redirect' && done_at === null)
    return waiting.map(({ payload }) => JSON.parse(payload))
  }
  const to = '+2348030000001'
  t.match(await transfer({ to }), { status: 409, body: { code: 'call_not_live' } }, 'it is not answered')
  await set({ status: 'in-progress', node_id: 'node_1' })
  t.equal((await transfer({ to: '1"/><Hangup/>' })).status, 422, 'only a number is dialled')
  t.same(await redirects(), [])
  t.equal((await transfer({ to: '+2348030000002' })).status, 200)
  t.equal((await transfer({ to, from: form.From })).status, 200)
  const markup = `<Response><Dial callerId="${form.From}"><Number>${to}</Number></Dial></Response>`
  t.same(await redirects(), [{ markup }], 'the later transfer replaces the one that no node has begun')
  const { data } = (await w.ask('GET', '/v1/audit?kind=trunks')).body
  t.match(data[0], { action: 'call.transferred', summary: `Transferred ${sid} to ${to}` })

  await set({ origin: 'trunk' })
  t.match(await transfer({ to }), { status: 409, body: { code: 'state_conflict' } }, 'a call of a PBX runs no document')
  await set({ origin: 'rest' })
  t.equal((await w.ask('POST', `/v1/live-calls/${sid}/hang-up`)).status, 200)
  t.match(await transfer({ to }), { status: 409, body: { code: 'call_not_live' } }, 'no transfer replaces a hang-up')
})

t.test('lists say trunk, codec and MOS; faults of documents, requests and refusals are one list', async t => {
  const w = await controlPlane(t)
  await openSandbox(w)
  const { db } = w.state
  const sids: string[] = []
  for (const at of [0, 1, 2, 3]) {
    const form = { To: `+23480300000${at}0`, From: w.demo.numbers[0] ?? '', Twiml: '<Response/>' }
    sids.push((await w.voice('POST', '/Calls.json', form)).body.sid)
  }
  const [good = '', broken = '', unheard = '', refused = ''] = sids
  const trunk_id = await trunkOf(w, 'Lobby')
  await db.updateTable('call').set({ trunk_id }).where('sid', '=', good).execute()
  for (const [leg_id, mos] of [
    ['a', 4.2],
    ['b', 3.1],
  ] as const)
    await db
      .insertInto('leg_figures')
      .values({ call_sid: good, leg_id, ended_at: iso(w.clock.now()), figures: JSON.stringify({ codec: 'PCMA', mos }) })
      .execute()
  const only = async (query: string) => (await w.ask('GET', `/v1/calls?${query}`)).body.data
  const listed = await only(`call_id=${good.slice(0, 20)}`)
  t.match(listed, [{ id: good, trunk_name: 'Lobby', codec: 'PCMA', mos: 3.1, price_minor: null }])
  t.equal(listed.length, 1)
  const stats = { codec: 'opus', mos: 4.4 }
  await addMediaQuality(db, { call_sid: broken, leg_id: 'a', stats: { codec: 'opus', mos: 1.5 } }, w.clock.now())
  await addMediaQuality(db, { call_sid: broken, leg_id: 'a', stats }, w.clock.now())
  const live = (await w.ask('GET', '/v1/live-calls')).body.data
  t.match(
    live.find(({ id }: { id: string }) => id === broken),
    { ...stats, trunk_name: null },
    'its last sample',
  )

  t.same((await w.ask('GET', '/v1/call-faults')).body, { data: [] })
  const detail = { detail: 'no such verb', url: 'https://app.example.com/menu', line: 3 }
  await addCallEvent(db, { call_sid: broken, kind: 'error', number: 12100, detail }, w.clock.now())
  await addCallEvent(db, { call_sid: good, kind: 'state', number: null, detail: {} }, w.clock.now())
  const reply = { ok: false, status: 503, duration_ms: 5, number: 11200, detail: 'answered with 503' } as const
  const url = 'https://app.example.com/status'
  const exchange = { call_sid: unheard, method: 'POST', url, parameters: { CallSid: unheard }, reply } as const
  await recordExchange(db, exchange, w.clock.now())
  const ended = { status: 'failed', ended_at: iso(w.clock.now()), reason: 'no_route', sip_code: 404 } as const
  await db.updateTable('call').set(ended).where('sid', '=', refused).execute()
  t.match(await only('reason=no_route'), [{ id: refused }])
  const expected = [
    { kind: 'refusal', call_id: refused, sip_code: 404, reason: 'no_route', sentence: /no route/ },
    { kind: 'request', call_id: unheard, number: 11200, request: { url }, response: { response_code: 503 } },
    { kind: 'document', call_id: broken, number: 12100, sentence: /line 3 of https.*no such verb/ },
  ]
  const pages: unknown[] = []
  let cursor = ''
  do {
    const { body } = await w.ask('GET', `/v1/call-faults?limit=1${cursor}`)
    pages.push(...body.data)
    cursor = body.next_cursor ? `&cursor=${body.next_cursor}` : ''
  } while (cursor !== '')
  t.match(pages, expected)
  t.equal(pages.length, expected.length)
  const rival = await addTenant(w.state, w.settings.master_key, ['+2342019999001'])
  t.same((await asTenant(w, rival).ask('GET', '/v1/call-faults')).body.data, [], 'another customer sees none of it')
  const scopes = JSON.stringify(['call_history:read'])
  const blind = await w.newKey({ scopes })
  t.match(await w.ask('GET', '/v1/call-faults', { key: blind }), { status: 403, body: { code: 'scope_required' } })
})

t.test('a call shows its SIP messages, its decision in words, its media and its record', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const trunk_id = await trunkOf(w, 'Explained')
  const decision_trace = JSON.stringify({
    admitted: true,
    max_duration_seconds: 3600,
    checks: [{ check: 'concurrency', result: 'passed', limit: 10, used: 1, sentence: 'trunk "Explained" has room.' }],
    revisions: { trunk: 1 },
  })
  const leg = { packets_received: 500, packets_lost: 0, jitter_ms: 2, mos: 4.4 }
  const sid = await ranCall(w, {
    call: { trunk_id, sip_call_id: 'a@test', decision_trace },
    seconds: 20,
    pdd_ms: 700,
    media: { a: leg, b: leg, mode: 'relay' },
  })
  const at = iso(w.clock.now())
  const attempt = { sequence: 1, target: 'sip:192.0.2.1', transport: 'udp' }
  const outcome = {
    sip_call_id: 'b@test',
    address: '192.0.2.1:5060',
    ended_at: at,
    sip_code: 200,
    result: 'answered' as const,
  }
  await writeCall(w.state.db, sid, [
    { step: 'attempt', attempt, at_ms: w.clock.now() - 1000 },
    { step: 'attempt_changed', sequence: 1, changes: outcome },
  ])
  const message = { at_ms: w.clock.now(), protocol: 'udp', local: '127.0.0.1:5060', retransmission: 0 as const }
  const invite = (call: string) => `INVITE sip:x@test SIP/2.0\r\nCall-ID: ${call}\r\nCSeq: 1 INVITE\r\n\r\n`
  await insertMessages(w.state.db, {
    edge_id: 'mac_1',
    messages: [
      { ...message, sip_call_id: 'a@test', direction: 'in', remote: '198.51.100.7:5060', text: invite('a@test') },
      { ...message, sip_call_id: 'b@test', direction: 'out', remote: '192.0.2.1:5060', text: invite('b@test') },
      { ...message, sip_call_id: 'c@test', direction: 'in', remote: '192.0.2.9:5060', text: invite('c@test') },
    ],
  })
  for (let at = 0; at < 3; at += 1)
    for (const leg_id of ['a', 'b'])
      await addMediaQuality(
        w.state.db,
        { call_sid: sid, leg_id, stats: { mos: 4 + at / 10 } },
        w.clock.now() + at * 10_000,
      )
  const warning = { call_sid: sid, kind: 'warning' as const, number: 13_520, detail: { message: 'text too long' } }
  await addCallEvent(w.state.db, warning, w.clock.now())
  const exchange = {
    call_sid: sid,
    method: 'POST' as const,
    url: 'https://app.example.com/',
    parameters: { Digits: '7' },
  }
  await recordExchange(w.state.db, { ...exchange, reply: { ok: true, status: 200, duration_ms: 12 } }, w.clock.now())

  const read = async (path: string) => (await w.ask('GET', `/v1/calls/${sid}${path}`)).body
  const call = await read('')
  t.match(call, {
    id: sid,
    status: 'completed',
    attempts: [{ sequence: 1, address: '192.0.2.1:5060', result: 'answered', sip_call_id: 'b@test' }],
    record: { duration_seconds: 20, pdd_ms: 700, media: { mode: 'relay' } },
    events: [
      { kind: 'warning', number: 13_520 },
      { kind: 'http', detail: { request: { method: 'POST', parameters: { digits: '7' } } } },
    ],
    recordings: [],
  })
  const key = await w.newKey({ role: 'org:billing' })
  const seen = await w.ask('GET', `/v1/calls/${sid}`, { key })
  t.same([seen.status, seen.body.events.length], [200, 1], 'without call_diagnostics:read no exchange is shown')
  const ladder = await read('/ladder')
  t.equal(ladder.messages.length, 2, 'the ladder has the messages of both legs and of no other call')
  t.equal(ladder.unavailable, null)
  const capture = await w.ask('GET', `/v1/calls/${sid}/pcap`)
  t.match([capture.status, capture.headers.get('content-type')], [200, 'application/x-pcapng'])
  const packets = await packetsIn(capture.bytes, 'ip.src', 'ip.dst', 'udp.dstport', 'sip.Method', 'sip.Call-ID')
  t.same(
    packets,
    [
      ['198.51.100.7', '127.0.0.1', '5060', 'INVITE', 'a@test'],
      ['127.0.0.1', '192.0.2.1', '5060', 'INVITE', 'b@test'],
    ],
    'tshark reads the messages of both legs, and of no other call',
  )
  const evidence = await w.ask('GET', `/v1/calls/${sid}/evidence`)
  const published = await w.ask('GET', '/evidence-key.pem', { key: null })
  t.match(checkEvidence(evidence.text, published.text), { intact: true, about: { call_id: sid } })
  t.notOk(checkEvidence(evidence.text.replace('INVITE sip:x', 'INVITE sip:y'), published.text).intact)
  const { parts } = evidence.body
  t.match(parts, { call: { id: sid }, ladder, decision: { attempts: [{ sequence: 1 }] }, media: { legs: [{}, {}] } })
  t.match(parts.audit[0], { action: 'trunk.created', resource_id: trunk_id, hash: /^[0-9a-f]{64}$/ })
  const unaudited = await w.newKey({ role: 'org:engineer' })
  const narrower = await w.ask('GET', `/v1/calls/${sid}/evidence`, { key: unaudited })
  t.same(Object.keys(narrower.body.parts), ['call', 'ladder', 'decision', 'media'], 'the trail needs audit:read')
  const diagnoses = await w.newKey({ scopes: JSON.stringify(['call_diagnostics:read']) })
  t.equal((await w.ask('GET', `/v1/calls/${sid}`, { key: diagnoses })).status, 403)
  const narrowest = await w.ask('GET', `/v1/calls/${sid}/evidence`, { key: diagnoses })
  t.same(Object.keys(narrowest.body.parts), ['ladder', 'decision', 'media'], 'the call needs call_history:read')
  t.match(ladder.text, /INVITE -+>.*\n.*<-+ INVITE/)
  const decision = await read('/decision')
  t.match(decision, { decision: { admitted: true, revisions: { trunk: 1 } }, attempts: [{ sequence: 1 }], price: null })
  t.match(decision.words, [
    'Admitted, for at most 3600 s.',
    'Check concurrency passed: trunk "Explained" has room.',
    /^Attempt 1: sip:192\.0\.2\.1 over udp at 192\.0\.2\.1:5060: answered with 200 after \d+ ms\.$/,
    'Warning 13520: <Say> has no text.',
    'Ended as completed by the caller side, SIP 200.',
  ])
  const media = await read('/media')
  t.same(
    media.legs.map((leg: { leg_id: string; samples: { stats: { mos: number } }[] }) => [
      leg.leg_id,
      ...leg.samples.map(sample => sample.stats.mos),
    ]),
    [
      ['a', 4, 4.1, 4.2],
      ['b', 4, 4.1, 4.2],
    ],
  )
  const rows = Array.from({ length: 2000 }, (_, at) => ({ leg_id: 'a', at: String(at), stats: '{}' }))
  const [thin] = seriesOf(rows)
  t.same([thin?.samples.length, thin?.samples[0]?.at, thin?.samples.at(-1)?.at], [720, '0', '1999'])

  const stranger = await w.ask('GET', '/v1/calls/CA00000000000000000000000000000000')
  t.match([stranger.status, stranger.body.code], [404, 'not_found'])
  const rival = asTenant(w, await addTenant(w.state, w.settings.master_key, []))
  const restricted = await w.newKey({ subaccount_id: 'sub_other' })
  const paths = ['', '/ladder', '/decision', '/media', '/pcap', '/evidence']
  for (const path of paths) {
    t.match(
      await rival.ask('GET', `/v1/calls/${sid}${path}`),
      { status: 404, body: { code: 'not_found' } },
      `${path} of another customer`,
    )
    const hidden = await w.ask('GET', `/v1/calls/${sid}${path}`, { key: restricted })
    t.match(
      [hidden.status, hidden.body.code],
      [404, 'not_found'],
      `${path} does not exist for another subaccount's key`,
    )
  }
  await w.state.db.updateTable('trunk').set({ subaccount_id: 'sub_own' }).where('id', '=', trunk_id).execute()
  const own = await w.newKey({ subaccount_id: 'sub_own' })
  for (const path of paths)
    t.equal((await w.ask('GET', `/v1/calls/${sid}${path}`, { key: own })).status, 200, `${path} exists for its own key`)
  t.equal((await w.ask('GET', '/v1/audit', { key: own })).status, 403)
  const shared = await w.ask('GET', `/v1/calls/${sid}/evidence`, { key: own })
  t.same(Object.keys(shared.body.parts), ['call', 'ladder', 'decision', 'media'], 'nor is the trail among its evidence')
  const ids = async (query: string) =>
    (await w.ask('GET', `/v1/calls?${query}`)).body.data.map((call: { id: string }) => call.id)
  t.same(await ids(`trunk_id=${trunk_id}&status=completed&from=2342010000001&to=%2B2348030000001`), [sid])
  t.same(await ids('to=2342010000001'), [])
  t.same(await ids(`since=${encodeURIComponent(iso(w.clock.now() - HOUR_MS))}`), [sid])
  t.same(await ids(`before=${encodeURIComponent(iso(w.clock.now() - HOUR_MS))}`), [])
  for (const query of ['cursor=x', 'since=yesterday', 'status=gone', 'from=+x', 'limit=0', 'nothing=1'])
    t.match((await w.ask('GET', `/v1/calls?${query}`)).status, 422, query)
})

t.test('with an external drachtio-server the ladder reports that no messages are available', async t => {
  const w = await controlPlane(t, { clock: standingClock(), drachtio: { host: '127.0.0.1', port: 9022 } })
  const sid = await ranCall(w, {})
  const { body } = await w.ask('GET', `/v1/calls/${sid}/ladder`)
  t.match(body, { messages: [], unavailable: /embedded edge.*not available with an external drachtio-server/ })
  t.equal(body.text, body.unavailable)
})

t.test('the markup check reports errors with their line and rule', async t => {
  const w = await controlPlane(t)
  const ask = (body: object) => w.ask('POST', '/v1/markup/check', { body })
  t.match(await ask({ markup: '<Response><Say>Hello</Say></Response>' }), {
    status: 200,
    body: { ok: true, advice: [] },
  })
  const wrong = await ask({ markup: '<Response>\n  <Sya>Hello</Sya>\n</Response>' })
  t.match(wrong.body, { advice: [{ line: 2, rule: 'unknown_element', detail: /Sya/ }] })
  t.match((await ask({ markup: '<Response' })).body, { ok: false, advice: [{ level: 'error', rule: 'syntax' }] })
  t.match((await ask({ markup: 7 })).body, { code: 'validation_failed', errors: [{ pointer: '/markup' }] })
  const long = await ask({ markup: 'x'.repeat(100_001) })
  t.match(long.body, { code: 'validation_failed' })
})

t.test('recordings are listed, downloaded whole and in part, and deleted', async t => {
  const w = await controlPlane(t)
  const call = await ranCall(w, { seconds: 2 })
  const sids = [await addRecording(w, call), await addRecording(w, call), await addRecording(w, call)]
  const seen: string[] = []
  let cursor = ''
  do {
    const { body } = await w.ask('GET', `/v1/recordings?limit=2&call_id=${call}${cursor}`)
    seen.push(...body.data.map((row: { id: string }) => row.id))
    cursor = body.next_cursor ? `&cursor=${body.next_cursor}` : ''
  } while (cursor !== '')
  t.same([...seen].sort(), [...sids].sort(), 'the pages have each recording once')
  const sid = seen[0] ?? ''
  const path = `/v1/recordings/${sid}.wav`
  const whole = await fetch(`${w.base_url}${path}`, { headers: { Authorization: `Bearer ${w.key}` } })
  const audio = Buffer.from(await whole.arrayBuffer())
  t.match([whole.status, whole.headers.get('content-type')], [200, 'audio/wav'])
  t.same(audio, WAV)
  const part = await fetch(`${w.base_url}${path}`, {
    headers: { Authorization: `Bearer ${w.key}`, Range: 'bytes=4-7' },
  })
  t.match([part.status, part.headers.get('content-range')], [206, `bytes 4-7/${WAV.length}`])
  t.same(Buffer.from(await part.arrayBuffer()), WAV.subarray(4, 8))
  const beyond = await w.ask('GET', path, { headers: { Range: 'bytes=99999-' } })
  t.equal(beyond.status, 416)
  const head = await fetch(`${w.base_url}${path}`, { method: 'HEAD', headers: { Authorization: `Bearer ${w.key}` } })
  t.match([head.status, head.headers.get('content-length')], [200, String(WAV.length)])
  t.match((await w.ask('GET', `/v1/calls/${call}`)).body.recordings.length, 3)

  const restricted = await w.newKey({ subaccount_id: 'sub_other' })
  t.equal((await w.ask('GET', path, { key: restricted })).status, 404)
  t.same((await w.ask('GET', '/v1/recordings', { key: restricted })).body.data, [])
  t.equal((await w.ask('DELETE', `/v1/recordings/${sid}`)).status, 204)
  t.equal((await w.ask('DELETE', `/v1/recordings/${sid}`)).status, 404)
  t.equal((await w.ask('GET', path)).status, 404)
  t.equal((await w.ask('GET', '/v1/recordings')).body.data.length, 2)
  const running = await addRecording(w, call, 'in-progress')
  t.match((await w.ask('DELETE', `/v1/recordings/${running}`)).body, { code: 'state_conflict' })
  t.equal((await w.ask('GET', `/v1/recordings/${running}.wav`)).status, 404)
  t.equal((await w.ask('GET', '/v1/recordings?cursor=x')).status, 422)
})

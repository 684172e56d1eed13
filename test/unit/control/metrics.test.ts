import t from 'tap'
import { mediaFigures } from '../../../control/v1/trunk-metrics.ts'
import { controlPlane, freshKey, openSandbox } from '../../support/control-plane.ts'

const leg = (packets_received: number, more: object = {}) => ({ packets_received, packets_lost: 0, ...more })
const call = (media: object | null, duration_seconds = 10) => ({
  media: media === null ? null : JSON.stringify(media),
  duration_seconds,
})

t.test('media figures count calls by what their legs heard', async t => {
  const figures = mediaFigures([
    call({
      a: leg(500, { packets_lost: 10, jitter_ms: 4, mos: 4.2 }),
      b: leg(490, { jitter_ms: 6, mos: 4.4 }),
      mode: 'relay',
    }),
    call({ a: leg(500), b: leg(0), mode: 'transcode' }),
    call({ a: leg(500), b: leg(0), mode: 'relay' }, 2),
    call({ a: leg(0), b: leg(0), mode: 'relay' }),
    call({ a: null, b: leg(300), mode: null }),
    call(null),
  ])
  t.match(figures, {
    no_media_calls: 1,
    one_way_calls: 1,
    transcoded_calls: 1,
    jitter_ms: 5,
    mos: 4.3,
    packet_loss_pct: '0.43',
    unavailable_reason: null,
  })
  t.match(mediaFigures([]), {
    mos: null,
    jitter_ms: null,
    packet_loss_pct: null,
    unavailable_reason: /No answered call/,
  })
})

t.test('trunk metrics are those of the calls of the window', async t => {
  const w = await controlPlane(t)
  const made = await w.ask('POST', '/v1/trunks', {
    headers: { 'Idempotency-Key': freshKey() },
    body: {
      name: 'Measured',
      direction: 'both',
      auth_mode: 'ip_allow_list',
      sources: [],
      targets: [],
      codecs: ['PCMA'],
      media_security: 'rtp',
      require_tls: false,
      source_validation: 'relaxed',
    },
  })
  const trunk_id = made.body.trunk.id
  const path = `/v1/trunks/${trunk_id}/metrics`
  t.match((await w.ask('GET', path)).body, {
    attempts: 0,
    asr_7d_pct: null,
    acd_seconds: null,
    acd_reason: /answered/,
    pdd_reason: /rung/,
    window_hours: 24,
  })
  const cdr = async (hours_ago: number, changes: object) => {
    const at = new Date(Date.now() - hours_ago * 3_600_000).toISOString()
    await w.state.db
      .insertInto('cdr')
      .values({
        call_sid: `CA${Math.random()}`,
        project_id: w.demo.project_id,
        trunk_id,
        carrier_id: null,
        origin: 'trunk',
        direction: 'outbound',
        from_number: '+2342010000001',
        to_number: '+2348030000001',
        status: 'completed',
        sip_code: 200,
        reason: null,
        ended_by: 'caller',
        started_at: at,
        answered_at: at,
        ended_at: at,
        duration_seconds: 60,
        pdd_ms: 1000,
        media: null,
        ...changes,
      })
      .execute()
  }
  const failed = { answered_at: null, duration_seconds: 0, pdd_ms: null }
  await cdr(0.5, {})
  await cdr(2, { duration_seconds: 31, pdd_ms: 2001 })
  await cdr(3, { ...failed, status: 'busy', sip_code: 486, reason: 'peer_busy' })
  await cdr(3, { ...failed, status: 'failed', sip_code: 503, reason: 'peer_failed' })
  await cdr(3, { ...failed, status: 'failed', sip_code: 503, reason: 'peer_failed' })
  await cdr(30, { ...failed, status: 'failed', sip_code: 404, reason: 'no_route' })
  await cdr(1, { origin: 'test' })
  const day = (await w.ask('GET', `${path}?window=24h`)).body
  t.match(day, { attempts: 5, answered: 2, failed: 3, acd_seconds: 46, pdd_ms: 1501, asr_7d_pct: '33.3' })
  t.same(day.top_failures, [
    { calls: 2, platform_reason: 'peer_failed', share_pct: '66.7', sip_code: 503 },
    { calls: 1, platform_reason: 'peer_busy', share_pct: '33.3', sip_code: 486 },
  ])
  t.match((await w.ask('GET', `${path}?window=1h`)).body, { attempts: 1, answered: 1, failed: 0, top_failures: [] })
  t.equal((await w.ask('GET', `${path}?window=2h`)).status, 422)
})

t.test('call history is filtered and paged, and a call that nobody has begun to place ends at once', async t => {
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

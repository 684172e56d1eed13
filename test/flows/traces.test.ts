import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { traces } from '../../control/reconcilers/traces.ts'
import { iso } from '../../core/runtime/clock.ts'
import { recordExchange } from '../../core/state/calls/calls.ts'
import { writeCall } from '../../core/state/calls/running-calls.ts'
import { standingClock } from '../support/clock.ts'
import { controlPlane } from '../support/control-plane.ts'
import { ranCall, trunkOf } from '../support/ended-calls.ts'
import t from '../support/harness/index.ts'
import { until } from '../support/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: the test reads a few fields of OTLP's JSON.
type Span = any

/** A collector for OTLP over HTTP. `ill` makes it refuse requests. */
async function collector(t: { teardown(end: () => unknown): void }) {
  const spans: Span[] = []
  const seen = { ill: false, refused: 0, service: '' }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      if (seen.ill || request.url !== '/v1/traces') {
        seen.refused++
        response.writeHead(400).end()
        return
      }
      for (const one of JSON.parse(Buffer.concat(chunks).toString()).resourceSpans) {
        seen.service = one.resource.attributes.find((item: Span) => item.key === 'service.name').value.stringValue
        spans.push(...one.scopeSpans.flatMap((scope: Span) => scope.spans))
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, seen }
}

const valuesOf = (span: Span): Record<string, unknown> =>
  Object.fromEntries(
    span.attributes.map((item: Span) => [item.key, Object.values(item.value as Record<string, unknown>)[0]]),
  )
const ms = (nanoseconds: string): number => Number(BigInt(nanoseconds) / 1_000_000n)

t.test('an ended call is a trace: admission, INVITEs, fetches, media, under the id of the call', async t => {
  const w = await controlPlane(t)
  const otlp = await collector(t)
  const reconciler = traces(otlp.url)
  t.teardown(() => reconciler.stop?.())
  await ranCall(w, { seconds: 5, hours_ago: 1 })
  await reconciler.run(w)
  t.same(otlp.spans, [], 'what ended before anybody asked for traces is not sent')

  const trunk_id = await trunkOf(w, 'Traced')
  const decision_trace = JSON.stringify({ admitted: true, checks: [{ check: 'concurrency', result: 'passed' }] })
  const leg = { codec: 'PCMA', packets_received: 500, packets_lost: 2, jitter_ms: 2.5, mos: 4.4 }
  const sid = await ranCall(w, {
    call: { trunk_id, decision_trace },
    seconds: 10,
    media: { a: leg, b: leg, mode: 'relay' },
  })
  const begin_ms = Date.now() - 10_500
  await w.state.transaction(async trx => {
    const target = { target: 'sip:+2348030000001@198.51.100.7', transport: 'udp' }
    const first = { step: 'attempt', attempt: { ...target, sequence: 1 }, at_ms: begin_ms + 20 } as const
    const ended = { ended_at: iso(begin_ms + 120), sip_code: 503, result: 'failed' as const, reason: 'peer_failed' }
    const second = { step: 'attempt', attempt: { ...target, sequence: 2 }, at_ms: begin_ms + 130 } as const
    const answered = { ended_at: iso(begin_ms + 500), provisional_at: iso(begin_ms + 200), sip_code: 200 }
    await writeCall(trx, sid, [
      first,
      { step: 'attempt_changed', sequence: 1, changes: ended },
      second,
      { step: 'attempt_changed', sequence: 2, changes: { ...answered, result: 'answered' } },
    ])
  })
  const url = 'https://app.example.com/hook?token=secret'
  const exchange = { call_sid: sid, method: 'POST' as const, url, parameters: { From: '+2348030000001' } }
  await recordExchange(w.state.db, { ...exchange, reply: { ok: true, status: 200, duration_ms: 42 } }, begin_ms + 700)
  const child = await ranCall(w, { call: { trunk_id, parent_call_sid: sid }, cause: 'refused', sip_code: 486 })

  otlp.seen.ill = true
  await t.rejects(reconciler.run(w), 'a collector that refuses is a failed run')
  otlp.seen.ill = false
  await reconciler.run(w)
  t.ok(otlp.seen.refused > 0)
  t.equal(otlp.seen.service, 'strowger')
  const own = otlp.spans.filter(span => span.traceId === sid.slice(2))
  t.equal(own.length, otlp.spans.length, 'the call and what its script dialled are one trace')
  const root = own.find(span => span.name === 'call outbound' && !span.parentSpanId)
  t.match(valuesOf(root), { 'strowger.call_id': sid, 'strowger.trunk_id': trunk_id, 'strowger.status': 'completed' })
  t.match(
    root.events.map((event: Span) => event.name),
    ['answered'],
  )
  const below = own.filter(span => span.parentSpanId === root.spanId)
  t.same(below.map(span => span.name).sort(), [
    'INVITE',
    'INVITE',
    'POST document',
    'admission',
    'call outbound',
    'media',
  ])
  const [failed, answered] = below.filter(span => span.name === 'INVITE')
  t.match(valuesOf(failed), { 'sip.target': 'sip:198.51.100.7', 'sip.response_code': 503 })
  t.match(failed.status, { code: 2, message: 'peer_failed' })
  t.equal(ms(failed.endTimeUnixNano) - ms(failed.startTimeUnixNano), 100)
  t.match(valuesOf(answered), { 'strowger.result': 'answered', 'network.transport': 'udp' })
  const fetched = below.find(span => span.name === 'POST document')
  t.match(valuesOf(fetched), { 'url.full': 'https://app.example.com/hook', 'http.response.status_code': 200 })
  t.equal(ms(fetched.endTimeUnixNano) - ms(fetched.startTimeUnixNano), 42)
  const admission = below.find(span => span.name === 'admission')
  t.match(admission.events, [{ name: 'check concurrency' }])
  const media = below.find(span => span.name === 'media')
  t.match(valuesOf(media), { 'strowger.media.mode': 'relay', 'strowger.media.b.mos': 4.4 })
  t.equal(ms(media.endTimeUnixNano) - ms(media.startTimeUnixNano), 10_000)
  const dialled = below.find(span => span.name === 'call outbound')
  t.match(valuesOf(dialled), { 'strowger.call_id': child })
  t.notMatch(JSON.stringify(otlp.spans), /2348030000001|secret/, 'neither numbers of people nor queries are in it')

  const before = otlp.spans.length
  await reconciler.run(w)
  t.equal(otlp.spans.length, before, 'nothing is sent twice')
  const next = traces(otlp.url)
  t.teardown(() => next.stop?.())
  await next.run(w)
  const ids = new Set(otlp.spans.map(span => span.spanId))
  t.equal(ids.size, before, 'after a restart the last ones come again, as the same spans')
  const last = await ranCall(w, { seconds: 1 })
  await next.run(w)
  await until('the next call is there', () => otlp.spans.some(span => span.traceId === last.slice(2)))
})

t.test('a clock that is set back a day delays no trace', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const otlp = await collector(t)
  const reconciler = traces(otlp.url)
  t.teardown(() => reconciler.stop?.())
  await reconciler.run(w)
  clock.move(-86_400_000)
  const sid = await ranCall(w, { seconds: 1 })
  await reconciler.run(w)
  t.ok(otlp.spans.some(span => span.traceId === sid.slice(2)))
})

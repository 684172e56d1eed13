import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { MAIN } from '../../bench/up.ts'
import { onEmbedded } from '../support/edges.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { callee, MANY, receive, sipp } from '../support/sipp.ts'
import { until } from '../support/wait.ts'
import type { World } from '../support/world.ts'

// Tests of trunks with good and faulty peers. Each peer is the only target of its trunk.

const DESTINATION = '+2348030004711'

const answering = (sdp: (text: string) => string): readonly string[] => [
  receive.request('INVITE'),
  sdp(callee.respond(200, 'OK', { sdp: true })),
  receive.request('ACK'),
  receive.request('BYE'),
  callee.ok,
]
const atMediaPort = (text: string): string => text.replace('[rtp_port]', '[media_port]')
const g729Alone = (text: string): string =>
  atMediaPort(text)
    .replace('RTP/AVP 0 8 101', 'RTP/AVP 18')
    .replace(/^a=(rtpmap|fmtp):.*\n/gm, '')
    .replace('a=ptime', 'a=rtpmap:18 G729/8000\na=ptime')

let sources = 0
const trunkTo = (w: World, sip_uri: string, transport = 'udp'): Promise<string> =>
  w.addTrunk(`127.9.0.${++sources}`, {
    name: `Trunk ${sources}`,
    targets: [{ sip_uri, transport, priority: 10, weight: 100 }],
  })

/** Starts a test and follows it by sequence like the console. Returns the run with the last state of all checks. */
async function run(w: World, trunk_id: string, kind: string, destination: string | null = null) {
  const started = await w.manage(
    'POST',
    `/trunks/${trunk_id}/tests`,
    { kind, destination },
    { 'idempotency-key': `test-${Math.random()}` },
  )
  if (started.status !== 201) throw new Error(JSON.stringify(started.body))
  const checks = new Map<string, { state: string; summary: string; sequence: number }>()
  let after = 0
  const sequences: number[] = []
  const body = await until(`${kind} ends`, async () => {
    const { body } = await w.manage('GET', `/trunks/${trunk_id}/tests/${started.body.run.id}?after_sequence=${after}`)
    for (const check of body.run.checks) {
      checks.set(check.id, check)
      sequences.push(check.sequence)
    }
    after = body.next_sequence
    return body.run.result === 'running' ? undefined : body
  })
  return { ...body.run, detail: body, checks: [...checks.values()], sequences }
}

t.test('tests of trunks', async t => {
  const w = await sharedWorld(t)
  const peer = (options: { steps: readonly string[]; rtp_echo?: boolean; options_answer?: string }) =>
    sipp(t, { ...options, calls: MANY })
  const [good, mute, other, sick] = await Promise.all([
    peer({ steps: answering(atMediaPort), rtp_echo: true }),
    peer({ steps: answering(atMediaPort) }),
    peer({
      steps: answering(g729Alone),
      options_answer: g729Alone(callee.respond(200, 'OK', { sdp: true })),
    }),
    peer({
      steps: [receive.request('INVITE'), callee.respond(503, 'Service Unavailable'), receive.request('ACK')],
      options_answer: callee.respond(503, 'Service Unavailable'),
    }),
  ])
  const silent = createSocket('udp4')
  await new Promise<void>(resolve => silent.bind(0, '127.0.0.1', () => resolve()))
  t.teardown(() => silent.close())
  const pem = (name: string) => readFileSync(new URL(`../../../fixtures/tls/${name}`, import.meta.url))
  const tls = createServer({ cert: pem('expired.pem'), key: pem('leaf.key') })
  await new Promise<void>(resolve => tls.listen(0, '127.0.0.1', () => resolve()))
  t.teardown(() => tls.close())
  const at = (port: number): string => `sip:127.0.0.1:${port}`
  const trunks = {
    good: await trunkTo(w, at(good.port)),
    mute: await trunkTo(w, at(mute.port)),
    other: await trunkTo(w, at(other.port)),
    sick: await trunkTo(w, at(sick.port)),
    silent: await trunkTo(w, at(silent.address().port)),
    expired: await trunkTo(w, at((tls.address() as AddressInfo).port), 'tls'),
    lost: await trunkTo(w, 'sip:pbx.nowhere.invalid'),
  }

  t.test('every kind passes against a good peer, and reports its checks one by one', async t => {
    const configuration = await run(w, trunks.good, 'config_validation')
    t.equal(configuration.result, 'passed', JSON.stringify(configuration.checks, null, 1))
    t.match(configuration.finding, /set up well/)
    t.ok(configuration.checks.every((check: { state: string }) => check.state !== 'waiting'))
    const { sequences } = configuration
    t.same(
      sequences,
      [...sequences].sort((a: number, b: number) => a - b),
      'sequences only grow',
    )
    t.equal(new Set(sequences).size, sequences.length, 'no sequence is shown twice')
    const media = await run(w, trunks.good, 'rtp_reachability')
    t.equal(media.result, 'passed', JSON.stringify(media.checks, null, 1))
    t.match(media.call_summary, /Answered with PCMU/)
    const call = await run(w, trunks.good, 'test_call', DESTINATION)
    t.equal(call.result, 'passed', JSON.stringify(call.checks, null, 1))
    t.match(call.call_id, /^CA[0-9a-f]{32}$/)
    const shown = (await w.manage('GET', `/calls/${call.call_id}`)).body
    t.match(shown, { origin: 'test', status: 'completed', to: DESTINATION })
    const metrics = (await w.manage('GET', `/trunks/${trunks.good}/metrics`)).body
    t.equal(metrics.attempts, 0, 'test calls are left out of the metrics')
  })

  t.test('a test takes slots like any call, and ceilings refuse it', async t => {
    const ceiling = { concurrency: 0, cps: null, daily_spend_cap_minor: null, velocity_cap_minor: null }
    const rest = { max_call_duration_seconds: null, max_destination_rate_minor: null }
    const at = new Date().toISOString()
    await w.state.db
      .insertInto('project_ceiling')
      .values({ project_id: w.project_id, ...ceiling, ...rest, revision: 1, updated_at: at })
      .execute()
    const refused = await run(w, trunks.good, 'rtp_reachability')
    t.equal(refused.result, 'failed')
    t.match(refused.finding, /concurren/)
    const attempts = async () => (await w.state.db.selectFrom('call_attempt').select('id').execute()).length
    const before = await attempts()
    t.equal((await run(w, trunks.good, 'test_call', DESTINATION)).result, 'failed')
    t.equal(await attempts(), before, 'no INVITE left')
    await w.state.db.deleteFrom('project_ceiling').execute()
  })

  t.test(...onEmbedded('the finding names the fault of the peer and what to do'), async t => {
    const [dns, expired, silence, codecs, sick] = await Promise.all([
      run(w, trunks.lost, 'config_validation'),
      run(w, trunks.expired, 'config_validation'),
      run(w, trunks.silent, 'config_validation'),
      run(w, trunks.other, 'config_validation'),
      run(w, trunks.sick, 'config_validation'),
    ])
    t.match(dns.finding, /pbx\.nowhere\.invalid does not resolve.*Correct the host/)
    t.match(expired.finding, /certificate .*expired on \d{4}-.*Renew/)
    t.match(silence.finding, /did not answer OPTIONS.*firewall/)
    t.match(codecs.finding, /none of the trunk's codecs: it names G729.*Add a codec/)
    t.match(sick.finding, /OPTIONS with 503.*takes no calls/)
    for (const one of [dns, expired, silence, codecs, sick]) t.equal(one.result, 'failed')
  })

  t.test('a failed test call reports the cause, in every kind of test', async t => {
    const bad = ['mute', 'other', 'sick', 'silent', 'expired', 'lost'] as const
    const findings = async (kind: string, destination: string | null) => {
      const runs = await Promise.all(bad.map(name => run(w, trunks[name], kind, destination)))
      return runs.map((one, at) => `${bad[at]}: ${one.result}: ${one.finding}`).join('\n')
    }
    for (const [kind, destination] of [
      ['rtp_reachability', null],
      ['test_call', DESTINATION],
    ] as const) {
      const found = await findings(kind, destination)
      t.comment(found)
      t.match(found, /^mute: failed: .*One way only: \d+ packets went to 127\.0\.0\.1:\d+ and none came back/m)
      t.match(found, /^other: failed: .*agreed on no codec/m)
      t.match(found, /^sick: failed: .*503/m)
      t.match(found, /^silent: failed: .*(did not answer the call|could not be called)/m)
      t.match(found, /^expired: failed: .*certificate/m)
      t.match(found, /^lost: failed: .*does not resolve/m)
    }
  })

  t.test('a target is probed at once when its certificate verification changes', async t => {
    let heard = ''
    tls.on('secureConnection', socket => {
      // Probing keeps the connection to a target open. This target closes it.
      socket.on('data', data => {
        heard += data
        socket.destroy()
      })
    })
    const path = `/trunks/${trunks.expired}/termination-uris`
    const verify = async (tls_verification: 'off' | 'required') => {
      const { revision } = (await w.manage('GET', `/trunks/${trunks.expired}`)).body
      const [{ id, sip_uri, transport }] = (await w.manage('GET', path)).body.data
      const headers = { 'if-match': `"${revision}"`, 'idempotency-key': tls_verification }
      return w.manage('PATCH', `${path}/${id}`, { sip_uri, transport, tls_verification }, headers)
    }
    t.equal((await verify('off')).status, 200)
    t.ok(await until('it hears of us', () => heard.startsWith('OPTIONS ')))
    t.equal((await verify('required')).status, 200)
  })

  t.test('invalid requests are refused', async t => {
    const ask = (body: unknown) =>
      w.manage('POST', `/trunks/${trunks.good}/tests`, body, { 'idempotency-key': `bad-${Math.random()}` })
    t.match(await ask({ kind: 'test_call' }), { status: 422, body: { code: 'validation_failed' } })
    t.match(await ask({ kind: 'everything' }), { status: 422 })
    t.equal((await w.manage('GET', `/trunks/${trunks.good}/tests/ttr_none`)).status, 404)
  })

  t.test('a test does not call a closed destination', async t => {
    const now = Date.now()
    await w.state.db.updateTable('project').set({ open_risks: '["satellite"]' }).execute()
    await w.state.db
      .insertInto('containment')
      .values({
        id: '11111111-1111-4111-8111-111111111111',
        project_id: w.project_id,
        trunk_id: null,
        prefix: '88213',
        case_ref: 'SEC-1',
        reason_category: 'destination_risk',
        reason_detail: 'test',
        rejection_count: 0,
        source_alert_id: null,
        starts_at: new Date(now - 1000).toISOString(),
        expires_at: new Date(now + 600_000).toISOString(),
        released_at: null,
        released_by: null,
        notified_at: null,
        notified_event: null,
      })
      .execute()
    const refused = await run(w, trunks.good, 'test_call', '+88213555001')
    t.equal(refused.result, 'failed')
    t.match(refused.finding, /contained/i)
    t.equal(refused.call_id, null)
  })

  t.test('the history lists the runs, and the command line shows the same', async t => {
    const { body } = await w.manage('GET', `/trunks/${trunks.good}/tests`)
    t.equal(body.retention_days, 30)
    t.equal(body.data.length, 6)
    t.ok(body.data[0].started_at >= body.data[1].started_at)
    const told = await new Promise<string>(resolve => {
      const env = { PATH: process.env['PATH'] ?? '', ...w.place, STROWGER_SIP_PORT: String(w.sip.port) }
      execFile(process.execPath, [MAIN, 'test', trunks.good, 'config_validation'], { env }, (_error, stdout, stderr) =>
        resolve(stdout + stderr),
      )
    })
    t.match(told, /passed: The trunk is set up well/)
    t.match(told, /ok {2}.*answered OPTIONS with 200/)
  })
})

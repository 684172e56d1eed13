import { createSocket } from 'node:dgram'
import { wrongCounters } from '../../core/state/calls/counters.ts'
import type { UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import { type Agent, authorize, openAgent, place, sdpOf } from '../support/agents.ts'
import { wasDecided } from '../support/busy.ts'
import t from '../support/harness/index.ts'
import { freePort } from '../support/ports.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { trunkApplied } from '../support/world.ts'

// Routing and ceilings, as targets and peers see them. Each trunk has its own peer address.

const WORLD = '+2348030004711'

t.test('routing and ceilings over SIP', async t => {
  const w = await sharedWorld(t)
  const { db } = w.state
  const own = w.numbers[1] ?? ''
  let address = 50
  const rejecting = (status: number) => (call: UserAgentCall) => call.reject(status)
  const target = (agent: { ip: string; port: number }, over: object = {}) => ({
    ...{ sip_uri: `sip:${agent.ip}:${agent.port}`, transport: 'udp', priority: 10, weight: 100 },
    ...over,
  })
  const trunk = async (targets: readonly object[], over: object = {}) => {
    const ip = `127.0.0.${address++}`
    const id = await w.addTrunk(ip, { targets, ...over })
    const peer = await openAgent(t, { ip })
    return {
      id,
      peer,
      call: (called = WORLD) => place(peer, `sip:${called}@${w.sip.host}`, { to: w.sip, caller: own }),
    }
  }
  const attempts = async (status: number) => {
    const { sid } = await db.selectFrom('call').select('sid').orderBy('position', 'desc').executeTakeFirstOrThrow()
    const ended = await until('the CDR', () =>
      db.selectFrom('cdr').selectAll().where('call_sid', '=', sid).executeTakeFirst(),
    )
    t.equal(ended.sip_code, status)
    return db.selectFrom('call_attempt').selectAll().where('call_sid', '=', sid).orderBy('sequence').execute()
  }

  t.test('fails over after 503, 408, 430, 500, silence and a refused connection', async t => {
    const good = await openAgent(t, { ip: '127.0.0.41' })
    const silent = createSocket('udp4')
    await new Promise<void>(resolve => silent.bind(0, '127.0.0.42', resolve))
    t.teardown(() => silent.close())
    let heard = 0
    silent.on('message', bytes => {
      if (bytes.toString().startsWith('INVITE')) heard++
    })
    const bad = new Map<number, Agent>()
    for (const status of [503, 408, 430, 500])
      bad.set(status, await openAgent(t, { ip: '127.0.0.43', take: rejecting(status) }))
    const cases: [string, object, () => number][] = [
      ...[...bad].map(([status, agent]): [string, object, () => number] => [
        String(status),
        target(agent, { priority: 1 }),
        () => agent.invites.length,
      ]),
      [
        'a refused connection',
        target({ ip: '127.0.0.44', port: await freePort() }, { priority: 1, transport: 'tcp' }),
        () => 1,
      ],
      ['silence', target({ ip: '127.0.0.42', port: silent.address().port }, { priority: 1 }), () => Math.min(heard, 1)],
    ]
    for (const [name, first, reached] of cases) {
      const before = good.invites.length
      const { call } = await trunk([first, target(good, { priority: 2 })])
      const began_ms = performance.now()
      const placed = await call()
      t.equal(placed.status, 200, name)
      t.equal(good.invites.length, before + 1, `${name}: one INVITE to the second`)
      t.equal(reached(), 1, `${name}: one to the first`)
      if (name === 'silence') t.ok(performance.now() - began_ms > 4000, 'after Timer B of five seconds')
      placed.call.hangUp()
    }
  })

  t.test('does not fail over after 486, 600, 603, 404 or early media', async t => {
    const good = await openAgent(t, { ip: '127.0.0.41' })
    for (const status of [486, 600, 603, 404]) {
      const bad = await openAgent(t, { ip: '127.0.0.45', take: rejecting(status) })
      const { call } = await trunk([target(bad, { priority: 1 }), target(good, { priority: 2 })])
      t.equal((await call()).status, status)
      t.equal(bad.invites.length, 1)
      t.equal((await attempts(status)).length, 1)
    }
    const early = await openAgent(t, {
      ip: '127.0.0.46',
      take: call => call.ring(183, { body: sdpOf('127.0.0.46') }),
    })
    const { peer } = await trunk([target(early, { priority: 1 }), target(good, { priority: 2 })])
    // The target refuses once its early media has reached the caller.
    const progress = ({ status }: { readonly status: number }): void => {
      if (status === 183) early.invites[0]?.call.reject(503)
    }
    const placed = await place(peer, `sip:${WORLD}@${w.sip.host}`, { to: w.sip, caller: own, progress })
    t.equal(placed.status, 503, 'media was passed back')
    t.equal(good.invites.length, 0)
  })

  t.test(
    'a number of ours: unallocated 404, quarantined 410, suspended trunk 403, then trunk and subtrunk',
    async t => {
      const carrier_ip = '127.0.0.47'
      const carrier = await openAgent(t, { ip: carrier_ip })
      const now = new Date().toISOString()
      await db
        .insertInto('carrier')
        .values({
          ...{ id: 'car_1', name: 'Telco', codecs: '["PCMU"]', enabled: 1, sandbox: 0, revision: 1 },
          created_at: now,
        })
        .execute()
      await db
        .insertInto('carrier_source')
        .values({ id: 'cs_1', carrier_id: 'car_1', cidr: `${carrier_ip}/32` })
        .execute()
      const pbx = await openAgent(t, { ip: '127.0.0.48' })
      const { id } = await trunk([target(pbx)], { name: 'Inbound PBX' })
      const [first = '', second = '', third = ''] = w.numbers.slice(5)
      const number = async (e164: string, changes: object) => {
        await db.updateTable('number').set(changes).where('e164', '=', e164).execute()
        await db
          .updateTable('configuration')
          .set(eb => ({ revision: eb('revision', '+', 1) }))
          .execute()
      }
      await db
        .insertInto('subtrunk')
        .values({
          ...{ id: 'stk_1', project_id: w.project_id, trunk_id: id, name: 'Share', status: 'enabled' },
          ...{ concurrency: 0, cps: null, daily_spend_cap_minor: null, velocity_cap_minor: null },
          ...{ max_call_duration_seconds: null, max_destination_rate_minor: null },
          ...{ revision: 1, created_at: now, updated_at: now },
        })
        .execute()
      await number(first, { route_kind: 'trunk', route_id: id })
      await number(second, { route_kind: 'subtrunk', route_id: 'stk_1' })
      await number(third, { status: 'quarantined', project_id: null, route_kind: null, route_id: null })
      const calls = (called: string) =>
        place(carrier, `sip:${called}@${w.sip.host}`, { to: w.sip, caller: '+2348030001111' })
      const quarantined = await until('the carrier is known', async () => {
        const answer = await calls(third)
        return answer.status === 410 && answer
      })
      t.match(quarantined.response?.get('reason'), /number_quarantined/)
      t.ok(quarantined.response?.get('warning')?.includes(third), 'with the number')
      const unallocated = await calls('+2348039990000')
      t.equal(unallocated.status, 404)
      t.match(unallocated.response?.get('warning'), /2348039990000/)

      const delivered = await calls(first)
      t.equal(delivered.status, 200)
      t.match(pbx.invites[0]?.uri, new RegExp(`sip:\\${first}@127.0.0.48`))
      delivered.call.hangUp()
      const full = await calls(second)
      t.equal(full.status, 503, 'the ceiling of the subtrunk counts inwards, too')
      t.match(full.response?.get('reason'), /concurrency_exceeded/)
      t.notOk(full.response?.get('warning'), 'a carrier does not hear the limits of a customer')
      await db.updateTable('subtrunk').set({ concurrency: null }).execute()
      const shared = await calls(second)
      t.equal(shared.status, 200)
      shared.call.hangUp()
      const { trunk_id, reason } = await db
        .selectFrom('call')
        .selectAll()
        .where('to_number', '=', second)
        .orderBy('position', 'desc')
        .executeTakeFirstOrThrow()
      t.same([trunk_id, reason], [id, null])
      await db.updateTable('trunk').set({ status: 'disabled' }).where('id', '=', id).execute()
      const suspended = await calls(first)
      t.equal(suspended.status, 403)
      t.match(suspended.response?.get('reason'), /trunk_disabled/)
    },
  )

  t.test('a number whose trunk takes no call has a second route: another trunk, or an application', async t => {
    const down = await openAgent(t, { ip: '127.0.0.43', take: rejecting(503) })
    const busy = await openAgent(t, { ip: '127.0.0.45', take: rejecting(486) })
    const good = await openAgent(t, { ip: '127.0.0.41' })
    const first = await trunk([target(down)])
    const second = await trunk([target(good)], { name: 'Second site' })
    const engaged = await trunk([target(busy)])
    const web = await webServer(t, { '/voice': '<Response><Reject reason="busy"/></Response>' })
    const called = w.numbers[4] ?? ''
    await w.routeToApplication(called, `${web.url}/voice`)
    const { id, route_id: application = '' } = await db
      .selectFrom('number')
      .select(['id', 'route_id'])
      .where('e164', '=', called)
      .executeTakeFirstOrThrow()
    const route = async (trunk_id: string, fallback: object) => {
      const path = `/numbers/${id}`
      const { body: number } = await w.manage('GET', path)
      const body = { kind: 'trunk', id: trunk_id, fallback }
      const { body: routed } = await w.manage('PUT', `${path}/route`, body, { 'if-match': `"${number.revision}"` })
      t.match(routed.fallback, fallback)
      await until('the route is applied', () =>
        db
          .selectFrom('apply_report')
          .select('revision')
          .where('resource_id', '=', id)
          .where('revision', '=', routed.revision)
          .executeTakeFirst(),
      )
      return routed
    }

    const routed = await route(first.id, { kind: 'trunk', id: second.id })
    t.equal(routed.fallback.name, 'Second site')
    const placed = await engaged.call(called)
    t.equal(placed.status, 200)
    t.equal(good.invites.at(-1)?.uri.split('@')[0], `sip:${called}`)
    const { sid, trunk_id } = await db
      .selectFrom('call')
      .select(['sid', 'trunk_id'])
      .orderBy('position', 'desc')
      .executeTakeFirstOrThrow()
    t.equal(trunk_id, first.id, 'the call is one of its number’s route')
    const slots = () =>
      db.selectFrom('lease').select(['part', 'trunk_id', 'ended_at']).where('call_sid', '=', sid).execute()
    t.same(
      (await slots()).map(({ part, trunk_id }) => [part, trunk_id]).sort(),
      [
        ['fallback', second.id],
        ['inbound', first.id],
        ['on_net', engaged.id],
      ],
      'it holds a slot of each',
    )
    placed.call.hangUp()
    t.same(
      (await attempts(200)).map(({ result }) => result),
      ['refused', 'answered'],
    )
    await until('the slots are given back', async () => (await slots()).every(({ ended_at }) => ended_at !== null))

    const by_api = { To: called, From: own, InlineMarkup: '<Response><Hangup/></Response>' }
    const { body: created } = await w.voice('POST', '/Calls.json', by_api)
    t.equal((await w.ended(created.sid)).status, 'completed', 'a call of the API takes it, too')
    t.equal(good.invites.length, 2)

    const none = { concurrency: 0 }
    await db.updateTable('trunk').set(none).where('id', '=', second.id).execute()
    t.equal((await engaged.call(called)).status, 503, 'its ceilings hold')
    t.equal((await attempts(503)).length, 1)
    const refused = await db
      .selectFrom('call_event')
      .select('detail')
      .where('detail', 'like', '%second route, Second site, refuses%')
      .executeTakeFirst()
    t.match(refused?.detail, /concurren/i, 'the call says why')

    await route(first.id, { kind: 'voice_application', id: application })
    t.equal((await engaged.call(called)).status, 486, 'the application refuses it as its document says')
    t.equal((await web.seen('/voice')).fields.get('To'), called)
    await route(engaged.id, { kind: 'trunk', id: first.id })
    t.equal((await first.call(called)).status, 486, 'a busy target is an answer')
    t.equal(down.invites.length, 4)
  })

  t.test('refuses a stranger’s request inside a dialog, and the call continues', async t => {
    const pbx = await openAgent(t, { ip: '127.0.0.49' })
    const { call, peer } = await trunk([target(pbx)])
    const placed = await call()
    t.equal(placed.status, 200)
    const answered = pbx.invites[0]?.call
    const stolen = placed.call.dialog
    const response = placed.response
    const forged = await new Promise<string>((resolve, reject) => {
      const stranger = createSocket('udp4')
      t.teardown(() => stranger.close())
      stranger.once('message', bytes => resolve(bytes.toString()))
      stranger.once('error', reject)
      stranger.bind(0, '127.0.0.99', () => {
        const { port } = stranger.address()
        const bye = [
          `BYE sip:${w.sip.host}:${w.sip.port} SIP/2.0`,
          `Via: SIP/2.0/UDP 127.0.0.99:${port};branch=z9hG4bKstolen;rport`,
          `From: ${response?.get('from')}`,
          `To: ${response?.get('to')}`,
          `Call-ID: ${placed.call.call_id}`,
          `CSeq: ${(stolen?.nextSeq() ?? 0) + 1000} BYE`,
          'Max-Forwards: 70',
          'Content-Length: 0',
        ]
        stranger.send(`${bye.join('\r\n')}\r\n\r\n`, w.sip.port, w.sip.host)
      })
    })
    t.match(forged, /^SIP\/2\.0 403 /)
    t.match(forged, /Warning: 399 strowger ".*127\.0\.0\.99/)
    t.equal(answered?.state, 'answered', 'nobody has hung up')
    t.equal(peer.ua.calls.length, 1)
    // The forged BYE has taken neither the leg nor the CSeq numbers of its owner.
    placed.call.hangUp()
    await until('the call has ended', async () => {
      const open = await db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()
      return open.length === 0
    })
  })

  t.test(
    'digest: both algorithms and both passwords of a rotation, each response once, from allowed sources',
    async t => {
      const pbx = await openAgent(t, { ip: '127.0.0.86', take: rejecting(486) })
      const { body } = await w.manage(
        'POST',
        '/trunks',
        {
          ...{ name: 'Strict PBX', direction: 'both', auth_mode: 'digest', sources: ['127.0.0.87/32'] },
          ...{ codecs: ['PCMU'], media_security: 'rtp', require_tls: false, source_validation: 'strict' },
          targets: [target(pbx)],
        },
        { 'idempotency-key': 'strict' },
      )
      await trunkApplied(w.manage, body.trunk.id)
      const given = JSON.stringify(body)
      const username = /"username":"([^"]+)"/.exec(given)?.[1] ?? ''
      const password = /"(?:digest_)?password":"([^"]+)"/.exec(given)?.[1] ?? ''
      const phone = await openAgent(t, { ip: '127.0.0.87' })
      const elsewhere = await openAgent(t, { ip: '127.0.0.88' })
      const uri = `sip:${WORLD}@${body.trunk.signaling_fqdn}`
      const challenge = async (from = phone) => {
        const answer = await place(from, uri, { to: w.sip, caller: own })
        return answer.status === 401 && answer.response
      }
      type Algorithm = 'MD5' | 'SHA-256'
      const answers = async (algorithm: Algorithm, word = password, from = phone) => {
        const challenged = await until('a challenge', () => challenge(from))
        const facts = { username, password: word, uri, method: 'INVITE', algorithm }
        const sent: Record<string, string>[] = []
        const headers = (uses: number) => {
          const made = { Authorization: authorize(challenged, { ...facts, uses }) }
          sent.push(made)
          return made
        }
        const placed = await place(from, uri, { to: w.sip, caller: own, headers })
        return { headers: sent.at(-1) ?? {}, ...placed }
      }
      for (const algorithm of ['MD5', 'SHA-256'] as const) {
        t.equal((await answers(algorithm)).status, 486, `${algorithm}: its target was asked`)
        t.equal((await answers(algorithm, 'wrong')).status, 401)
      }
      const { headers } = await answers('SHA-256')
      const again = await place(phone, uri, { to: w.sip, caller: own, headers })
      t.equal(again.status, 401, 'an answer works once')
      t.match(again.response?.lines('www-authenticate')[0], /stale=true/)
      const foreign = await answers('MD5', password, elsewhere)
      t.equal(foreign.status, 403)
      t.match(foreign.response?.get('warning'), /127\.0\.0\.88/)

      const path = `/trunks/${body.trunk.id}/digest-credentials`
      const { body: listed, headers: before } = await w.manage('GET', path)
      const rotated = await w.manage(
        'POST',
        `${path}/${listed.data[0].id}/rotate`,
        {},
        {
          'idempotency-key': 'rotate',
          'if-match': before.get('etag') ?? '',
        },
      )
      t.equal(rotated.status, 201, JSON.stringify(rotated.body))
      await until('the new password works', async () => (await answers('MD5', rotated.body.password)).status === 486)
      t.equal((await answers('MD5')).status, 486, 'and the old one still')
      await db
        .updateTable('digest_credential')
        .set({ previous_retires_at: '2026-01-01T00:00:00.000Z' })
        .where('id', '=', listed.data[0].id)
        .execute()
      await db
        .updateTable('configuration')
        .set(eb => ({ revision: eb('revision', '+', 1) }))
        .execute()
      await until('the old one is retired', async () => (await answers('MD5')).status === 401)
      t.equal((await answers('SHA-256', rotated.body.password)).status, 486)
    },
  )

  t.test('shares follow the weights within 3 % over 200 calls', async t => {
    // The sequence is even from its start (docs/calls.md): a unit test draws a thousand.
    const CALLS = 200
    // A fast machine places them within a second, beside the calls of the test before.
    await db.updateTable('outbound_policy').set({ cps: 1000 }).where('project_id', '=', w.project_id).execute()
    const weights = [70, 20, 10]
    const targets = await Promise.all(
      weights.map((_, index) => openAgent(t, { ip: `127.0.0.${81 + index}`, take: rejecting(486) })),
    )
    const { call } = await trunk(
      targets.map((agent, index) => target(agent, { weight: weights[index] })),
      { limits: { concurrency: 1000, cps: 1000, max_call_duration_seconds: 3600 } },
    )
    let left = CALLS
    const wrong: number[] = []
    const line = async (): Promise<void> => {
      while (left-- > 0) {
        const { status } = await call()
        if (status !== 486) wrong.push(status)
      }
    }
    await Promise.all(Array.from({ length: 16 }, line))
    t.same(wrong, [], 'every call was busy')
    const counts = targets.map(agent => agent.invites.length)
    t.equal(
      counts.reduce((sum, count) => sum + count, 0),
      CALLS,
      'each once',
    )
    for (const [index, weight] of weights.entries())
      t.ok(
        Math.abs((counts[index] ?? 0) - (weight / 100) * CALLS) <= 0.03 * CALLS,
        `${counts[index]} of ${CALLS} for weight ${weight}`,
      )
  })

  t.test('a ceiling of N calls per second admits at most N in any sliding second', async t => {
    const N = 5
    const pbx = await openAgent(t, { ip: '127.0.0.85', take: rejecting(486) })
    const { id, call } = await trunk([target(pbx)])
    await db.updateTable('trunk').set({ cps: N }).where('id', '=', id).execute()
    const statuses: number[] = []
    const began_ms = performance.now()
    const pending: Promise<void>[] = []
    // A burst, then a steady load of twelve times N.
    for (let count = 0; count < 120; count++) {
      pending.push(
        call().then(({ status, response }) => {
          statuses.push(status)
          if (status === 503 && !/cps_exceeded/.test(response?.get('reason') ?? '')) statuses.push(-1)
        }),
      )
      if (count >= 3 * N) await new Promise(resolve => setTimeout(resolve, 1000 / (12 * N)))
    }
    await Promise.all(pending)
    const seconds = (performance.now() - began_ms) / 1000
    const leases = db.selectFrom('lease').innerJoin('call', 'call.sid', 'lease.call_sid')
    const taken = await leases.select(['lease.begun_at', 'call.reason']).where('lease.trunk_id', '=', id).execute()
    // A call that the platform admits after it has refused its caller reaches no target.
    const admitted = taken.filter(wasDecided)
    t.equal(admitted.length, pbx.invites.length, 'whoever was admitted was called')
    t.equal(statuses.filter(status => status === 486).length, admitted.length)
    t.equal(statuses.filter(status => status === 503).length, 120 - admitted.length, 'the others were told why')
    t.ok(admitted.length >= N && admitted.length <= N * (seconds + 1), `${admitted.length} in ${seconds} s`)
    // The decision is made between the time in the row and the INVITE's arrival at the target.
    const asked = admitted.map(({ begun_at }) => Date.parse(begun_at)).sort((a, b) => a - b)
    const called = pbx.invites.map(({ at_ms }) => performance.timeOrigin + at_ms).sort((a, b) => a - b)
    for (const [index, at] of asked.entries()) {
      const later = called[index + N]
      if (later !== undefined) t.ok(later - at > 990, `${N + 1} calls took ${Math.round(later - at)} ms`)
    }
    t.same(await wrongCounters(db), [])
  })
})

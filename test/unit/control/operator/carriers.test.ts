import { unseal } from '../../../../core/runtime/secrets.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import { readConfiguration } from '../../../../core/state/configuration/snapshot.ts'
import { INSTALLATION } from '../../../../core/state/people/audit.ts'
import { compileSnapshot, EMPTY_SNAPSHOT } from '../../../../signaling/trunks/snapshot.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { asks, change, operatorKey, trailOf } from '../../../support/operators.ts'

// Carriers by /operator/v1: what signaling nodes read afterwards, and what the installation's audit trail says.

const boundless = { burst: 1_000_000, per_second: 1_000_000 }
const w = await controlPlane(t, { rate_limit: boundless, bad_credentials: boundless })
const ask = asks(w, await operatorKey(w))
const now = new Date().toISOString()
await putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now })

const LAGOS = {
  name: 'Lagos Telecom',
  sources: ['203.0.113.0/25'],
  targets: [{ sip_uri: 'sip:198.51.100.7', transport: 'tcp' }, { sip_uri: 'sip:198.51.100.8' }],
  routes: [{ prefix: '234', cost_minor: 90 }, { prefix: 'any' }],
}
const configuration = async () =>
  (await w.state.db.selectFrom('configuration').select('revision').executeTakeFirstOrThrow()).revision
const own = async () => (await ask('GET', '/carriers')).body.data.filter((one: { sandbox: boolean }) => !one.sandbox)
const events = async () => (await trailOf(w, INSTALLATION)).map(({ action }) => action)

t.test('a carrier is added, changed, and removed; nodes see each change, and the trail has each', async t => {
  const before = await configuration()
  const { status, body } = await ask('POST', '/carriers', LAGOS)
  t.match(
    { status, body },
    {
      status: 201,
      body: {
        enabled: true,
        codecs: ['PCMU', 'PCMA'],
        targets: [
          { transport: 'tcp', priority: 1, weight: 100 },
          { transport: 'udp', priority: 2 },
        ],
        routes: [
          { prefix: 'any', cost_minor: 0 },
          { prefix: '+234', priority: 10, cost_minor: 90 },
        ],
        registration: null,
      },
    },
  )
  t.match(await ask('POST', '/carriers', LAGOS), { status: 409, body: { code: 'resource_exists' } })
  const path = `/carriers/${body.id}`
  const kept = body.targets[0].id
  const changes = { enabled: false, targets: LAGOS.targets.slice(0, 1), routes: [{ prefix: '234', cost_minor: 80 }] }
  const changed = await change(ask, 'PATCH', path, changes)
  t.match(changed, { status: 200, body: { enabled: false, routes: [{ prefix: '+234', cost_minor: 80 }] } })
  t.same(
    changed.body.targets.map(({ id }: { id: string }) => id),
    [kept],
    'an unchanged target keeps its id, because evidence of it stays valid',
  )
  t.equal(await configuration(), before + 2)
  t.match(await change(ask, 'PATCH', path, changes), { status: 200, body: { revision: changed.body.revision } })
  t.equal(await configuration(), before + 2, 'the same values again change nothing')
  t.match(await change(ask, 'DELETE', path, undefined), { status: 204 })
  t.same(await own(), [])
  t.match(await ask('GET', path), { status: 404 })
  t.same(await events(), ['carrier.created', 'carrier.updated', 'carrier.removed'])
})

t.test('a wrong carrier is refused with all its faults', async t => {
  const wrong: [object, string[]][] = [
    [{ ...LAGOS, colour: 'red' }, ['/colour']],
    [{ ...LAGOS, name: '', codecs: ['MP3'] }, ['/name', '/codecs/0']],
    [{ ...LAGOS, sources: ['203.0.113.0/24', 'nowhere', '300.0.0.1'] }, ['/sources/1', '/sources/2']],
    [{ ...LAGOS, targets: [{ sip_uri: 'sip:a\r\nVia: x' }] }, ['/targets/0/sip_uri']],
    [{ ...LAGOS, targets: [{ sip_uri: 'sip:a', tls_verification: 'pinned' }] }, ['/targets/0/tls_fingerprint']],
    [{ ...LAGOS, targets: [{ sip_uri: 'sip:a', tls_fingerprint: 'ab' }] }, ['/targets/0/tls_fingerprint']],
    [{ ...LAGOS, routes: [{ prefix: '+23x' }] }, ['/routes/0/prefix']],
    [{ name: 'No lists' }, ['/sources', '/targets', '/routes']],
  ]
  for (const [body, pointers] of wrong) {
    const answer = await ask('POST', '/carriers', body)
    t.equal(answer.status, 422, JSON.stringify(body))
    const named = answer.body.errors.map(({ pointer }: { pointer: string }) => pointer)
    t.same([...new Set(named)].sort(), [...pointers].sort(), JSON.stringify(body))
  }
  t.same(await own(), [])
})

t.test('a list of carriers is applied whole, and applied again it changes nothing', async t => {
  const apply = async (carriers: unknown[], options: { prune?: boolean; dry_run?: boolean } = {}) => {
    const { status, body } = await ask('POST', '/carriers/apply', { carriers, ...options })
    return status === 200 ? body.steps : body.errors
  }
  const before = await configuration()
  const shown = await apply([LAGOS], { dry_run: true })
  t.same(await own(), [], 'a dry run changes nothing')
  t.same(await apply([LAGOS]), shown, 'the steps match those of the dry run')
  t.equal(await configuration(), before + 1)
  t.same(await apply([LAGOS]), [])
  t.equal(await configuration(), before + 1)

  const routes = [{ prefix: '234', cost_minor: 80 }]
  const second = { ...LAGOS, enabled: false, codecs: ['PCMA'], targets: LAGOS.targets.slice(0, 1), routes }
  t.same(await apply([second]), [
    '~ carrier Lagos Telecom',
    '  ~ disabled',
    '  ~ codecs PCMU,PCMA to PCMA',
    '  - to sip:198.51.100.8 udp priority 2 weight 100',
    '  - route any priority 10 cost 0',
    '  - route 234 priority 10 cost 90',
    '  + route 234 priority 10 cost 80',
  ])
  t.match(await apply([LAGOS, LAGOS, { ...LAGOS, name: 'x', sources: ['nowhere'] }]), [
    { pointer: '/carriers/1/name' },
    { pointer: '/carriers/2/sources/0' },
  ])
  t.match(await own(), [{ enabled: false, codecs: ['PCMA'], revision: 2 }], 'a list with faults changes nothing')
  t.same(await apply([]), [], 'without prune, carriers outside the list remain')
  t.same(await apply([], { prune: true }), ['- carrier Lagos Telecom'])
  t.match(await ask('GET', '/carriers'), { body: { data: [{ sandbox: true }] } }, 'the sandbox carrier remains')
})

t.test('credentials answer a carrier’s challenges; their password is sealed and appears nowhere', async t => {
  const password = 'correct horse battery staple'
  const { body } = await ask('POST', '/carriers', { ...LAGOS, name: 'Abuja Telecom', redirects: 'listed' })
  t.match(body, { redirects: 'listed', digest_username: null })
  const path = `/carriers/${body.id}`
  const set = await change(ask, 'PUT', `${path}/credentials`, { username: 'strowger', password })
  t.match(set, { status: 200, body: { digest_username: 'strowger', registration: null } })
  const row = await w.state.db.selectFrom('carrier_credential').selectAll().executeTakeFirstOrThrow()
  t.equal(unseal(w.settings.master_key, row.password_sealed), password)
  const { snapshot } = compileSnapshot(await readConfiguration(w.state), EMPTY_SNAPSHOT)
  t.match(snapshot.carriers.get(body.id), {
    credentials: { username: 'strowger' },
    targets: LAGOS.targets.map(() => ({ credentials: { username: 'strowger' }, redirects: 'listed' })),
  })
  const removed = await change(ask, 'DELETE', `${path}/credentials`, undefined)
  t.match(removed, { status: 200, body: { digest_username: null } })
  t.same((await events()).slice(-2), ['carrier.credentials_changed', 'carrier.credentials_removed'])
  const trail = await w.state.db.selectFrom('audit_event').selectAll().execute()
  t.notMatch(JSON.stringify(trail) + set.text, new RegExp(password))
  await change(ask, 'DELETE', path, undefined)
})

t.test('a registration is set and ended; its password is sealed and appears nowhere', async t => {
  const password = 'correct horse battery staple'
  const { body } = await ask('POST', '/carriers', LAGOS)
  const path = `/carriers/${body.id}`
  const wish = { registrar: 'sip:registrar.lagos.example', username: 'strowger', password }
  const set = await change(ask, 'PUT', `${path}/registration`, wish)
  t.match(set, {
    status: 200,
    body: { registration: { contact_user: 'strowger', expires_seconds: 3600, transport: 'udp', state: 'untried' } },
  })
  const row = await w.state.db.selectFrom('carrier_registration').selectAll().executeTakeFirstOrThrow()
  t.equal(unseal(w.settings.master_key, row.password_sealed), password)
  const ended = await change(ask, 'DELETE', `${path}/registration`, undefined)
  t.match(ended, { status: 200, body: { registration: null } })
  t.same((await events()).slice(-2), ['carrier.registration_changed', 'carrier.registration_ended'])
  const trail = await w.state.db.selectFrom('audit_event').selectAll().execute()
  t.notMatch(JSON.stringify(trail) + set.text, new RegExp(password))
})

t.test('the sandbox carrier is not changed: the platform makes it at its start', async t => {
  const { body } = await ask('GET', '/carriers')
  const { id } = body.data.find(({ sandbox }: { sandbox: boolean }) => sandbox)
  t.match(await change(ask, 'PATCH', `/carriers/${id}`, { enabled: false }), { status: 409 })
  t.match(await change(ask, 'DELETE', `/carriers/${id}`, undefined), { status: 409 })
})

t.test('a source that takes in the world needs a confirmation', async t => {
  for (const [at, cidr] of ['0.0.0.0/0', '128.0.0.0/1', '::/0'].entries()) {
    const wide = { ...LAGOS, name: `Wide ${at}`, sources: [cidr] }
    const refused = { status: 422, body: { errors: [{ pointer: '/sources/0', message: /confirm_wide_sources/ }] } }
    t.match(await ask('POST', '/carriers', wide), refused, cidr)
    const listed = { errors: [{ pointer: '/carriers/0/sources/0' }] }
    t.match(await ask('POST', '/carriers/apply', { carriers: [wide] }), { status: 422, body: listed }, cidr)
  }
  const parts = { ...LAGOS, name: 'Parts', sources: ['10.0.0.0/9', '10.128.0.0/9', '203.0.113.7/32'] }
  t.match(
    await ask('POST', '/carriers', parts),
    { status: 422, body: { errors: [{ pointer: '/sources/2', message: /confirm_wide_sources/ }] } },
    'the world in small parts is the world',
  )
  const confirmed = { ...LAGOS, name: 'Whole', sources: ['0.0.0.0/0'], confirm_wide_sources: true }
  const { status, body } = await ask('POST', '/carriers', confirmed)
  t.equal(status, 201)
  t.equal((await change(ask, 'DELETE', `/carriers/${body.id}`, undefined)).status, 204)
})

t.test('the addresses of a carrier obey the rule for those of customers', async t => {
  for (const sip_uri of ['sip:198.51.100.7:99999', 'sip:198.51.100.7:0', 'sip:a">b', 'sip:x\u0001y', 'sip:x?Subject=y'])
    t.match(await ask('POST', '/carriers', { ...LAGOS, name: 'Bad', targets: [{ sip_uri }] }), { status: 422 }, sip_uri)
  const { body } = await ask('POST', '/carriers', { ...LAGOS, name: 'Good' })
  const registration = { registrar: 'sip:198.51.100.7:70000', username: 'a', password: 'b' }
  t.match(await change(ask, 'PUT', `/carriers/${body.id}/registration`, registration), {
    status: 422,
    body: { errors: [{ pointer: '/registrar' }] },
  })
  t.equal((await change(ask, 'DELETE', `/carriers/${body.id}`, undefined)).status, 204)
})

t.test('the media of a carrier stands by day and in total, also of days without an attempt', async t => {
  const { body } = await ask('POST', '/carriers', { ...LAGOS, name: 'Media Telecom', sources: ['203.0.113.128/25'] })
  const today_ms = Date.parse(now.slice(0, 10))
  const day = (back: number): string => new Date(today_ms - back * 86_400_000).toISOString().slice(0, 10)
  const step = (back: number, hour: number, mos: number | null, jitter_us: number) => ({
    ...{ carrier_id: body.id, step_ms: 3_600_000, begin_ms: Date.parse(day(back)) + hour * 3_600_000, legs: 2 },
    ...{ packets_received: 1000, packets_sent: 900, octets_received: 160_000, octets_sent: 144_000, packets_lost: 7 },
    ...{ packets_late: 1, packets_discarded: 2, packets_unsent: 0, jitter_legs: 2, jitter_us },
    ...{ mos_legs: mos === null ? 0 : 2, mos_thousandths: (mos ?? 0) * 2000 },
  })
  const steps = [step(2, 0, 4.4, 3000), step(2, 23, 4, 1000), step(1, 5, null, 500), step(40, 1, 1, 9000)]
  await w.state.db.insertInto('carrier_media_step').values(steps).execute()
  const { body: read } = await ask('GET', `/carriers/${body.id}/metrics?from=${day(60)}&to=${day(0)}`)
  t.match(read.days, [
    { day: day(2), attempts: 0, media: { legs: 4, packets_received: 2000, packets_lost: 14, jitter_ms: 1, mos: 4.2 } },
    { day: day(1), media: { legs: 2, packets_sent: 900, octets_sent: 144_000, jitter_ms: 0.25, mos: null } },
  ])
  t.equal(read.days.length, 2, 'steps of a day more than 30 days ago may be deleted, so they do not count')
  t.match(read.total.media, { legs: 6, octets_received: 480_000, packets_late: 3, packets_discarded: 6, mos: 4.2 })
  const { body: old } = await ask('GET', `/carriers/${body.id}/metrics?from=${day(60)}&to=${day(39)}`)
  t.equal(old.total.media, null)
})

import { readAddress } from '../../core/domain/sip/address.ts'
import t from '../support/harness/index.ts'
import { freeBlock } from '../support/ports.ts'
import { factOf, headerOf, utf8, type WorldCase, WorldPhones, worldCases } from '../support/sip-world.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { world } from '../support/world.ts'

// What devices of the world send (fixtures/sip/world), as the INVITE of a trunk and as the answer of a target.

const PEER = '127.0.3.2'
const TARGET = '127.0.3.3'
const AT_ONCE = 8

t.test('every message of the corpus is understood, and nothing in one calls the wrong number', async t => {
  const ports = await freeBlock(2048)
  const w = await world(t, { STROWGER_RTP_PORTS: `${ports.first}-${ports.last}` })
  const caller = w.numbers[1] ?? ''
  const phones = await WorldPhones.open(t, { platform: w.sip, caller }, [PEER, TARGET])
  await w.addTrunk(PEER, {
    targets: [{ sip_uri: `sip:${TARGET}:${phones.target.port}`, transport: 'udp', priority: 1, weight: 1 }],
    limits: { concurrency: 100, cps: 1000, max_call_duration_seconds: 3600 },
    source_validation: 'relaxed',
  })
  const work = worldCases().flatMap(one =>
    factOf(one, 'ways', 'invite answer')
      .split(' ')
      .map(way => ({ one, way })),
  )
  const next = async (): Promise<void> => {
    for (let job = work.shift(); job; job = work.shift()) {
      const { one, way } = job
      const [seen, wanted] = way === 'invite' ? await asInvite(phones, one, caller) : await asAnswer(phones, one)
      t.same(seen, wanted, `${one.name} as ${way}: ${factOf(one, 'odd')}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))

  t.test('a location, user-to-user information and diversions reach the application and the row', async t => {
    const web = await webServer(t, { '/voice': '<Response><Reject/></Response>' })
    const number = w.numbers[2] ?? ''
    await w.routeToApplication(number, `${web.url}/voice`)
    const [pidf] = worldCases().filter(({ name }) => name === 'body-pidf')
    const [diverted] = worldCases().filter(({ name }) => name === 'diversion-three')
    if (!pidf || !diverted) throw new Error('a case is missing')
    const { status } = await phones.invite({
      ...pidf,
      start: `INVITE sip:${number}@{host}:{port} SIP/2.0`,
      headers: [
        ...pidf.headers.map(line => line.replace('From: ', 'From: "Zo\u00c3\u00ab" ')),
        ...diverted.headers.filter(line => line.startsWith('Diversion')),
        'User-to-User: 56a390f3d2b7310023a2;encoding=hex',
      ],
    })
    t.equal(status, 603)
    const fields = web.requests[0]?.fields
    t.match(fields?.get('SipPidfLo'), /<presence xmlns="urn:ietf:params:xml:ns:pidf"/)
    t.equal(fields?.get('SipHeader_Geolocation'), '<cid:lagos@example.com>')
    t.equal(fields?.get('SipHeader_User-to-User'), '56a390f3d2b7310023a2;encoding=hex')
    t.equal(fields?.get('CallerName'), 'Zoë')
    t.equal(fields?.get('ForwardedFrom'), '+2348031112222')
    const { body } = await w.manage('GET', `/calls/${fields?.get('CallSid')}`)
    t.match(body, { first_diverter: '+2348031112222', last_diverter: '+2348031114444' })
    t.match(body.diverters, [
      { number: '+2348031114444', reason: 'unconditional', counter: 1, private: false },
      { number: '+2348031113333', reason: 'user-busy', counter: 2, private: true },
      { number: '+2348031112222', reason: 'no-answer', counter: 1, private: false },
    ])
  })

  t.test('a call of a foreign number plan is refused and shown to its owner', async t => {
    const call = await until('the call of number-context-foreign-domain', () =>
      w.state.db.selectFrom('call').selectAll().where('reason', '=', 'number_incomplete').executeTakeFirst(),
    )
    t.match(call, { status: 'failed', sip_code: 484, to_number: /^(2071234567|911)$/ })
  })
})

type Facts = Record<string, unknown>

async function asInvite(phones: WorldPhones, one: WorldCase, caller: string): Promise<[seen: Facts, wanted: Facts]> {
  const { status, final, invite, heard } = await phones.invite(one)
  const from = readAddress(utf8(headerOf(invite ?? '', 'From') ?? ''))
  const reached = factOf(one, 'status', '200') === '200'
  const has = (what: string): boolean => {
    const [, name = '', text = ''] = /^([^:]+): (.*)$/.exec(what) ?? []
    return utf8(headerOf(invite ?? '', name) ?? '').includes(text.replaceAll('{caller}', caller))
  }
  const seen: Facts = {
    status,
    called: invite === null ? null : (/^INVITE sips?:([^@;]*)/.exec(invite)?.[1] ?? null),
    caller: invite === null ? null : (from?.user ?? null),
    name: invite === null ? null : (from?.name ?? 'none'),
    heard,
    warning: (headerOf(final, 'Warning') ?? '').includes(factOf(one, 'warning')),
    target: (one.facts.get('target') ?? []).filter(what => !has(what)),
    lacks: (one.facts.get('target-lacks') ?? []).filter(text => utf8(invite ?? '').includes(text)),
  }
  const sound = reached && factOf(one, 'sound', 'both') === 'both'
  const wanted: Facts = {
    status: Number(factOf(one, 'status', '200')),
    called: reached ? factOf(one, 'called', '+2348030004711') : null,
    caller: reached ? factOf(one, 'caller', '{caller}').replace('{caller}', caller) : null,
    name: reached ? factOf(one, 'name', 'none') : null,
    heard: { target: sound, peer: sound },
    warning: true,
    target: [],
    lacks: [],
  }
  return [seen, wanted]
}

async function asAnswer(phones: WorldPhones, one: WorldCase): Promise<[seen: Facts, wanted: Facts]> {
  const { status, heard } = await phones.answer(one)
  const wanted = Number(factOf(one, 'answered', '200'))
  const sound = wanted === 200 && factOf(one, 'sound', 'both') === 'both'
  return [
    { status, heard },
    { status: wanted, heard: { target: sound, peer: sound } },
  ]
}

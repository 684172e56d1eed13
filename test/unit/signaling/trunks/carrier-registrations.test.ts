import pino from 'pino'
import type { SipResponse, SipStack } from '../../../../signaling/drachtio/types.ts'
import { CarrierRegistrations, contactHost } from '../../../../signaling/trunks/carrier-registrations.ts'
import { type CarrierConfig, EMPTY_SNAPSHOT, type Snapshot } from '../../../../signaling/trunks/snapshot.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import { addCarrier } from '../../../support/carriers.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

t.test("the Contact has our address of the registrar's family, or our first one for a host name", async t => {
  const both = ['192.0.2.1', '2001:db8::1']
  t.equal(contactHost(both, 'carrier.example'), '192.0.2.1')
  t.equal(contactHost(both, '198.51.100.7'), '192.0.2.1')
  t.equal(contactHost(both, '[2001:db8::7]'), '[2001:db8::1]')
  t.equal(contactHost([...both].reverse(), '198.51.100.7'), '192.0.2.1')
  t.equal(contactHost([...both].reverse(), 'carrier.example'), '[2001:db8::1]')
  t.equal(contactHost(['192.0.2.1'], '[2001:db8::7]'), '192.0.2.1', 'our only address, although of the other family')
})

/** Registrations that ask through `sip`, at these addresses of the registrar. */
async function registrationsOver(t: Test, sip: SipStack, proxies: readonly string[]) {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const facts = { name: 'Telco', codecs: ['PCMU' as const], sources: [], targets: [], routes: [] }
  const carrier_id = await addCarrier(w.state, facts, '2026-01-01T00:00:00.000Z')
  const clock = new ManualClock()
  const addresses = proxies.map(proxy => ({ proxy }))
  const registrations = new CarrierRegistrations({
    ...{ sip, clock, state: w.state, log: pino({ level: 'silent' }), node_id: 'n1', random: () => 0 },
    ...{ hosts: ['192.0.2.1'], sip_port: 5060, sips_port: 5061, data_dir: w.data_dir, unseal: sealed => sealed },
    peer_addresses: { find: async () => ({ kind: 'found', addresses }) as never },
  })
  const registered = (expires_seconds: number): Snapshot => {
    const registration = {
      ...{ registrar: 'sip:192.0.2.9', transport: 'udp', username: 'us', password_sealed: 'x', contact_user: 'us' },
      ...{ expires_seconds, tls: { mode: 'required' } },
    }
    const carrier = { id: carrier_id, enabled: true, registration } as unknown as CarrierConfig
    return { ...EMPTY_SNAPSHOT, carriers: new Map([[carrier_id, carrier]]) }
  }
  const stateOf = () =>
    w.state.db
      .selectFrom('carrier_registration_state')
      .select(['state', 'last_code', 'expires_at'])
      .where('carrier_id', '=', carrier_id)
      .executeTakeFirst()
  return { registrations, clock, registered, stateOf }
}

t.test('a registrar whose first address answers 503 is asked at its second', async t => {
  const status = { 'sip:192.0.2.9': 503, 'sip:192.0.2.10': 200, 'sip:192.0.2.11': 200 }
  const asked: string[] = []
  const sip = {
    connected: true,
    async request({ proxy, headers }: { proxy: keyof typeof status; headers: Record<string, string> }) {
      asked.push(proxy)
      const contact = `<sip:us@198.51.100.4>;expires=5, ${headers['Contact']};expires=60`
      const header = (name: string): string | null => (name === 'contact' ? contact : null)
      return { status: status[proxy], reason: '', header, source: { address: '192.0.2.9', port: 5060 } }
    },
  } as unknown as SipStack
  const w = await registrationsOver(t, sip, Object.keys(status))
  const settled = (state: string) =>
    until(`it is ${state}`, async () => {
      w.clock.advance(500)
      const row = await w.stateOf()
      return row?.state === state && row
    })
  w.registrations.apply(w.registered(60))
  const began_ms = w.clock.now()
  const now = await settled('registered')
  t.equal(now.last_code, 200)
  t.ok(Date.parse(now.expires_at ?? '') >= began_ms + 60_000, 'for as long as our own contact, not another of ours')
  t.same(asked.slice(0, 2), ['sip:192.0.2.9', 'sip:192.0.2.10'])
  t.notOk(asked.includes('sip:192.0.2.11'))
  for (const proxy of Object.keys(status)) status[proxy as keyof typeof status] = 503
  w.registrations.apply(w.registered(120))
  t.match(await settled('failed'), { last_code: 503 }, 'all of them answer 503')
  t.ok(asked.includes('sip:192.0.2.11'))
  await w.registrations.stop()
})

t.test('a changed registration is made once the registrar has removed the one before it', async t => {
  const REGISTRAR = { address: '192.0.2.9', port: 5060, transport: 'udp' } as const
  const asked: { expires: string; answer: () => void }[] = []
  const sip = {
    connected: true,
    request: ({ headers }: { headers: Record<string, string> }) =>
      new Promise<Partial<SipResponse>>(resolve => {
        const header = (name: string): string | null => (name === 'contact' ? `${headers['Contact']};expires=60` : null)
        const answer = (): void => resolve({ status: 200, reason: 'OK', header, source: REGISTRAR })
        asked.push({ expires: headers['Expires'] ?? '', answer })
      }),
  } as unknown as SipStack
  const { registrations, clock, registered, stateOf } = await registrationsOver(t, sip, ['sip:192.0.2.9'])
  /** Lets time pass until the registrar has been asked this often. */
  const untilAsked = (count: number) =>
    until(`${count} requests`, () => {
      clock.advance(500)
      return asked.length >= count
    })
  registrations.apply(registered(60))
  await untilAsked(1)
  asked[0]?.answer()
  await until('it is registered', async () => (await stateOf())?.state === 'registered')

  registrations.apply(registered(120))
  await untilAsked(2)
  // The state answers in order: what a registration writes before its request has been written then.
  for (let looks = 0; looks < 5; looks++) {
    clock.advance(10)
    await stateOf()
  }
  t.same(
    asked.map(({ expires }) => expires),
    ['60', '0'],
    'the new one waits',
  )
  asked[1]?.answer()
  await untilAsked(3)
  asked[2]?.answer()
  await until('it is registered again', async () => (await stateOf())?.state === 'registered')
  t.equal(asked[2]?.expires, '120')

  registrations.apply(registered(180))
  await untilAsked(5)
  t.same([asked[3]?.expires, asked[4]?.expires], ['0', '180'], 'one that does not answer is waited for 4 s')
  asked[4]?.answer()
  await until('the third is registered', async () => (await stateOf())?.state === 'registered')
  asked[3]?.answer()
  const stopped = registrations.stop()
  await untilAsked(6)
  t.equal((await stateOf())?.state, 'registered', 'the late removal of the one before does not change the state')
  asked[5]?.answer()
  await stopped
  t.equal((await stateOf())?.state, 'unregistered')
})

import pino from 'pino'
import type { SipResponse, SipStack } from '../../../../signaling/drachtio/types.ts'
import { CarrierRegistrations, contactHost } from '../../../../signaling/trunks/carrier-registrations.ts'
import { type CarrierConfig, EMPTY_SNAPSHOT, type Snapshot } from '../../../../signaling/trunks/snapshot.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import { addCarrier } from '../../../support/carriers.ts'
import t from '../../../support/harness/index.ts'
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

t.test('a changed registration is made once the registrar has removed the one before it', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const { db } = w.state
  const facts = { name: 'Telco', codecs: ['PCMU' as const], sources: [], targets: [], routes: [] }
  const carrier_id = await addCarrier(w.state, facts, '2026-01-01T00:00:00.000Z')
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
  const clock = new ManualClock()
  const registrations = new CarrierRegistrations({
    ...{ sip, clock, state: w.state, log: pino({ level: 'silent' }), node_id: 'n1', random: () => 0 },
    ...{ hosts: ['192.0.2.1'], sip_port: 5060, sips_port: 5061, data_dir: w.data_dir, unseal: sealed => sealed },
    peer_addresses: { find: async () => ({ kind: 'found', addresses: [{ proxy: 'sip:192.0.2.9' }] }) as never },
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
    db.selectFrom('carrier_registration_state').select('state').where('carrier_id', '=', carrier_id).executeTakeFirst()
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

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../../core/runtime/clock.ts'
import { loadConfig } from '../../../../core/runtime/config.ts'
import type { DnsSource } from '../../../../core/runtime/sip/locate.ts'
import { type AddressAsked, PeerAddresses } from '../../../../signaling/trunks/peer-addresses.ts'
import { type CarrierConfig, EMPTY_SNAPSHOT, type Snapshot } from '../../../../signaling/trunks/snapshot.ts'
import t, { type Test } from '../../../support/harness/index.ts'

const data_dir = mkdtempSync(join(tmpdir(), 'strowger-addresses-'))
t.teardown(() => rmSync(data_dir, { recursive: true, force: true }))

const carrier: CarrierConfig = {
  ...{ id: 'car_a', name: 'A', sandbox: false, enabled: true, revision: 1, codecs: ['PCMU'] },
  ...{ sources: ['9.9.9.0/24'], routes: [], registration: null, credentials: null },
  targets: [
    {
      id: 't',
      uri: 'sip:sbc.carrier.example:5080',
      transport: 'udp',
      priority: 1,
      weight: 1,
      enabled: true,
      tls: { mode: 'required' },
      credentials: null,
      redirects: 'off',
    },
  ],
}
const snapshot: Snapshot = { ...EMPTY_SNAPSHOT, carriers: new Map([[carrier.id, carrier]]) }

function addressesOf(
  t: Test,
  names: Record<string, string[]>,
  env: Record<string, string> = {},
  sip = { verifies_targets: true },
) {
  const missing = (): Promise<never> => Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' }))
  const dns: DnsSource = {
    naptr: missing,
    srv: missing,
    addresses: async name => (names[name] ? { hosts: names[name], ttl_seconds: 0 } : missing()),
  }
  const config = loadConfig({ STROWGER_DATA: data_dir, STROWGER_HOST: '8.8.4.4', ...env })
  const out = new PeerAddresses({ config, clock: systemClock, snapshot: () => snapshot, sip, dns })
  t.teardown(() => out.stop())
  return {
    out,
    async proxies(asked: AddressAsked) {
      const found = await out.find(asked)
      return found.kind === 'found' ? found.addresses.map(({ proxy }) => proxy) : found.detail
    },
  }
}

t.test('a name resolves to its allowed addresses in order, a failed one last, and the others are left out', async t => {
  const { out, proxies } = addressesOf(t, { 'pbx.example': ['10.0.0.1', '4.4.4.4', '9.9.9.9', '5.5.5.5'] })
  t.same(await proxies({ uri: 'sip:1@pbx.example:5070;transport=tcp' }), [
    'sip:4.4.4.4:5070;transport=tcp',
    'sip:5.5.5.5:5070;transport=tcp',
  ])
  out.failedAt({ protocol: 'tcp', host: '4.4.4.4', port: 5070 })
  t.same(await proxies({ uri: 'sip:1@pbx.example:5070;transport=tcp' }), [
    'sip:5.5.5.5:5070;transport=tcp',
    'sip:4.4.4.4:5070;transport=tcp',
  ])
  t.match(await proxies({ uri: 'sip:1@gone.example' }), /no record for it/)
})

t.test('a target without an address of our family fails with that reason; one with both is reached', async t => {
  const names = { 'six.example': ['2606:4700::1'], 'both.example': ['2606:4700::1', '4.4.4.4'] }
  const four = addressesOf(t, names)
  for (const uri of ['sip:1@six.example:5060', 'sip:1@six.example', 'sip:1@[2606:4700::1]'])
    t.match(await four.proxies({ uri }), /only addresses of a family \(IPv4 or IPv6\)/, uri)
  t.same(await four.proxies({ uri: 'sip:1@both.example:5060' }), ['sip:4.4.4.4:5060;transport=udp'])
  const six = addressesOf(t, names, { STROWGER_HOST: '2606:4700::8' })
  t.same(await six.proxies({ uri: 'sip:1@six.example:5060' }), ['sip:[2606:4700::1]:5060;transport=udp'])
  t.match(await six.proxies({ uri: 'sip:1@4.4.4.4' }), /only addresses of a family/)
})

t.test('no notation of an address bypasses the guard', async t => {
  const { proxies } = addressesOf(t, { 'inner.example': ['127.0.0.1'], 'carrier.example': ['9.9.9.9'] })
  for (const uri of [
    'sip:1@127.0.0.1',
    'sip:1@localhost',
    'sip:1@[::ffff:127.0.0.1]',
    'sip:1@[::1]',
    'sip:1@inner.example:5060',
    'sip:1@carrier.example:5060',
    'sip:1@9.9.9.1:5999;transport=tcp',
    'sips:1@9.9.9.1',
    'sip:1@8.8.4.4',
    'sip:1@8.8.4.4:8080;transport=tcp',
    'sip:1@0.0.0.0',
  ])
    t.type(await proxies({ uri }), 'string', uri)
  t.same(
    await proxies({ uri: 'sip:1@4.4.4.4;maddr=127.0.0.1' }),
    ['sip:4.4.4.4:5060;transport=udp'],
    'maddr is ignored',
  )
  t.type(await proxies({ uri: 'sip:1@127.0.0.1;maddr=4.4.4.4' }), 'string')
  t.same(await proxies({ uri: 'sips:1@4.4.4.4' }), ['sip:4.4.4.4:5061;transport=tls'])
})

t.test("the resolved addresses of a carrier's target stay reserved for the carrier when DNS fails", async t => {
  const names: Record<string, string[]> = { 'sbc.carrier.example': ['1.1.1.1'] }
  const { out, proxies } = addressesOf(t, names)
  await out.learn()
  t.match(await proxies({ uri: 'sip:1@1.1.1.1' }), /address of a carrier/)
  t.same(await proxies({ uri: 'sip:1@1.1.1.1', carrier_id: 'car_a' }), ['sip:1.1.1.1:5060;transport=udp'])
  delete names['sbc.carrier.example']
  await out.learn()
  t.match(await proxies({ uri: 'sip:1@1.1.1.1' }), /address of a carrier/)
})

t.test('a registered contact is reached over its connection, then at its own address on the same host', async t => {
  const { proxies } = addressesOf(t, {})
  const proven_host = '192.168.1.7'
  t.same(
    await proxies({
      uri: 'sip:u@192.168.1.7:5060;transport=tcp',
      proxy: 'sip:192.168.1.7:49152;transport=tcp',
      proven_host,
    }),
    ['sip:192.168.1.7:49152;transport=tcp', 'sip:192.168.1.7:5060;transport=tcp'],
  )
  t.same(
    await proxies({ uri: 'sip:u@10.0.0.9:5060', proxy: 'sip:192.168.1.7:49152;transport=tcp', proven_host }),
    ['sip:192.168.1.7:49152;transport=tcp'],
    'a Contact behind a NAT is not tried directly',
  )
  t.same(
    await proxies({ uri: 'sip:u@4.4.4.4', proxy: 'sip:192.168.1.7:4000;transport=ws', proven_host }),
    ['sip:192.168.1.7:4000;transport=ws'],
    'a browser is reached only over its WebSocket',
  )
})

t.test('a contact of another machine is reached by that machine, which no customer can name', async t => {
  const { proxies } = addressesOf(t, {})
  const proven_host = '192.168.1.7'
  const there = { uri: 'sip:u@4.4.4.4', proxy: 'sip:192.168.1.7:4000;transport=ws;x-machine=mac_b', proven_host }
  t.same(await proxies(there), ['sip:192.168.1.7:4000;transport=ws;x-machine=mac_b'])
  t.same(
    await proxies({ uri: 'sip:u@192.168.1.7:4000;transport=tcp;x-machine=mac_b', proven_host }),
    ['sip:192.168.1.7:4000;transport=tcp'],
    'the address that a customer gives says nothing of machines',
  )
  t.match(await proxies({ ...there, proven_host: '192.168.1.8' }), /private|not|address/, 'the guard is the same')
  const drachtio = addressesOf(t, {}, {}, { verifies_targets: false })
  t.same(await drachtio.proxies(there), ['sip:192.168.1.7:4000;transport=ws'], 'another SIP server knows no machines')
})

t.test('private peers are loopback addresses in development, otherwise only the listed ones', async t => {
  const development = addressesOf(t, {}, { STROWGER_HOST: '127.0.0.1' })
  t.same(await development.proxies({ uri: 'sip:1@127.0.0.2' }), ['sip:127.0.0.2:5060;transport=udp'])
  t.type(await development.proxies({ uri: 'sip:1@127.0.0.1:8080' }), 'string')
  const listed = addressesOf(t, {}, { STROWGER_ALLOW_PRIVATE_PEERS: '10.1.0.0/16, 192.168.7.7' })
  t.same(await listed.proxies({ uri: 'sip:1@10.1.2.3' }), ['sip:10.1.2.3:5060;transport=udp'])
  t.type(await listed.proxies({ uri: 'sip:1@10.2.2.3' }), 'string')
  const none = addressesOf(t, {}, { STROWGER_HOST: '127.0.0.1', STROWGER_ALLOW_PRIVATE_PEERS: 'none' })
  t.type(await none.proxies({ uri: 'sip:1@127.0.0.2' }), 'string')
  t.throws(() => addressesOf(t, {}, { STROWGER_ALLOW_PRIVATE_PEERS: 'lan' }), /STROWGER_ALLOW_PRIVATE_PEERS=lan/)
})

t.test('a server that cannot verify certificates reaches a TLS target only with verification off', async t => {
  const { out, proxies } = addressesOf(t, {}, {}, { verifies_targets: false })
  t.match(await out.find({ uri: 'sips:1@4.4.4.4' }), { kind: 'refused', unverified: true })
  t.match(await out.find({ uri: 'sips:1@10.0.0.1' }), { kind: 'refused', unverified: false })
  const pinned = { mode: 'pinned', fingerprint: 'ab'.repeat(32) } as const
  for (const tls of [undefined, { mode: 'required' }, pinned] as const) {
    t.match(
      await proxies({ uri: 'sip:1@4.4.4.4;transport=tls', tls }),
      /does not verify the certificate of 4.4.4.4:5061/,
    )
    t.match(await proxies({ uri: 'sips:1@4.4.4.4', tls }), /does not verify/)
  }
  const off = { mode: 'off' } as const
  t.same(await proxies({ uri: 'sip:1@4.4.4.4;transport=tls', tls: off }), ['sip:4.4.4.4:5061;transport=tls'])
  t.same(await proxies({ uri: 'sip:1@4.4.4.4' }), ['sip:4.4.4.4:5060;transport=udp'])
  const flow = { uri: 'sip:1@4.4.4.4:40000;transport=tls', proxy: 'sip:4.4.4.4:40000;transport=tls' }
  t.same(
    await proxies({ ...flow, proven_host: '4.4.4.4' }),
    ['sip:4.4.4.4:40000;transport=tls'],
    'a registered contact over its own connection',
  )
})

import { compileSources } from '../../../../../core/domain/identity/index.ts'
import { createAddressGuard } from '../../../../../core/domain/network/address-guard.ts'
import { addressRefusal, carrierFacts } from '../../../../../core/domain/network/peer-addresses.ts'
import t from '../../../../support/harness/index.ts'

const own = {
  hosts: compileSources(['8.8.4.4', '::1'].map(cidr => ({ cidr, selector_precedence: 0, owner: cidr }))),
  ports: new Set([5060, 8080]),
  rtp_ports: { first: 20_000, last: 20_099 },
  control: { host: '127.0.0.1', port: 61_000 },
}
const carriers = carrierFacts(own, [
  { id: 'car_a', sources: ['9.9.9.0/24', '2001:db8::/32'], endpoints: [{ host: '1.1.1.1', port: 5060 }] },
  { id: 'car_sandbox', sources: [], endpoints: [{ host: '8.8.4.4', port: 62_000 }] },
])
const refusal = (
  host: string,
  port = 5060,
  {
    allow = [],
    carrier_id = null,
    proven_host = null,
  }: {
    allow?: string[]
    carrier_id?: string | null
    proven_host?: string | null
  } = {},
) =>
  addressRefusal(
    { own, ...carriers, addresses: createAddressGuard(allow) },
    { host, port },
    { carrier_id, proven_host },
  )

t.test('a named address may be public, but never our own or a carrier’s', async t => {
  t.equal(refusal('4.4.4.4'), null)
  t.equal(refusal('8.8.4.4', 5070), null, 'another port of our host is somebody else’s')
  const refused: [string, string, number?][] = [
    ['a source of a carrier', '9.9.9.77'],
    ['a source of a carrier, as IPv6 writes it', '::ffff:9.9.9.77'],
    ['a target of a carrier', '1.1.1.1'],
    ['another port of a target of a carrier', '1.1.1.1', 5080],
    ['the sandbox carrier', '8.8.4.4', 62_000],
    ['our SIP', '8.8.4.4'],
    ['our HTTP', '8.8.4.4', 8080],
    ['our media', '8.8.4.4', 20_050],
    ['our SIP over IPv6', '0:0:0:0:0:0:0:1'],
    ['our control link', '127.0.0.1', 61_000],
    ['loopback', '127.0.0.1', 6379],
    ['every address of this machine', '0.0.0.0'],
    ['a private network', '192.168.1.1'],
    ['shared address space', '100.64.0.1'],
    ['link-local, where clouds keep their secrets', '169.254.169.254'],
    ['the host agent of a cloud', '168.63.129.16'],
    ['multicast', '224.0.0.1'],
    ['a name that nobody resolved', 'localhost'],
  ]
  for (const [what, host, port] of refused) t.type(refusal(host, port), 'string', what)
})

t.test('a listed private address may be reached, but never our own or a carrier’s', async t => {
  t.equal(refusal('10.1.2.3', 5060, { allow: ['10.0.0.0/8'] }), null)
  t.equal(refusal('127.0.0.2', 5060, { allow: ['loopback'] }), null)
  t.match(refusal('8.8.4.4', 5060, { allow: ['8.8.4.4'] }), /listener of this platform/)
  t.match(refusal('9.9.9.9', 5060, { allow: ['9.9.9.0/24'] }), /address of a carrier/)
  t.match(refusal('127.0.0.1', 61_000, { allow: ['loopback'] }), /listener of this platform/)
})

t.test('a registered contact may be private, and a carrier’s target is the operator’s choice', async t => {
  t.equal(refusal('192.168.1.1', 5060, { proven_host: '192.168.1.1' }), null)
  t.type(refusal('192.168.1.2', 5060, { proven_host: '192.168.1.1' }), 'string')
  t.match(refusal('9.9.9.9', 5060, { proven_host: '9.9.9.9' }), /address of a carrier/)
  t.equal(refusal('1.1.1.1', 5060, { carrier_id: 'car_a' }), null)
  t.equal(refusal('10.9.9.9', 5060, { carrier_id: 'car_a' }), null)
  t.equal(refusal('127.0.0.1', 61_000, { carrier_id: 'car_sandbox' }), null, 'it may have the link’s number for UDP')
  t.type(refusal('8.8.4.4', 5060, { carrier_id: 'car_a' }), 'string', 'ourselves are nobody’s target')
})

import { sharedAddresses } from '../../../../../core/domain/machines/addresses.ts'
import t from '../../../../support/harness/index.ts'

const machine = (id: string, hosts: readonly string[], edge = true) => ({ id, hosts, edge })

t.test('edges that have one address are named, with each address that they share', async t => {
  const [a, b] = [machine('mac_a', ['203.0.113.7', '2001:db8::7']), machine('mac_b', ['203.0.113.8'])]
  t.same(sharedAddresses([a, b]), [])
  t.same(sharedAddresses([machine('mac_c', ['203.0.113.9', '2001:db8::7']), b, a]), [
    'mac_a and mac_c have one address, 2001:db8::7',
  ])
  t.same(
    sharedAddresses([a, machine('mac_d', ['203.0.113.7'], false)]),
    [],
    'no telephone registers with the other one',
  )
})

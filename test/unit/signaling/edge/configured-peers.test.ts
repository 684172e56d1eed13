import { join } from 'node:path'
import Database from 'better-sqlite3'
import pino from 'pino'
import { compileSources } from '../../../../core/domain/identity/index.ts'
import { createAddressGuard } from '../../../../core/domain/network/address-guard.ts'
import { readEdgeFacts } from '../../../../core/state/configuration/edge-facts.ts'
import { insertSources } from '../../../../core/state/configuration/trunks.ts'
import { configuredPeers } from '../../../../signaling/edge/configured-peers.ts'
import { followConfiguration } from '../../../../signaling/follow-configuration.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import { addCarrier } from '../../../support/carriers.ts'
import t from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

const OWN = {
  hosts: compileSources([{ cidr: '198.51.100.1', selector_precedence: 0, owner: 'us' }]),
  ports: new Set([5060]),
  rtp_ports: { first: 20_000, last: 20_009 },
  control: null,
}

t.test('a change of sources that cannot be read is retried, and the failure is logged once', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const told: string[] = []
  const log = pino({ level: 'warn' }, { write: line => void told.push(JSON.parse(line).msg) })
  const peers = configuredPeers({ own: OWN, addresses: createAddressGuard(['loopback']) })
  const following = await followConfiguration(w.state, log, {
    read: async () => peers.learn(await readEdgeFacts(w.state.db)),
    failed: 'it cannot be read',
  })
  t.teardown(() => following.stop())
  t.notOk(peers.covers('192.0.2.7'))

  const file = new Database(join(w.data_dir, 'strowger.sqlite'))
  t.teardown(() => file.close())
  file.exec('alter table trunk_source rename to elsewhere')
  file
    .prepare(
      `insert into elsewhere (id, trunk_id, cidr, enabled, selector_precedence, created_at)
       values ('src_1', ?, '192.0.2.0/24', 1, 0, '2026-01-01T00:00:00.000Z')`,
    )
    .run(w.trunk_id)
  file.exec('update configuration set revision = revision + 1')
  await until('the failure is logged', () => told.length > 0)
  t.notOk(peers.covers('192.0.2.7'), 'the previous sources stay in force')

  file.exec('alter table elsewhere rename to trunk_source')
  await until('the new source counts', () => peers.covers('192.0.2.7'))
  t.equal(told.length, 1)

  const owner = { host: '192.0.2.7', port: 5060 }
  t.ok(peers.ownsAddress(owner))
  const change = async (sql: string, covered: boolean, why: string, owned = covered): Promise<void> => {
    file.exec(sql)
    file.exec('update configuration set revision = revision + 1')
    await until(why, () => peers.covers('192.0.2.7') === covered && peers.ownsAddress(owner) === owned)
    t.pass(why)
  }
  await change("update trunk set auth_mode = 'digest'", false, 'the ranges of a digest trunk configure no source')
  await change("update trunk set auth_mode = 'ip_allow_list'", true, 'those of a trunk identified by address do')
  await change(
    "update trunk_source set standing = 'pending_approval'",
    false,
    'a pending source does not count before approval',
  )
  await change(
    "update trunk_source set standing = 'name_only'",
    true,
    'a name-only source counts, without owning its address',
    false,
  )
  await change('update trunk_source set enabled = 0', false, 'a disabled source does not count')
})

t.test('a look for a change during a check resolves after a check of its own', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const change = () =>
    w.state.db
      .updateTable('configuration')
      .set(eb => ({ revision: eb('revision', '+', 1) }))
      .execute()
  let reads = 0
  let release = (): void => undefined
  const released = new Promise<void>(resolve => {
    release = resolve
  })
  const read = async () => {
    if (++reads === 2) await released
  }
  const following = await followConfiguration(w.state, pino({ level: 'silent' }), { read, failed: 'it cannot be read' })
  t.teardown(() => following.stop())
  await change()
  const first = following.look()
  await until('a check reads', () => reads === 2)
  await change()
  const second = following.look()
  release()
  await Promise.all([first, second])
  t.equal(reads, 3)
})

t.test("a carrier's sources own their addresses, and a trunk's sources only those that no carrier uses", async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const carrier = (name: string, cidr: string, sip_uri: string) => ({
    ...{ name, codecs: ['PCMU' as const], sources: [cidr], routes: [] },
    targets: [{ sip_uri, transport: 'udp' as const, priority: 1, weight: 1 }],
  })
  for (const facts of [
    carrier('A', '203.0.113.0/24', 'sip:203.0.113.9:5080'),
    carrier('B', '198.18.0.1/32', 'sip:192.0.2.20:5060'),
    carrier('C', '198.18.0.2/32', 'sip:203.0.113.10:5060'),
  ])
    await addCarrier(w.state, facts, '2026-01-01T00:00:00.000Z')
  await w.state.transaction(trx =>
    insertSources(trx, [
      {
        ...{ id: 'src_1', trunk_id: w.trunk_id, cidr: '192.0.2.0/24', enabled: 1, selector_precedence: 0 },
        ...{ created_at: '2026-01-01T00:00:00.000Z', standing: 'full' },
      },
    ]),
  )
  const peers = configuredPeers({ own: OWN, addresses: createAddressGuard([]) })
  peers.learn(await readEdgeFacts(w.state.db))
  const owns = (host: string, port = 5060) => peers.ownsAddress({ host, port })
  t.ok(owns('203.0.113.9', 5080), "a carrier's source that is also a target")
  t.ok(owns('203.0.113.11'))
  t.ok(owns('192.0.2.7'), "a trunk's source")
  t.notOk(owns('192.0.2.20'), "a trunk's source that is a carrier's target")
  t.notOk(owns('203.0.113.10'), "one carrier's source that is another carrier's target")
  t.notOk(owns('8.8.8.8'), 'an address without a source')
})

t.test('a peer cannot direct its dialog to a carrier, to us or to a private address', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  await addCarrier(
    w.state,
    { name: 'A', codecs: ['PCMU'], sources: ['203.0.113.0/24'], targets: [], routes: [] },
    '2026-01-01T00:00:00.000Z',
  )
  const peers = configuredPeers({ own: OWN, addresses: createAddressGuard([]) })
  peers.learn(await readEdgeFacts(w.state.db))
  const peer = { host: '192.0.2.7', port: 5060 }
  const led = (host: string, port = 5060, from = peer) => peers.mayReach({ host, port }, from)
  t.ok(led('8.8.8.8'))
  t.ok(led('192.0.2.7', 5080), 'its own address')
  t.notOk(led('203.0.113.9'), 'a carrier')
  t.notOk(led('198.51.100.1'), 'ourselves')
  t.notOk(led('198.51.100.1', 20_004), 'our media')
  t.notOk(led('10.0.0.1'), 'not public')
  t.notOk(led('127.0.0.1', 6379))
  t.ok(led('203.0.113.9', 5060, { host: '203.0.113.1', port: 5060 }), "a carrier's own network")
  t.ok(led('10.0.0.1', 5060, { host: '203.0.113.1', port: 5060 }))
  t.notOk(led('198.51.100.1', 5060, { host: '203.0.113.1', port: 5060 }))
})

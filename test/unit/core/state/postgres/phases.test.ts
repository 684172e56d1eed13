import { iso } from '../../../../../core/runtime/clock.ts'
import { executedMigrations } from '../../../../../core/state/maintenance/migrate.ts'
import type { AnyDb } from '../../../../../core/state/migrations/create-tables.ts'
import { MIGRATIONS } from '../../../../../core/state/migrations/index.ts'
import { putMachine } from '../../../../../core/state/nodes/machines.ts'
import { registerNode } from '../../../../../core/state/nodes/nodes.ts'
import { type Migrates, migrateShared } from '../../../../../core/state/postgres/shared-schema.ts'
import t from '../../../../support/harness/index.ts'
import { postgresState } from '../../../../support/postgres.ts'

// A release with an addition and a contract comes to a database on which machines of the release before run.

const NEXT = {
  ...MIGRATIONS,
  '9001-notes': { up: (db: AnyDb) => db.schema.alterTable('machine').addColumn('note', 'text').execute() },
  '9002-no-ports-contract': { up: (db: AnyDb) => db.schema.alterTable('machine').dropColumn('sip_port').execute() },
}
const CONTRACT = '9002-no-ports-contract'

t.test('a release adds while older machines run, and takes away when none does', async t => {
  const state = await postgresState()
  t.teardown(() => state.close())
  const { db, clock } = state
  const next = (migrates: Migrates) => migrateShared(db, 'voice', migrates, NEXT)
  const before = (migrates: Migrates) => migrateShared(db, 'voice', migrates)
  const has = async () => (await executedMigrations(db)).filter(name => !Object.hasOwn(MIGRATIONS, name)).sort()
  const machine = { host: '127.0.0.2', base_url: 'http://a', sip_port: 5060, settings: '{}' } as const
  const put = (id: string, version: string, contracts: string, takes_calls: 0 | 1 = 1) =>
    putMachine(db, { ...machine, id, version, contracts, takes_calls }, clock.now())
  const beat = (node: object) => db.updateTable('node').set(node).execute()

  await put('mac_a', '1.0.0', '1.0.0')
  await registerNode(db, { id: 'node_a', kind: 'signaling', machine_id: 'mac_a', boot_id: 'b', pid: 1 }, clock.now())

  await t.rejects(next('nobody'), { message: /it lacks 9001-notes\): run strowger migrate$/ })
  await t.rejects(next('contract'), { message: /lacks 9001-notes: run strowger migrate --expand first/ })
  const up = { lone_machine: 'mac_b' }
  await t.rejects(next(up), { message: /and mac_a run on it: run strowger migrate --expand/ })
  t.same(await has(), [], 'nothing was changed')

  await next('expand')
  t.same(await has(), ['9001-notes'])
  await before('nobody')
  await before({ lone_machine: 'mac_a' })
  await before('both')
  t.same(await has(), ['9001-notes'], 'the release before runs on it, and changes nothing')

  await next('nobody')
  await next(up)
  t.same(await has(), ['9001-notes'], 'a machine of the new release starts beside the older one')
  const refused = (why: RegExp) => t.rejects(next('contract'), { name: 'StartRefused', message: why })
  await refused(/^mac_a \(1\.0\.0\) runs an older version: upgrade each machine/)
  await t.rejects(next('both'), { message: /^mac_a \(1\.0\.0\) runs an older version/ })

  const silent = iso(clock.now() - 60_000)
  await beat({ heartbeat_at: silent, attested_at: iso(clock.now()) })
  await refused(/^mac_a/)
  t.pass('a machine that is cut off from the database comes back to it')
  await put('mac_a', '2.0.0', `2.0.0 ${CONTRACT}`)
  await beat({ heartbeat_at: iso(clock.now()), attested_at: null })
  await put('mac_c', '1.0.0', '', 0)
  await refused(/^mac_c \(1\.0\.0\) runs an older version/)
  t.pass('a machine that serves the APIs alone counts')
  await put('mac_c', '2.0.0', `2.0.0 ${CONTRACT}`, 0)
  // A machine that went back to the release before wrote its own version alone.
  await db.updateTable('machine').set({ version: '1.0.0' }).where('id', '=', 'mac_a').execute()
  await refused(/^mac_a \(1\.0\.0\)/)
  await db.updateTable('machine').set({ version: '2.0.0' }).where('id', '=', 'mac_a').execute()

  await next('contract')
  t.same(await has(), ['9001-notes', CONTRACT])
  await next('nobody')
  await t.rejects(before('nobody'), {
    message: new RegExp(`written by another version of Strowger \\(schema ${CONTRACT}`),
  })
})

t.test('a lone machine does both steps at its start, also right after its older version has run', async t => {
  const state = await postgresState()
  t.teardown(() => state.close())
  const { db, clock } = state
  const row = { host: '127.0.0.2', base_url: 'http://a', sip_port: 5060, settings: '{}', version: '1.0.0' } as const
  await putMachine(db, { ...row, id: 'mac_b', contracts: '1.0.0', takes_calls: 0 }, clock.now())
  await registerNode(db, { id: 'node_b', kind: 'signaling', machine_id: 'mac_b', boot_id: 'b', pid: 1 }, clock.now())
  await migrateShared(db, 'voice', { lone_machine: 'mac_b' }, NEXT)
  t.ok((await executedMigrations(db)).includes(CONTRACT))
})

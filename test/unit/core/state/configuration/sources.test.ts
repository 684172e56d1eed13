import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { rangeKey } from '../../../../../core/domain/identity/index.ts'
import { ensureDemo } from '../../../../../core/state/configuration/bootstrap.ts'
import { claimFacts, readsOfTaken } from '../../../../../core/state/configuration/sources.ts'
import { insertSources, insertTrunk, type TrunkRow } from '../../../../../core/state/configuration/trunks.ts'
import { openState, type State } from '../../../../../core/state/index.ts'

const now = '2026-11-21T12:00:00.000Z'
const options = { master_key: Buffer.alloc(32, 7), now, console_password: 'first password' }

function freshFolder(t: Test): string {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-sources-'))
  t.teardown(() => rmSync(data_dir, { recursive: true }))
  return data_dir
}

async function addTrunk(state: State, id: string, changes: Partial<TrunkRow>, cidrs: readonly string[]): Promise<void> {
  const row: TrunkRow = {
    ...{ id, project_id: 'prj_a', subaccount_id: null, name: id, status: 'enabled', direction: 'both' },
    ...{
      auth_mode: 'ip_allow_list',
      require_tls: 0,
      source_validation: 'relaxed',
      media_security: 'rtp',
      codecs: '[]',
    },
    ...{ concurrency: 1, cps: 1, max_call_duration_seconds: 60, signaling_fqdn: `${id}.sip.test`, revision: 1 },
    ...{ created_at: now, updated_at: now },
    ...changes,
  }
  const source = { trunk_id: id, enabled: 1, selector_precedence: 0, standing: 'full' } as const
  await state.transaction(async trx => {
    await insertTrunk(trx, row)
    await insertSources(
      trx,
      cidrs.map((cidr, at) => ({ ...source, id: `src_${id}_${at}`, cidr, created_at: `${now}${row.id}${at}` })),
    )
  })
}

t.test('a write is judged by the claims that it overlaps, however many there are', async t => {
  const state = await openState({ data_dir: freshFolder(t), local: true })
  t.teardown(() => state.close())
  const far = Array.from({ length: 2000 }, (_, at) => `20.0.${at >> 8}.${at & 255}/32`)
  await addTrunk(state, 'trk_far', {}, far)
  await addTrunk(state, 'trk_wide', {}, ['198.51.0.0/16', '2001:db8::/32'])
  await addTrunk(state, 'trk_narrow', { subaccount_id: 'sub_1' }, ['192.0.2.9/32', '192.0.2.10/32'])
  await addTrunk(state, 'trk_mine', { project_id: 'prj_me' }, ['203.0.113.0/24'])
  await addTrunk(state, 'trk_digest', { auth_mode: 'digest' }, ['100.64.0.0/24'])
  const me = { project_id: 'prj_me', subaccount_id: null }
  const taken = async (...cidrs: string[]) => {
    const sources = cidrs.map((cidr, at) => ({ id: `src_${at}`, cidr }))
    return (await claimFacts(state.db, me, sources, now)).taken.map(({ cidr }) => cidr)
  }
  t.same(await taken('198.51.100.7/32'), ['198.51.0.0/16'], 'around an address')
  t.same(await taken('2001:db8:1::/48'), ['2001:db8::/32'], 'around a range of IPv6')
  t.equal((await taken('192.0.2.0/24')).length, 1, 'one of those within is enough')
  t.same(await taken('192.0.2.11/32', '203.0.113.7/32', '100.64.0.0/24', 'nothing'), [])
  t.equal((await taken('20.0.0.0/16')).length, 1, 'one of two thousand')
  for (const { sql, parameters } of readsOfTaken('198.51.100.0/24', me, now)) {
    const plan = await explained(state, sql, parameters)
    t.match(plan[0], /USING (COVERING )?INDEX (trunk_source_range|digest_proof_address) /, plan.join('; '))
  }
})

async function explained(state: State, sql: string, parameters: readonly unknown[]): Promise<string[]> {
  const query = { sql: `explain query plan ${sql}`, parameters, query: { kind: 'RawNode' } }
  const { rows } = await state.db.executeQuery<{ detail: string }>(query as never)
  return rows.map(({ detail }) => detail)
}

t.test('sources of a database from before standings are judged in the order in which they came', async t => {
  const data_dir = freshFolder(t)
  const before = await openState({ data_dir })
  await ensureDemo(before, options)
  await before.db.insertInto('carrier_source').values({ id: 'c', carrier_id: 'car_x', cidr: '203.0.113.7' }).execute()
  await addTrunk(before, 'trk_1', { project_id: 'prj_a' }, ['192.0.2.0/24', '10.0.0.0/8', '2001:db8::/48'])
  await addTrunk(before, 'trk_2', { project_id: 'prj_b' }, ['192.0.2.9/32', '203.0.113.0/24', '2001:db8::1/128'])
  await addTrunk(before, 'trk_3', { project_id: 'prj_a' }, ['192.0.2.1/32', '10.0.0.1/32'])
  await addTrunk(before, 'trk_4', { project_id: 'prj_a', subaccount_id: 'sub_1' }, ['192.0.2.1/32', '10.0.0.2/32'])
  await before.close()
  const old = new Database(join(data_dir, 'strowger.sqlite'))
  old.exec(`drop index trunk_source_range; alter table trunk_source drop column range_key;
    alter table trunk_source drop column standing; drop table digest_proof;
    delete from kysely_migration where name in ('0041-source-standing', '0050-source-ranges')`)
  old.close()

  const state = await openState({ data_dir })
  t.teardown(() => state.close())
  const rows = await state.db.selectFrom('trunk_source').selectAll().orderBy('created_at').execute()
  t.strictSame(Object.fromEntries(rows.map(row => [`${row.trunk_id} ${row.cidr}`, row.standing])), {
    'trk_1 192.0.2.0/24': 'full',
    'trk_1 10.0.0.0/8': 'pending_approval',
    'trk_1 2001:db8::/48': 'full',
    'trk_2 192.0.2.9/32': 'name_only',
    'trk_2 203.0.113.0/24': 'name_only',
    'trk_2 2001:db8::1/128': 'name_only',
    'trk_3 192.0.2.1/32': 'full',
    'trk_3 10.0.0.1/32': 'full',
    'trk_4 192.0.2.1/32': 'name_only',
    'trk_4 10.0.0.2/32': 'full',
  })
  t.same(
    rows.map(row => row.range_key),
    rows.map(row => rangeKey(row.cidr)),
    'and are found by the keys of today',
  )
})

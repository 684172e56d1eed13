import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { claimFacts, readsOfTaken } from '../../../../../core/state/configuration/sources.ts'
import { insertSources, insertTrunk, type TrunkRow } from '../../../../../core/state/configuration/trunks.ts'
import { openState, type State } from '../../../../../core/state/index.ts'
import { inDialect } from '../../../../../core/state/port.ts'
import t, { type Test } from '../../../../support/harness/index.ts'
import { explained } from '../../../../support/query-plans.ts'

const now = '2026-11-21T12:00:00.000Z'

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
      transfers: 'consume',
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

t.test('judges a written source by all overlapping claims, however many exist', async t => {
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
  t.same(await taken('198.51.100.7/32'), ['198.51.0.0/16'], 'a range around an address')
  t.same(await taken('2001:db8:1::/48'), ['2001:db8::/32'], 'a range around an IPv6 range')
  t.equal((await taken('192.0.2.0/24')).length, 1, 'one range within it is enough')
  t.same(await taken('192.0.2.11/32', '203.0.113.7/32', '100.64.0.0/24', 'nothing'), [])
  t.equal((await taken('20.0.0.0/16')).length, 1, 'one of two thousand')
  for (const { sql, parameters } of inDialect(state.db, readsOfTaken('198.51.100.0/24', me, now))) {
    const plan = await explained(state.db, sql, parameters)
    t.match(plan[0], /USING (COVERING )?INDEX (trunk_source_range|digest_proof_address) /, plan.join('; '))
  }
})

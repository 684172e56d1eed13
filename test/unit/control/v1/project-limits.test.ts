import type { AnyDb } from '../../../../core/state/migrations/create-tables.ts'
import { type Answer, type ControlPlane, controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'

// How many trunks, subtrunks, applications and policies a project may have.

const TRUNK = {
  ...{ name: 'Head office', direction: 'both', auth_mode: 'ip_allow_list', sources: [], targets: [], codecs: ['PCMA'] },
  ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
}

const post = (w: ControlPlane, path: string, body: object): Promise<Answer> =>
  w.ask('POST', path, { body, headers: { 'Idempotency-Key': freshKey() } })

/** Copies a row of the project until it has `most` of them. Returns the id of the first copy. */
async function fill({ state, demo }: ControlPlane, table: string, most: number): Promise<string> {
  const db: AnyDb = state.db
  const rows = await db.selectFrom(table).selectAll().where('project_id', '=', demo.project_id).execute()
  const model = rows.find(row => row.system_default !== 1 && row.status !== 'released')
  const idOf = (at: number): string => `${model?.id}_${at}`
  const copies = Array.from({ length: most - rows.length }, (_, at) => ({ ...model, id: idOf(rows.length + at) }))
  for (let at = 0; at < copies.length; at += 200)
    await db
      .insertInto(table)
      .values(copies.slice(at, at + 200))
      .execute()
  return idOf(rows.length)
}

t.test(
  'a project has a bounded number of trunks, subtrunks, applications and policies; what goes makes room',
  async t => {
    const w = await controlPlane(t)
    const { id } = (await post(w, '/v1/trunks', TRUNK)).body.trunk
    const application = { name: 'Reception', voice_url: 'https://app.example.com/voice', voice_method: 'POST' }
    const policy = { name: 'Domestic', recording_channels: 2, recording_mode: 'off', recording_retention_days: 30 }
    const kinds: [table: string, path: string, body: object, most: number, gone: object][] = [
      ['trunk', '/v1/trunks', TRUNK, 200, { status: 'released' }],
      ['subtrunk', `/v1/trunks/${id}/subtrunks`, { name: 'Reseller', status: 'enabled' }, 1000, { status: 'released' }],
      ['voice_application', '/v1/voice/applications', application, 1000, { deleted_at: '2026-01-01T00:00:00.000Z' }],
      ['outbound_policy', '/v1/outbound-policies', policy, 1000, { status: 'archived' }],
    ]
    for (const [table, path, body, most, gone] of kinds) {
      t.equal((await post(w, path, body)).status, 201, table)
      const copy = await fill(w, table, most)
      const full = await post(w, path, body)
      t.match(full, { status: 409, body: { code: 'limit_reached' } }, table)
      t.match(full.body.detail, new RegExp(`has ${most} \\w+ and the limit is ${most}`))
      const db: AnyDb = w.state.db
      await db.updateTable(table).set(gone).where('id', '=', copy).execute()
      t.equal((await post(w, path, body)).status, 201, `${table}: there is room again`)
      t.equal((await post(w, path, body)).status, 409, `${table}: for one`)
    }
    const rival = asTenant(w, await addTenant(w.state, w.settings.master_key, []))
    t.equal((await post(rival, '/v1/trunks', TRUNK)).status, 201, 'another project has its own')
    await w.state.db.updateTable('project').set({ sandbox: 0 }).where('id', '=', w.demo.project_id).execute()
    t.equal((await post(w, '/v1/trunks', TRUNK)).status, 201, 'a live project has more trunks')
    await fill(w, 'trunk', 1001)
    t.match(await post(w, '/v1/trunks', TRUNK), { status: 409, body: { code: 'limit_reached' } })
  },
)

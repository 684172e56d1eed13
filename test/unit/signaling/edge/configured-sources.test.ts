import { join } from 'node:path'
import Database from 'better-sqlite3'
import pino from 'pino'
import t from 'tap'
import { watchSources } from '../../../../signaling/edge/configured-sources.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import { until } from '../../../support/wait.ts'

t.test('a change of sources that could not be read is read later, and told once', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const told: string[] = []
  const log = pino({ level: 'warn' }, { write: line => void told.push(JSON.parse(line).msg) })
  const sources = await watchSources(w.state, log)
  t.teardown(() => sources.stop())
  t.notOk(sources.covers('192.0.2.7'))

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
  await until('the failure is told', () => told.length > 0)
  t.notOk(sources.covers('192.0.2.7'), 'those of before count')

  file.exec('alter table elsewhere rename to trunk_source')
  await until('the new source counts', () => sources.covers('192.0.2.7'))
  t.equal(told.length, 1)
})

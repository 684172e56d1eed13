import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { insertCall } from '../../../core/state/calls/running-calls.ts'
import { DATABASE_FILE } from '../../../core/state/index.ts'
import { admissionWorld, NOW_MS } from '../../support/admission-world.ts'
import { runCommand } from '../../support/command-line.ts'
import t from '../../support/harness/index.ts'
import { plansOfWork } from '../../support/query-plans.ts'

t.test('`calls list` reads once what its calls cost', async t => {
  const { state, close, project_id } = await admissionWorld()
  t.teardown(close)
  const data_dir = t.testdir()
  writeFileSync(join(data_dir, DATABASE_FILE), '')
  const sid = `CA${'0'.repeat(32)}`
  const call = { sid, project_id, origin: 'rest', direction: 'outbound-api', status: 'queued' } as const
  const numbers = { from_number: '+2342010000001', to_number: '+2348031234567' }
  await insertCall(state.db, { ...call, ...numbers, queued_at: new Date(NOW_MS).toISOString() }, NOW_MS)
  const env = { STROWGER_DATA: data_dir, STROWGER_MASTER_KEY: '07'.repeat(32) }
  const plans = await plansOfWork(state, async noted => {
    t.match(await runCommand(['calls', 'list', '--json'], { env, state: noted }), { code: 0, stdout: sid })
  })
  t.equal(plans.filter(step => /\breservation\b/.test(step)).length, 1, plans.join('; '))
})

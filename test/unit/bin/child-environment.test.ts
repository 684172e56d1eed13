import { environmentOf, READ_BY } from '../../../bin/child-environment.ts'
import { VARIABLES } from '../../../core/runtime/config.ts'
import t from '../../support/harness/index.ts'

/** Variables that only the supervisor reads. */
const SUPERVISOR = ['users', 'confinement', 'print_secrets']

t.test('each variable goes to a process or belongs to the supervisor', async t => {
  const told = new Set(Object.values(READ_BY).flat())
  const untold = Object.keys(VARIABLES).filter(name => !told.has(name as keyof typeof VARIABLES))
  t.same(untold.sort(), [...SUPERVISOR].sort())
})

t.test('only signaling and control get the master key', async t => {
  const holders = Object.entries(READ_BY).filter(([, names]) => names.includes('master_key'))
  t.same(
    holders.map(([name]) => name),
    ['signaling', 'control'],
  )
})

t.test('a process inherits only the variables of its list', async t => {
  const env = { PATH: '/bin', STROWGER_LOG: 'info', STROWGER_MASTER_KEY: 'k', PASSWORD: 'p', HOME: undefined }
  t.same(environmentOf('edge', env), { PATH: '/bin', STROWGER_LOG: 'info' })
})

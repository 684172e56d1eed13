import t from 'tap'
import { environmentOf, TOLD } from '../../../bin/child-environment.ts'
import { VARIABLES } from '../../../core/runtime/config.ts'

/** The supervisor's own: it refuses or carries them out itself. */
const SUPERVISOR = ['users', 'print_secrets', 'database_url', 'redis_url']

t.test('each variable is told to a process, or is the supervisor’s own', async t => {
  const told = new Set(Object.values(TOLD).flat())
  const untold = Object.keys(VARIABLES).filter(name => !told.has(name as keyof typeof VARIABLES))
  t.same(untold.sort(), [...SUPERVISOR].sort())
})

t.test('the master key is told to signaling and control alone', async t => {
  const holders = Object.entries(TOLD).filter(([, names]) => names.includes('master_key'))
  t.same(
    holders.map(([name]) => name),
    ['signaling', 'control'],
  )
})

t.test('what no list names is not inherited', async t => {
  const env = { PATH: '/bin', STROWGER_LOG: 'info', STROWGER_MASTER_KEY: 'k', PASSWORD: 'p', HOME: undefined }
  t.same(environmentOf('edge', env), { PATH: '/bin', STROWGER_LOG: 'info' })
})

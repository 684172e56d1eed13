import { environmentOf, READ_BY } from '../../../bin/child-environment.ts'
import { localUrl, readSettings, VARIABLES } from '../../../core/runtime/config.ts'
import t from '../../support/harness/index.ts'

/** Variables that only the supervisor reads. */
const SUPERVISOR = ['users', 'confinement', 'print_secrets']

t.test('each variable goes to a process or belongs to the supervisor', async t => {
  const told = new Set(Object.values(READ_BY).flat())
  const untold = Object.keys(VARIABLES).filter(name => !told.has(name as keyof typeof VARIABLES))
  t.same(untold.sort(), [...SUPERVISOR].sort())
})

t.test('control and media agree on where the HTTP port listens', async t => {
  const proxied = { STROWGER_BASE_URL: 'https://voice.example.com', STROWGER_TRUSTED_PROXIES: 'loopback' }
  for (const more of [proxied, { STROWGER_HTTPS_PORT: '8443' }, {}])
    for (const name of ['control', 'media'] as const) {
      const env = { STROWGER_HOST: '192.0.2.1', ...more }
      t.equal(localUrl(readSettings(environmentOf(name, env))), localUrl(readSettings(env)), name)
    }
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
  const { MALLOC_MMAP_THRESHOLD_: _, ...inherited } = environmentOf('edge', env)
  t.same(inherited, { PATH: '/bin', STROWGER_LOG: 'info' })
})

t.test('large blocks stay out of the heap of each process, unless the operator decides otherwise', async t => {
  for (const name of Object.keys(READ_BY) as (keyof typeof READ_BY)[]) {
    t.match(environmentOf(name, {}), { MALLOC_MMAP_THRESHOLD_: '131072' }, name)
    t.match(environmentOf(name, { MALLOC_MMAP_THRESHOLD_: '65536' }), { MALLOC_MMAP_THRESHOLD_: '65536' }, name)
  }
})

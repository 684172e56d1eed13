import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TREE } from '../../../core/runtime/tree.ts'
import t from '../../support/harness/index.ts'

/** Commands that read the state, keep it as a whole, or run the platform. They change nothing that is audited. */
const OPEN_THE_STATE = new Set([
  ...['audit.ts', 'backup.ts', 'bootstrap.ts', 'call.ts', 'doctor.ts', 'drain.ts', 'export.ts', 'installation.ts'],
  ...[
    'ladder.ts',
    'migrate.ts',
    'operator-route.ts',
    'rate.ts',
    'reads.ts',
    'replay.ts',
    'say.ts',
    'short-ids.ts',
    'state.ts',
    'status.ts',
    'tail.ts',
    'test.ts',
    'top.ts',
    'up.ts',
    'upgrade.ts',
    'where-state-is.ts',
  ],
])

t.test('a command that changes what operators manage runs an endpoint of /operator/v1 and opens no state', async t => {
  const folder = join(TREE, 'bin')
  const names = readdirSync(folder).filter(name => name.endsWith('.ts') && !OPEN_THE_STATE.has(name))
  t.ok(names.includes('containments.ts') && names.includes('limits.ts') && names.includes('sources.ts'))
  for (const name of names) {
    const source = readFileSync(join(folder, name), 'utf8')
    // What several commands share is none.
    if (!source.includes('new Command(')) continue
    t.notMatch(source, /from '\.\.\/core\/state\/|from '\.\/state\.ts'/, `${name} opens the state`)
  }
})

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { guardTerminal } from '../../../bin/terminal.ts'
import { TREE } from '../../../core/runtime/tree.ts'
import { putEmptyDatabase } from '../../support/fresh-state.ts'
import t from '../../support/harness/index.ts'

t.test('what others wrote cannot steer the terminal of an operator', async t => {
  const written: unknown[] = []
  const double = { write: (chunk: unknown) => written.push(chunk) > 0, on: () => double }
  const stream = double as unknown as NodeJS.WriteStream
  guardTerminal(stream)
  stream.write('Shop\u001b]0;owned\u0007\n')
  stream.write('Ac\u200bme \u202elatnec\n')
  stream.write(Buffer.from('\u001b[H'))
  t.same(
    written,
    ['Shop\\u001b]0;owned\\u0007\n', 'Ac\\u200bme \\u202elatnec\n', Buffer.from('\u001b[H')],
    'only a command writes sequences, as bytes',
  )
})

t.test('a reader that has seen enough ends no command, and makes none print a fault', async t => {
  // The reader is gone long before the command has been loaded.
  const script = `{ ${TREE}/bin/strowger --help; echo "code $?" >&2; } | true`
  t.equal(spawnSync('sh', ['-c', script], { encoding: 'utf8' }).stderr, 'code 0\n')
})

t.test('nor an export', async t => {
  const data_dir = t.testdir()
  await putEmptyDatabase(data_dir)
  writeFileSync(join(data_dir, 'master.key'), `${'07'.repeat(32)}\n`)
  const script = `{ ${TREE}/bin/strowger export; echo "code $?" >&2; } | true`
  const env = { ...process.env, STROWGER_DATA: data_dir }
  t.equal(spawnSync('sh', ['-c', script], { encoding: 'utf8', env }).stderr, '0 calls\ncode 0\n')
})

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { strowger } from '../../support/child.ts'
import t from '../../support/harness/index.ts'

// The bundle that users run (scripts/bundle.mjs).

t.test('the stack trace of an unexpected error names lines of the TypeScript sources', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-bundle-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'file'), '')
  // A file cannot contain a folder. Nothing expects this error, so it ends the command with its trace.
  const { code, stderr } = await strowger(['bootstrap'], { STROWGER_DATA: join(folder, 'file/data') }).ended
  t.equal(code, 1)
  const frames = [...stderr.matchAll(/ at (\w+) \((?:[^():]+\/)?((?:core|bin)\/[\w/-]+\.ts):(\d+):(\d+)\)/g)]
  t.match(
    frames.map(([, , file]) => file),
    ['core/runtime/private-files.ts', 'core/runtime/config.ts', 'core/runtime/config.ts', 'bin/say.ts'],
  )
  const [, , file = '', line, column] = frames[0] ?? []
  t.match(
    readFileSync(file, 'utf8')
      .split('\n')
      [Number(line) - 1]?.slice(Number(column) - 1),
    /^mkdirSync\(/,
  )
  t.notMatch(stderr, 'build/bundle')
})

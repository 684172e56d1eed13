import { dirname } from 'node:path'
import t from '../../support/harness/index.ts'
import { mirrorFindings } from '../../tidy/mirror.ts'

const FILES = ['control/v1/trunks.ts', 'control/http/index.ts', 'core/state/audit.ts', 'test/tidy/mirror.ts']

const findings = (path: string, imports: readonly string[] = []) =>
  mirrorFindings([...FILES.map(file => ({ path: file, text: '', imports: [] })), { path, text: '', imports }], folder =>
    FILES.some(file => dirname(file) === folder || dirname(file).startsWith(`${folder}/`)),
  )

t.test('a unit test stands in the folder of the source that has its name', async t => {
  t.strictSame(findings('test/unit/control/v1/trunks.test.ts'), [])
  t.strictSame(findings('test/unit/control/trunks.test.ts'), [
    'test/unit/control/trunks.test.ts: control/v1/trunks.ts has this name: its tests stand in test/unit/control/v1',
  ])
  t.strictSame(findings('test/unit/control/audit.test.ts', ['core/state/audit.ts']), [
    'test/unit/control/audit.test.ts: core/state/audit.ts has this name: its tests stand in test/unit/core/state',
  ])
})

t.test('a unit test of another name is about its folder, which exists', async t => {
  t.strictSame(findings('test/unit/control/v1/two-tenants.test.ts'), [])
  t.strictSame(findings('test/unit/control/http.test.ts'), [])
  t.strictSame(findings('test/unit/tidy/mirror.test.ts'), [])
  t.strictSame(findings('test/unit/control/gone/x.test.ts'), [
    'test/unit/control/gone/x.test.ts: there is no folder control/gone',
  ])
})

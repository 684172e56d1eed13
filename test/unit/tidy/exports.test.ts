import { dirname, join, normalize } from 'node:path'
import t from '../../support/harness/index.ts'
import { exportFindings } from '../../tidy/exports.ts'

const resolve = (path: string, name: string) => normalize(join(dirname(path), name))
const findings = (files: Readonly<Record<string, string>>) =>
  exportFindings(
    Object.entries(files).map(([path, text]) => ({ path, text, imports: [] })),
    resolve,
  )
const unused = (path: string, name: string) => `${path}: nobody imports ${name}: export only what another file uses`

t.test('an export that no other file imports is a finding, whatever it declares', async t => {
  const text = [
    'export const a = 1',
    'export async function b() { return a }',
    'export interface C { a: 1 }',
    'export type D = C',
    'export class E {}',
    "export { x as f } from './x.ts'",
    'export default a',
  ].join('\n')
  t.strictSame(
    findings({ 'm.ts': text, 'x.ts': 'export const x = 1' }),
    ['a', 'b', 'C', 'D', 'E', 'f', 'default'].map(name => unused('m.ts', name)),
  )
})

t.test('each way to import a name uses it', async t => {
  const ways = {
    named: "import { type A, a as renamed } from './m.ts'",
    'over several lines': "import {\n  type A,\n  a,\n} from './m.ts'",
    'of types': "import type { A } from './m.ts'\nimport { a } from './m.ts'",
    reexport: "export { a, type A } from './m.ts'\n",
    namespace: "import * as m from './m.ts'\nm.a(m.A)",
    'namespace as a value': "import * as m from './m.ts'\nuse(m)",
    dynamic: "(await import('./m.ts')).a()\ntype T = import('./m.ts').A",
    'dynamic, taken apart': "const { a, A } = await import('./m.ts')",
  }
  for (const [way, text] of Object.entries(ways))
    t.strictSame(
      findings({ 'm.ts': 'export const a = 1\nexport type A = 1\n', 'user.ts': text }).filter(line => /^m/.test(line)),
      [],
      way,
    )
})

t.test('a file that forwards another forwards the names that its own users import, and no others', async t => {
  const files = { 'index.ts': "export * from './m.ts'\n", 'm.ts': 'export const a = 1\nexport const b = 2\n' }
  t.strictSame(findings({ ...files, 'user.ts': "import { a } from './index.ts'\n" }), [unused('m.ts', 'b')])
})

t.test('a namespace uses only the names that are read from it', async t => {
  const files = { 'm.ts': 'export const a = 1\nexport const b = 2\n' }
  t.strictSame(findings({ ...files, 'user.ts': "import * as m from './m.ts'\nm.a\n" }), [unused('m.ts', 'b')])
})

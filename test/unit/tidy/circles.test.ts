import { dirname, join, normalize } from 'node:path'
import t from '../../support/harness/index.ts'
import { circleFindings } from '../../tidy/circles.ts'

const resolve = (path: string, name: string) => normalize(join(dirname(path), name))
const findings = (files: Readonly<Record<string, string>>) =>
  circleFindings(
    Object.entries(files).map(([path, text]) => ({ path, text, imports: [] })),
    resolve,
  )
const ring = (folder: string, size: number) =>
  Object.fromEntries(
    Array.from({ length: size }, (_, at) => [
      `${folder}/f${at}.ts`,
      `import type { X } from './f${(at + 1) % size}.ts'\n`,
    ]),
  )

t.test('two files that import values of each other are a circle', async t => {
  t.strictSame(findings({ 'a.ts': "import { b } from './b.ts'\n", 'b.ts': "import { type C, a } from './a.ts'\n" }), [
    'circle of imports by value: a.ts, b.ts',
  ])
})

t.test('an import of types alone closes no circle by value', async t => {
  const back = ["import type { A } from './a.ts'\n", "import { type A, type B } from './a.ts'\n"]
  for (const text of back) t.strictSame(findings({ 'a.ts': "import { b } from './b.ts'\n", 'b.ts': text }), [])
})

t.test('a circle by type may have six files', async t => {
  t.strictSame(findings(ring('core', 6)), [])
  t.match(findings(ring('core', 7)), [/of more than 6 files, types and import\(\) counted: core\/f0.ts, /])
})

t.test('an import while the program runs counts in the size of a circle, and closes none by value', async t => {
  const later = { 'core/f6.ts': "const { x } = await import('./f0.ts')\n" }
  t.match(findings({ ...ring('core', 7), ...later }), [/of more than 6 files/])
  t.strictSame(findings({ 'a.ts': "import { b } from './b.ts'\n", 'b.ts': "await import('./a.ts')\n" }), [])
})

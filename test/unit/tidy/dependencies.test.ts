import t from '../../support/harness/index.ts'
import { dependencyFindings } from '../../tidy/dependencies.ts'
import type { Source } from '../../tidy/rules.ts'

// The tidy rule about packages: each one is imported, listed, and listed for its purpose.

const source = (path: string, ...imports: string[]): Source => ({ path, text: '', imports })
const findings = (
  dependencies: Record<string, string>,
  devDependencies: Record<string, string>,
  ...sources: Source[]
): string[] => dependencyFindings({ dependencies, devDependencies }, sources, () => '')

t.test('a package that nobody imports is found, and so are its types', async t => {
  t.same(findings({ koa: '1.0.0' }, { '@types/koa': '1.0.0' }, source('control/a.ts', 'node:fs', 'koa')), [])
  t.same(findings({ koa: '1.0.0' }, { '@types/koa': '1.0.0' }, source('control/a.ts', 'core/koa.ts')), [
    'package.json: nobody imports koa',
    'package.json: nobody imports @types/koa',
  ])
})

t.test('a package that a program starts by name is unused once the program no longer names it', async t => {
  t.same(findings({}, { typescript: '1.0.0' }), ['package.json: nobody imports typescript'])
})

t.test('an imported package is listed, by its own name', async t => {
  const files = source('core/a.ts', '@koa/router/lib', 'typebox/compile', 'core/b.ts', 'control/console/style.css')
  t.same(findings({ typebox: '1.0.0' }, {}, files), ['package.json: @koa/router is imported and not listed'])
})

t.test('the product imports no development dependency, and tests alone need no dependency of the product', async t => {
  t.same(findings({}, { koa: '1.0.0' }, source('control/a.ts', 'koa')), [
    'package.json: the product imports koa, a development dependency',
  ])
  t.same(findings({}, { preact: '1.0.0' }, source('control/console/a.tsx', 'preact')), [
    'package.json: the product imports preact, a development dependency',
  ])
  const script = "import { rolldown } from 'rolldown'"
  t.same(
    dependencyFindings({ dependencies: {}, devDependencies: { rolldown: '1.0.0' } }, [], () => script),
    ['package.json: `npm start` builds with rolldown, a development dependency'],
  )
  t.same(findings({ koa: '1.0.0' }, {}, source('test/a.ts', 'koa')), [
    'package.json: only tests and tools import koa: make it a development dependency',
  ])
})

import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from '../../support/harness/index.ts'

// Which packages the first set-up leaves in the tree (scripts/setup/needed-packages.mjs).

type Of = (manifest: object, lock: object) => string[]
const { packagesOfRunning, packagesOfBuilds } = (await import(
  pathToFileURL(resolve('scripts/setup/needed-packages.mjs')).href
)) as { packagesOfRunning: Of; packagesOfBuilds: Of }
const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
const given = [readJson('package.json'), readJson('package-lock.json')] as const

/**
 * Ajv has its names in code that it generates on request. The others are those that ws and the client of Redis load
 * where they are there.
 */
const NOT_LOADED = ['@node-rs/xxhash', 'ajv', 'ajv-formats', 'bufferutil', 'utf-8-validate']

t.test('the packages that go are not those that the bundle looks for, nor what holds one of them', async t => {
  const [running, builds] = [packagesOfRunning(...given), packagesOfBuilds(...given)]
  const texts = (readJson('build/bundle/files.json') as string[])
    .filter(name => name.startsWith('chunks/') && name.endsWith('.js'))
    .map(name => readFileSync(join('build/bundle', name), 'utf8'))
  const names = texts.flatMap(text =>
    [...text.matchAll(/(?:\brequire|Import|(?<!Promise)\.resolve)\(["`]([@\w][\w./@-]*)["`]\)/g)].map(
      ([, name = '']) => name,
    ),
  )
  const packages = new Set(
    names.filter(name => !isBuiltin(name)).map(name => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name),
  )
  t.ok(packages.has('better-sqlite3') && packages.has('pdfkit'), [...packages].join(' '))
  t.same([...packages].filter(name => !running.includes(`node_modules/${name}`)).sort(), NOT_LOADED)
  t.same(
    builds.filter(gone => running.some(kept => kept === gone || kept.startsWith(`${gone}/`))),
    [],
  )
  t.ok(['rolldown', 'lucide', 'kysely', 'typebox'].every(name => builds.includes(`node_modules/${name}`)))
})

t.test('a package that is needed by both stays, and a folder goes once', async t => {
  const packages = {
    'node_modules/pg': { dependencies: { shared: '1' } },
    'node_modules/shared': {},
    'node_modules/kysely': { dependencies: { shared: '1', own: '1' } },
    'node_modules/kysely/node_modules/own': {},
    'node_modules/typescript': { dev: true },
  }
  const of = [{ dependencies: { pg: '1', kysely: '1' } }, { packages }] as const
  t.same(packagesOfRunning(...of), ['node_modules/pg', 'node_modules/shared'])
  t.same(packagesOfBuilds(...of), ['node_modules/kysely'])
})

// Bundles the libraries that tests load most into build/node_modules. Node.js looks there first for what a file of
// build/ imports, so the output of tsc runs unchanged, and reads one file of a library instead of hundreds. The bundle
// that users run has its own copies (scripts/bundle.mjs).
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

process.chdir(join(dirname(fileURLToPath(import.meta.url)), '..'))
const TARGET = 'build/node_modules'

/** What sources and tests import of libraries with many files. None of them looks for files beside itself. */
const LIBRARIES = [
  '@koa/router',
  'ajv-formats',
  'ajv/dist/2020.js',
  'koa',
  'koa-body',
  'kysely',
  'libphonenumber-js/max',
  'pino',
  'prom-client',
  'rtp.js/packets',
  'rtp.js/utils',
  'saxes',
  'sip.js',
  'tcompare',
  'typebox',
  'typebox/compile',
  'ws',
]

/** The package of an import, and its path in the package as `exports` writes it. */
const partsOf = library => {
  const [, name, path] = /^((?:@[^/]+\/)?[^/]+)(\/.+)?$/.exec(library)
  return { name, path: `.${path ?? ''}` }
}
const entryOf = library => join(library.replace(/(?<=\/.*)\.js$/, ''), 'index')

/** The `exports` of a library whose files lie in the folder `whole`. */
const inWhole = value =>
  typeof value === 'string'
    ? value.replace('./', './whole/')
    : value && Object.fromEntries(Object.entries(value).map(([key, one]) => [key, inWhole(one)]))

/** A module that exports what a library exports to a module of ours: of CommonJS, what Node.js finds in it. */
async function moduleOf(library) {
  const names = Object.keys(await import(library)).filter(name => name !== 'module.exports')
  return `export { ${names.join(', ')} } from '${library}'\n`
}

const modules = new Map()
// The extension tells the bundler to import CommonJS as Node.js does.
for (const library of LIBRARIES) modules.set(resolve(`${entryOf(library)}.mjs`), await moduleOf(library))
const bundle = await rolldown({
  input: Object.fromEntries(LIBRARIES.map(library => [entryOf(library), resolve(`${entryOf(library)}.mjs`)])),
  platform: 'node',
  plugins: [
    {
      name: 'modules of the libraries',
      resolveId: id => (modules.has(id) ? id : null),
      load: id => modules.get(id) ?? null,
    },
  ],
  checks: { eval: false },
})
rmSync(TARGET, { recursive: true, force: true })
await bundle.write({
  dir: TARGET,
  format: 'esm',
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
  entryFileNames: '[name].mjs',
  chunkFileNames: '.chunks/[name]-[hash].mjs',
})
await bundle.close()
for (const name of new Set(LIBRARIES.map(library => partsOf(library).name))) {
  const mine = LIBRARIES.filter(library => partsOf(library).name === name)
  const exports = Object.fromEntries(
    mine.map(library => [partsOf(library).path, `./${entryOf(library).slice(name.length + 1)}.mjs`]),
  )
  const folder = join(TARGET, name)
  mkdirSync(folder, { recursive: true })
  // What else is imported of the library is read where it lies.
  symlinkSync(relative(folder, join('node_modules', name)), join(folder, 'whole'))
  const others = inWhole(
    JSON.parse(readFileSync(join(folder, 'whole/package.json'), 'utf8')).exports ?? { './*': './*' },
  )
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, exports: { ...others, ...exports } }))
}

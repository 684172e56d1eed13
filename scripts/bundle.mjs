// Bundles the TypeScript sources into build/bundle: one file for each process and thread, chunks that they share, and
// what V8 compiled of them. A bundle starts in a fraction of the time of a thousand small files. `npm start` and
// bin/strowger run it, and so do the tests that start a platform. The other tests run the output of tsc beside it
// (decision 0700).
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { LEFT_OUT } from './bundle/left-out.mjs'

process.chdir(join(dirname(fileURLToPath(import.meta.url)), '..'))
const TARGET = 'build/bundle'

const LOADER = 'load.cjs'

/** What runs as a process or a thread of its own. Each keeps its path, so that `builtModule` finds it. */
const ENTRIES = [
  'bin/main',
  'bin/prepare',
  'control/exports/thread',
  'control/mp3/thread',
  'control/process',
  'core/state/sqlite/worker',
  'media/files/audio-thread',
  'media/process',
  'signaling/edge/process',
  'signaling/process',
  'signaling/sandbox/process',
]

/** commander loads what starts programs, for commands that are programs of their own. We have none. */
const COMMANDS_START_NO_PROGRAM = {
  name: 'commands-start-no-program',
  resolveId: (id, importer) =>
    id === 'node:child_process' && importer?.includes('/node_modules/commander/') ? '\0no-programs' : undefined,
  load: id => (id === '\0no-programs' ? 'export default {}' : undefined),
}

/** The numbering plans of all countries take 1 MB of heap. Most commands and processes read no number. */
const NUMBERING_PLANS_AT_FIRST_USE = {
  name: 'numbering-plans-at-first-use',
  load(id) {
    if (!id.endsWith('/libphonenumber-js/metadata.max.json.js')) return undefined
    const text = readFileSync(id.replace(/\.js$/, ''), 'utf8')
    const names = Object.keys(JSON.parse(text))
    const getters = names.map(name => `get ${name}() { return all().${name} }`)
    return `let plans
      const all = () => (plans ??= JSON.parse(${JSON.stringify(text)}))
      export default { ${getters.join(', ')} }`
  },
}

/** prom-client loads OpenTelemetry, 60 files, for exemplars. We have none. */
const METRICS_NAME_NO_SPANS = {
  name: 'metrics-name-no-spans',
  resolveId: (id, importer) =>
    id === '@opentelemetry/api' && importer?.includes('/node_modules/prom-client/') ? '\0no-spans' : undefined,
  load: id => (id === '\0no-spans' ? 'export const trace = undefined' : undefined),
}

/** A platform that runs may still load chunks of the previous bundle. */
const KEPT_MS = 24 * 3600 * 1000

try {
  const bundle = await rolldown({
    input: Object.fromEntries(ENTRIES.map(entry => [entry, `${entry}.ts`])),
    platform: 'node',
    external: LEFT_OUT,
    plugins: [COMMANDS_START_NO_PROGRAM, METRICS_NAME_NO_SPANS, NUMBERING_PLANS_AT_FIRST_USE],
    transform: { define: { BUNDLE: JSON.stringify(TARGET) } },
    // depd, of koa, makes functions by eval.
    checks: { eval: false },
  })
  const { output } = await bundle.write({
    dir: TARGET,
    // V8 keeps compiled code of CommonJS alone in Node.js 20.
    format: 'cjs',
    sourcemap: true,
    // Traces need places. The texts would double the size of the bundle.
    sourcemapExcludeSources: true,
    // V8 reads the text of a file at each start and keeps it. Without comments and white space it is half as long; names
    // stay, and the map has the lines.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    entryFileNames: 'chunks/[name]-[hash].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
  })
  await bundle.close()
  const names = output.map(({ fileName }) => fileName)
  for (const name of names) if (name.endsWith('.js')) adapt(name)
  copyFileSync(`scripts/bundle/${LOADER}`, join(TARGET, LOADER))
  const entries = output.filter(({ isEntry }) => isEntry)
  names.push(LOADER, ...entries.map(begin), ...new Set(entries.map(kindOf)))
  names.sort()
  // What a release takes: the folder may hold files of earlier bundles.
  writeFileSync(join(TARGET, 'files.json'), `${JSON.stringify(names)}\n`)
  execFileSync(process.execPath, ['scripts/bundle/compile.cjs', TARGET], { stdio: ['ignore', 'ignore', 'inherit'] })
  removeOld(new Set(names))
} catch (error) {
  console.error(`bundle: the sources could not be bundled:\n${error instanceof Error ? error.message : error}`)
  process.exit(1)
}

/** Makes a chunk what the loader takes. */
function adapt(name) {
  const path = join(TARGET, name)
  const text = readFileSync(path, 'utf8')
  // The loader gives chunks this function. Its name is as long, so the map of the file stays good.
  const written = narrow(text.replace(/\bimport\((?=[`"'])/g, 'Import('))
  if (written !== text) writeFileSync(path, written)
}

/** Makes the file of an entry, which loads its chunk. Returns its name. */
function begin({ name, fileName }) {
  const file = `${name}.js`
  const loader = JSON.stringify(`${relative(dirname(file), '.')}/${LOADER}`)
  mkdirSync(dirname(join(TARGET, file)), { recursive: true })
  writeFileSync(join(TARGET, file), `require(${loader}).load(${JSON.stringify(fileName)})\n`)
  return file
}

/** Makes the file that says that an entry is CommonJS, for which Node.js starts sooner. Returns its name. */
function kindOf({ name }) {
  const file = join(name.split('/')[0], 'package.json')
  writeFileSync(join(TARGET, file), '{"type":"commonjs"}\n')
  return file
}

/**
 * Escapes the characters of a text outside ASCII. V8 keeps the text of every loaded file, with two bytes a character
 * when one of them is outside Latin-1, and the loader need not decode ASCII. The lines stay the same, and so the map of
 * the file stays good.
 */
function narrow(text) {
  return text.replace(/[^\0-\x7f]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Removes what earlier bundles left. */
function removeOld(current) {
  for (const name of readdirSync(TARGET, { recursive: true, encoding: 'utf8' })) {
    const path = join(TARGET, name)
    const { mtimeMs } = statSync(path)
    if (/\.(js|map|code)$/.test(name) && !current.has(name.replace(/\.code$/, '')) && Date.now() - mtimeMs > KEPT_MS)
      rmSync(path)
  }
}

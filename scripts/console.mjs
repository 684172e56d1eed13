// Builds the web console from control/console into build/console and adds a compressed copy of each text file. The
// control plane serves the files unchanged. The name of each file below /assets contains its hash.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, parse } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import { rolldown } from 'rolldown'
import { pathOf } from './icon-paths.mjs'
import { worldShapes } from './world-shapes.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const source = join(root, 'control/console')
const target = join(root, 'build/console')

const files = new Map()
/** Adds a file below /assets under a name with its hash. Returns its address. */
function add(name, text) {
  const { name: stem, ext } = parse(name)
  const path = `assets/${stem}-${createHash('sha256').update(text).digest('hex').slice(0, 8)}${ext}`
  files.set(path, text)
  return addressOf(path)
}
const addressOf = path => `/console/${path}`

/** A script that imports a picture gets its address. */
const pictures = {
  name: 'pictures',
  load: {
    filter: { id: /\.svg$/ },
    handler: id => ({
      code: `export default ${JSON.stringify(add(id, readFileSync(id, 'utf8')))}`,
      moduleType: 'js',
    }),
  },
}
/** Style sheets that scripts import, by path. The page links all in one. */
const sheets = new Map()
const styles = {
  name: 'styles',
  load: {
    filter: { id: /\.css$/ },
    handler: id => {
      sheets.set(id, readFileSync(id, 'utf8'))
      return { code: '', moduleType: 'js', moduleSideEffects: false }
    },
  },
}
/** An icon becomes the data of one path. */
const icons = {
  name: 'icons',
  load: {
    filter: { id: /\/lucide\/dist\/esm\/icons\/[^/]+\.mjs$/ },
    handler: async id => ({
      code: `export default ${JSON.stringify(pathOf((await import(id)).default))}`,
      moduleType: 'js',
    }),
  },
}
/** The atlas of the world becomes the paths of its countries. */
const atlas = {
  name: 'atlas',
  load: {
    filter: { id: /\/world-atlas\/countries-110m\.json$/ },
    handler: () => ({ code: `export default ${JSON.stringify(worldShapes())}`, moduleType: 'js' }),
  },
}

const bundle = await rolldown({
  input: { index: join(source, 'main.tsx') },
  platform: 'browser',
  tsconfig: join(source, 'tsconfig.json'),
  transform: { target: 'es2022', define: { 'process.env.NODE_ENV': '"production"' } },
  plugins: [pictures, styles, icons, atlas],
})
const { output } = await bundle.generate({
  format: 'esm',
  minify: true,
  // One script of what many pages use: each script of its own costs the browser a request and a dozen tasks.
  codeSplitting: { groups: [{ name: 'shared', minShareCount: 4 }] },
  entryFileNames: 'assets/[name]-[hash].js',
  chunkFileNames: 'assets/[name]-[hash].js',
})
await bundle.close()
for (const { fileName, code } of output) files.set(fileName, code)

/** The scripts that a chunk needs, itself included, without those of `before`. */
function scriptsOf(chunk, before = new Set()) {
  const needed = new Set()
  const add = fileName => {
    if (needed.has(fileName) || before.has(fileName)) return
    needed.add(fileName)
    for (const path of output.find(other => other.fileName === fileName)?.imports ?? []) add(path)
  }
  add(chunk.fileName)
  return needed
}

/**
 * The scripts of each page, by the template of its address. The control plane names them with the page, so that the
 * browser asks for all of them at once instead of finding one in the other.
 */
function scriptsOfPages(entry) {
  const table = readFileSync(join(source, 'app.tsx'), 'utf8')
  const pages = [...table.matchAll(/\['(\/[^']*)', async \(\) => \(await import\('\.\/([^']+)'\)\)/g)]
  const first = scriptsOf(entry)
  return pages.map(([, address, file]) => {
    const chunk = output.find(({ moduleIds = [] }) => moduleIds.includes(join(source, file)))
    if (!chunk) throw new Error(`${file}, the page at ${address}, is in no chunk`)
    return [address.replace(/:(\w+)/g, '{$1}'), [...scriptsOf(chunk, first)].map(addressOf)]
  })
}

// Our own rules override those of packages.
const own = join(source, 'style.css')
const packages = [...sheets.keys()].filter(path => path !== own).sort()
const sheet = add(own, [...packages, own].map(path => sheets.get(path)).join('\n'))
const entry = output.find(({ isEntry }) => isEntry)
const links = [
  `<link rel="stylesheet" href="${sheet}" />`,
  ...[...scriptsOf(entry)].slice(1).map(path => `<link rel="modulepreload" href="${addressOf(path)}" />`),
]
const icon = join(source, 'icon.svg')
const page = readFileSync(join(source, 'index.html'), 'utf8')
  .replace('./icon.svg', add(icon, readFileSync(icon, 'utf8')))
  .replace('./main.tsx', addressOf(entry.fileName))
  .replace('  </head>', `${links.map(link => `    ${link}\n`).join('')}  </head>`)
files.set('index.html', page)
files.set('scripts.json', JSON.stringify(Object.fromEntries(scriptsOfPages(entry))))

rmSync(target, { recursive: true, force: true })
mkdirSync(join(target, 'assets'), { recursive: true })
for (const [name, text] of files) {
  writeFileSync(join(target, name), text)
  const packed = brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })
  writeFileSync(join(target, `${name}.br`), packed)
}

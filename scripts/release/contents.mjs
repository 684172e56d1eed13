// What a release contains: the packages that the bundle leaves in node_modules, with all that they need, and the files
// of the tree. Most are functions of the lock file alone, so that a test can call them.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Returns where Node.js finds a package from the one at `from`: in its folder, or above; undefined for nowhere. */
function located(lock, from, name) {
  for (let at = from; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const path = `${at}/node_modules/${name}`
    if (lock.packages[path]) return path
  }
  return lock.packages[`node_modules/${name}`] && `node_modules/${name}`
}

/** Packages that only compile or download: no running platform loads them. */
const OF_BUILDS = new Set(['prebuild-install', 'node-addon-api'])

/** Returns the paths of these packages and of all that they need, sorted. */
export function closure(lock, names) {
  const found = new Set()
  const add = (from, name, optional) => {
    if (OF_BUILDS.has(name)) return
    const path = located(lock, from, name)
    if (path === undefined) {
      if (optional) return
      throw new Error(`package-lock.json has no ${name}, which ${from || 'the bundle'} needs`)
    }
    if (found.has(path)) return
    found.add(path)
    const { dependencies = {}, optionalDependencies = {} } = lock.packages[path]
    for (const next of Object.keys(dependencies)) add(path, next, next in optionalDependencies)
    for (const next of Object.keys(optionalDependencies)) add(path, next, true)
  }
  for (const name of names) add('', name, false)
  return [...found].sort()
}

/** The locked packages of production, as [path, entry]: those in the bundle, in the console, and beside them. */
export const production = lock =>
  Object.entries(lock.packages).filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)

export const nameOf = path => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)

/**
 * Whether a file of a package is left out: what developers read, maps, tests, modules for browsers, and the sources of
 * the database driver. Each file costs an installation the time of a fsync(2).
 */
export const isLeftOut = file =>
  /\.([cm]?ts|map|flow|ya?ml)$/.test(file) ||
  /(?<!\/licen[cs]e)\.(md|markdown)$/i.test(file) ||
  /^node_modules\/(@[^/]+\/)?[^/]+\/(tests?|__tests__|docs|examples?|benchmarks?|coverage|\.[^/]+)(\/|$)/.test(file) ||
  /^node_modules\/@opentelemetry\/[^/]+\/build\/esm?(next)?(\/|$)/.test(file) ||
  /^node_modules\/better-sqlite3\/(?!package\.json$|lib(\/|$)|LICENSE)/.test(file) ||
  /(^|\/)\.stamp/.test(file)

export const bytesBelow = path =>
  statSync(path).isDirectory()
    ? readdirSync(path).reduce((sum, name) => sum + bytesBelow(join(path, name)), 0)
    : statSync(path).size

/** What stands in a release, in the order of size. */
const PARTS = {
  node: 'Node.js',
  node_modules: 'packages that are not in the bundle',
  'build/bundle': 'the platform, bundled',
  'build/console': 'the web console',
  native: 'the media plane and the launcher, compiled',
  docs: 'documents',
}

/** Returns the sizes of a staged release as a table: its parts, and the packages beside the bundle. */
export function contentsTable(tree) {
  const line = (name, bytes, what = '') =>
    `${(bytes / 1e6).toFixed(2).padStart(8)} MB  ${name.padEnd(36)} ${what}`.trimEnd()
  const largest = rows => rows.sort(([, a], [, b]) => b - a).map(row => line(...row))
  const parts = Object.entries(PARTS).map(([name, what]) => [name, bytesBelow(join(tree, name)), what])
  const packages = readdirSync(join(tree, 'node_modules')).flatMap(name =>
    name.startsWith('@') ? readdirSync(join(tree, 'node_modules', name)).map(one => `${name}/${one}`) : [name],
  )
  const sized = packages.map(name => [name, bytesBelow(join(tree, 'node_modules', name))])
  const all = line('all', bytesBelow(tree))
  return ['Parts', ...largest(parts), all, '', 'Packages of node_modules', ...largest(sized), ''].join('\n')
}

// What a release contains: the packages that the bundle leaves in node_modules, with all that they need, and the files
// of the tree. Functions of the lock file alone, so that a test can call them.

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

/** Whether a file of a package is left out: types and maps for developers, and the sources of the database driver. */
export const isLeftOut = file =>
  /\.(d\.[cm]?ts|map)$/.test(file) ||
  /^node_modules\/better-sqlite3\/(?!package\.json$|lib(\/|$)|LICENSE)/.test(file) ||
  /(^|\/)\.stamp/.test(file)

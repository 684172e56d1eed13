// Checks package-lock.json. Plain JavaScript without dependencies, because it runs before `npm ci`.
// `node scripts/lock-file.mjs` checks the current folder. `npm run check` and scripts/setup.mjs run this check too.
import { readFileSync, realpathSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const REGISTRY = 'https://registry.npmjs.org/'
const SHA512 = /^sha512-[A-Za-z0-9+/]{86}==$/

/** Returns the package of a path: `node_modules/a/node_modules/@b/c` is `@b/c`. */
const nameOf = path => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)

function packageFindings(path, entry, allowed) {
  const name = nameOf(path)
  const what = `${path} ${entry.version ?? ''}`.trim()
  const archive = `${REGISTRY}${name}/-/${name.slice(name.lastIndexOf('/') + 1)}-${entry.version}.tgz`
  const found = []
  if (entry.link || entry.inBundle || typeof entry.version !== 'string')
    found.push(`${what} is no package of the registry (a link, a bundled package or one without a version)`)
  // npm installs an alias under the name that others import, so another package could impersonate this one.
  if (entry.name !== undefined && entry.name !== name) found.push(`${what} is in truth ${entry.name}`)
  if (!SHA512.test(entry.integrity ?? '')) found.push(`${what} has no integrity hash of SHA-512`)
  // Without `resolved`, npm requests name and version from the registry (omit-lockfile-registry-resolved in .npmrc).
  if (entry.resolved !== undefined && entry.resolved !== archive)
    found.push(`${what} comes from ${entry.resolved} and not from ${archive}`)
  if (entry.hasInstallScript && !Object.hasOwn(allowed, name))
    found.push(`${what} has an install script and is not in allowScripts of package.json`)
  return found
}

/** The kinds of dependencies. The first entry of the lock file repeats them from package.json. */
const KINDS = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies']
const wantedBy = manifest => JSON.stringify(KINDS.map(kind => Object.entries(manifest?.[kind] ?? {}).sort()))

/** Returns one sentence per fault. */
export function lockFindings(manifest, lock) {
  const allowed = manifest.allowScripts ?? {}
  const packages = Object.entries(lock.packages ?? {}).filter(([path]) => path !== '')
  const scripts = packages.filter(([, entry]) => entry.hasInstallScript).map(([path]) => nameOf(path))
  return [
    ...(lock.lockfileVersion === 3 ? [] : ['package-lock.json is not of version 3']),
    ...(wantedBy(lock.packages?.['']) === wantedBy(manifest)
      ? []
      : ['package-lock.json does not belong to package.json: run `npm install --package-lock-only`']),
    ...packages.flatMap(([path, entry]) => packageFindings(path, entry, allowed)),
    ...Object.keys(allowed)
      .filter(name => !scripts.includes(name))
      .map(name => `allowScripts of package.json lists ${name}, which has no install script`),
  ]
}

/** Returns the faults of the lock file in the current folder. */
export function findingsHere() {
  const read = path => JSON.parse(readFileSync(path, 'utf8'))
  return lockFindings(read('package.json'), read('package-lock.json'))
}

// Compares real paths, because the check must also run when it is called through a symbolic link.
if (import.meta.url === pathToFileURL(realpathSync(process.argv[1] ?? '.')).href) {
  const found = findingsHere()
  for (const finding of found) console.error(`lock file: ${finding}`)
  if (found.length > 0) process.exitCode = 1
}

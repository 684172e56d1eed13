// Compiles the database driver without waiting for npm's whole installation: from node_modules where its package lies,
// otherwise from an archive of the package that this fetches by itself. Plain JavaScript without dependencies.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** What binding.gyp compiles, which expects the package in the node_modules of the folder that is two above its own. */
const PART = 'native/sqlite'
export const DRIVER_FILES = ['binding.gyp', 'object-wrap.h'].map(name => join(PART, name))

/** Tells whether a package of this path and version is in the tree. An npm that was killed leaves half a file, too. */
export function isInstalled(path, { version }) {
  const manifest = join(path, 'package.json')
  if (!existsSync(manifest)) return false
  const [, found] = /"version"\s*:\s*"([^"]*)"/.exec(readFileSync(manifest, 'utf8')) ?? []
  return found === version
}

/** Fetches a package by npm, with its settings and cache, refuses other bytes than the lock file's, and unpacks it. */
async function unpackPackage(run, path, { version, integrity }, folder) {
  const name = basename(path)
  mkdirSync(folder, { recursive: true })
  const options = ['--ignore-scripts', '--loglevel=error', '--pack-destination', folder]
  await run('npm', ['pack', `${name}@${version}`, ...options])
  const archive = join(folder, `${name}-${version}.tgz`)
  const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
  if (found !== integrity)
    throw new Error(
      `the registry of npm sent another ${name} ${version} than package-lock.json names: ` +
        `its hash is ${found}, and not ${integrity}`,
    )
  await run('tar', ['-xzf', archive, '-C', folder, '--strip-components=1'])
  rmSync(archive)
}

/**
 * Compiles the driver of the package `path`, which is `installed` or is fetched, by `compile(folder)` in `work`. Hands
 * the file that was made to `take`, and removes `work`.
 */
export async function makeDriver({ run, path, entry, installed, work, compile, take }) {
  rmSync(work, { recursive: true, force: true })
  const source = join(work, path)
  mkdirSync(dirname(source), { recursive: true })
  if (installed) symlinkSync(resolve(path), source)
  else await unpackPackage(run, path, entry, source)
  for (const file of DRIVER_FILES) cpSync(file, join(work, file), { recursive: true })
  await compile(join(work, PART))
  take(join(work, PART, 'build/Release/better_sqlite3.node'))
  rmSync(work, { recursive: true })
}

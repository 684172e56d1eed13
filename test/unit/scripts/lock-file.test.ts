import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from '../../support/harness/index.ts'

// Tests the check of package-lock.json, which runs before packages are installed.

interface Entry {
  version?: string
  integrity?: string
  resolved?: string
  name?: string
  link?: boolean
  hasInstallScript?: boolean
}
interface Files {
  manifest: { allowScripts: Record<string, boolean>; dependencies: Record<string, string> }
  lock: { lockfileVersion: number; packages: Record<string, Entry> }
}

const COMMAND = resolve('scripts/lock-file.mjs')
// Plain JavaScript outside the compiled tree, because it runs before compilation.
const { lockFindings } = (await import(pathToFileURL(COMMAND).href)) as {
  lockFindings: (manifest: Files['manifest'], lock: Files['lock']) => string[]
}
const KOA = 'node_modules/koa'
const SCOPED = 'node_modules/@koa/router'

const ours = (): Files => ({
  manifest: JSON.parse(readFileSync('package.json', 'utf8')),
  lock: JSON.parse(readFileSync('package-lock.json', 'utf8')),
})

/** Returns the findings after `change` to a copy of our files. */
function found(change: (files: Files) => void): string {
  const { manifest, lock } = ours()
  change({ manifest, lock })
  return lockFindings(manifest, lock).join('\n')
}

/** Changes one package of the lock file. `{version}` in `resolved` stands for its version. */
const one =
  (path: string, change: Entry) =>
  ({ lock }: Files): void => {
    const entry = lock.packages[path]
    if (entry?.version === undefined) throw new Error(`${path} is not in package-lock.json`)
    const resolved = change.resolved?.replace('{version}', entry.version)
    lock.packages[path] = { ...entry, ...change, ...(resolved === undefined ? {} : { resolved }) }
  }

t.test('accepts our lock file, with or without the URLs of registry archives', async t => {
  t.equal(
    found(() => {}),
    '',
  )
  const named = found(files => {
    one(KOA, { resolved: 'https://registry.npmjs.org/koa/-/koa-{version}.tgz' })(files)
    one(SCOPED, { resolved: 'https://registry.npmjs.org/@koa/router/-/router-{version}.tgz' })(files)
  })
  t.equal(named, '')
})

t.test('the command reports the faults of the current folder and fails', async t => {
  const folder = t.testdir()
  const files = ours()
  one(KOA, { resolved: 'https://evil.example/koa-{version}.tgz' })(files)
  writeFileSync(join(folder, 'package.json'), JSON.stringify(files.manifest))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(files.lock))
  const { status, stderr } = spawnSync(process.execPath, [COMMAND], { cwd: folder, encoding: 'utf8' })
  t.equal(status, 1)
  t.match(stderr, /^lock file: node_modules\/koa .* comes from https:\/\/evil\.example\/koa-/)
})

t.test('rejects a package that may differ from the one in the registry', async t => {
  const changes: [string, RegExp, (files: Files) => void][] = [
    ['no hash', /node_modules\/koa .*integrity/, one(KOA, { integrity: '' })],
    ['a weak hash', /node_modules\/koa .*integrity/, one(KOA, { integrity: 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=' })],
    ['another host', /comes from/, one(KOA, { resolved: 'https://evil.example/koa/-/koa-{version}.tgz' })],
    ['plain HTTP', /comes from/, one(KOA, { resolved: 'http://registry.npmjs.org/koa/-/koa-{version}.tgz' })],
    ['a repository', /comes from/, one(KOA, { resolved: 'git+ssh://git@github.com/koajs/koa.git#abc' })],
    ['a file', /comes from/, one(SCOPED, { resolved: 'file:../router.tgz' })],
    ['another package', /comes from/, one(KOA, { resolved: 'https://registry.npmjs.org/koaa/-/koaa-{version}.tgz' })],
    ['an alias', /is in truth koaa/, one(KOA, { name: 'koaa' })],
    ['a link', /no package of the registry/, one(KOA, { link: true })],
    ['a wanted package', /does not belong to package.json/, ({ manifest }) => delete manifest.dependencies['koa']],
    ['an older form', /version 3/, ({ lock }) => Object.assign(lock, { lockfileVersion: 1 })],
  ]
  for (const [what, sentence, change] of changes) t.match(found(change), sentence, what)
})

t.test('only listed packages have install scripts, and all listed packages have one', async t => {
  const unlisted = found(one(SCOPED, { hasInstallScript: true }))
  t.match(unlisted, /@koa\/router .* has an install script and is not in allowScripts/)
  const idle = found(({ manifest }) => Object.assign(manifest.allowScripts, { koa: true }))
  t.match(idle, /lists koa, which has no install script/)
})

t.test('installed packages have no install scripts that the lock file hides', async t => {
  const { lock } = ours()
  const hidden = Object.entries(lock.packages).flatMap(([path, entry]) => {
    if (path === '' || entry.hasInstallScript) return []
    const file = join(path, 'package.json')
    const text = readIfThere(file)
    if (text === null) return []
    const { scripts = {} } = JSON.parse(text) as { scripts?: Record<string, string> }
    return ['preinstall', 'install', 'postinstall'].some(name => name in scripts) ? [path] : []
  })
  t.same(hidden, [])
})

/** Reads a file; null for a package of another platform, which npm does not install. */
function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

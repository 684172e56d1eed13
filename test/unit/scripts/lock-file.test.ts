import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'

// The check of package-lock.json that runs before anything is installed.

interface Entry {
  version?: string
  integrity?: string
  resolved?: string
  name?: string
  link?: boolean
  hasInstallScript?: boolean
}
interface Files {
  manifest: { allowScripts: Record<string, boolean> }
  lock: { lockfileVersion: number; packages: Record<string, Entry> }
}

const COMMAND = resolve('scripts/lock-file.mjs')
// Plain JavaScript outside the compiled tree, because it runs before anything is compiled.
const { lockFindings } = (await import(pathToFileURL(COMMAND).href)) as {
  lockFindings: (manifest: Files['manifest'], lock: Files['lock']) => string[]
}
const KOA = 'node_modules/koa'
const SCOPED = 'node_modules/@koa/router'

const ours = (): Files => ({
  manifest: JSON.parse(readFileSync('package.json', 'utf8')),
  lock: JSON.parse(readFileSync('package-lock.json', 'utf8')),
})

/** What the check says after `change` to a copy of our files. */
function found(change: (files: Files) => void): string {
  const { manifest, lock } = ours()
  change({ manifest, lock })
  return lockFindings(manifest, lock).join('\n')
}

/** Changes one package of the lock file; `{version}` in an address is that of the package. */
const one =
  (path: string, change: Entry) =>
  ({ lock }: Files): void => {
    const entry = lock.packages[path]
    if (entry?.version === undefined) throw new Error(`${path} is not in package-lock.json`)
    const resolved = change.resolved?.replace('{version}', entry.version)
    lock.packages[path] = { ...entry, ...change, ...(resolved === undefined ? {} : { resolved }) }
  }

t.test('our own lock file passes, and one that names the archives of the registry does too', async t => {
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

t.test('the command says what is wrong with the folder that it runs in, and fails', async t => {
  const folder = t.testdir()
  const files = ours()
  one(KOA, { resolved: 'https://evil.example/koa-{version}.tgz' })(files)
  writeFileSync(join(folder, 'package.json'), JSON.stringify(files.manifest))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(files.lock))
  const { status, stderr } = spawnSync(process.execPath, [COMMAND], { cwd: folder, encoding: 'utf8' })
  t.equal(status, 1)
  t.match(stderr, /^lock file: node_modules\/koa .* comes from https:\/\/evil\.example\/koa-/)
})

t.test('a package that could be another than the registry has is refused by name', async t => {
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
    ['an older form', /version 3/, ({ lock }) => Object.assign(lock, { lockfileVersion: 1 })],
  ]
  for (const [what, sentence, change] of changes) t.match(found(change), sentence, what)
})

t.test('an install script runs only of a package that is listed, and the list has no others', async t => {
  const unlisted = found(one(SCOPED, { hasInstallScript: true }))
  t.match(unlisted, /@koa\/router .* has an install script and is not in allowScripts/)
  const idle = found(({ manifest }) => Object.assign(manifest.allowScripts, { koa: true }))
  t.match(idle, /lists koa, which has no install script/)
})

t.test('what is installed has no install script that the lock file hides', async t => {
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

/** Null for a package of another platform, which npm leaves out. */
function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

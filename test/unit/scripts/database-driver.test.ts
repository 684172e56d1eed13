import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from '../../support/harness/index.ts'

// Tests where the set-up takes the sources of the database driver from, with the real npm and a registry of its own.

const PATH = 'node_modules/better-sqlite3'
const VERSION = '12.11.1'
/** Settings of npm by which it asks the registry of the test, whatever the user's are. */
const NEAR = { npm_config_offline: 'false', npm_config_noproxy: '127.0.0.1' }
const MODULE = pathToFileURL(resolve('scripts/setup/database-driver.mjs')).href

/** A registry of npm with one package, whose only source file is `sources`. Returns its URL, hash and requests. */
async function registry(t: Test, sources: string) {
  const folder = t.testdir({ package: { 'sources.c': sources } })
  writeFileSync(join(folder, 'package/package.json'), JSON.stringify({ name: 'better-sqlite3', version: VERSION }))
  execFileSync('tar', ['-czf', join(folder, 'archive'), '-C', folder, 'package'])
  const archive = readFileSync(join(folder, 'archive'))
  const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    if (request.url?.endsWith('.tgz')) return response.end(archive)
    const dist = { integrity, tarball: `${url}/better-sqlite3/-/better-sqlite3-${VERSION}.tgz` }
    const versions = { [VERSION]: { name: 'better-sqlite3', version: VERSION, dist } }
    response.setHeader('content-type', 'application/json')
    return response.end(JSON.stringify({ name: 'better-sqlite3', 'dist-tags': { latest: VERSION }, versions }))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, integrity, requests }
}

/**
 * Makes a driver in a tree whose compiler copies the sources. `installed` are those in its node_modules. Returns the
 * status, what was printed, the driver, and whether the folder of the work is left.
 */
async function made(t: Test, url: string, integrity: string, installed?: { sources: string; version: string }) {
  const folder = t.testdir({ cache: {} })
  cpSync('native/sqlite', join(folder, 'native/sqlite'), {
    recursive: true,
    filter: source => !source.includes('/build'),
  })
  if (installed) {
    mkdirSync(join(folder, PATH), { recursive: true })
    writeFileSync(join(folder, PATH, 'package.json'), JSON.stringify({ version: installed.version }))
    writeFileSync(join(folder, PATH, 'sources.c'), installed.sources)
  }
  const script = `
    import { isInstalled, makeDriver } from ${JSON.stringify(MODULE)}
    import { execFileSync } from 'node:child_process'
    import { copyFileSync, mkdirSync } from 'node:fs'
    import { join } from 'node:path'
    const [path, entry] = ${JSON.stringify([PATH, { version: VERSION, integrity }])}
    await makeDriver({
      path, entry, installed: isInstalled(path, entry), work: 'work',
      run: async (command, words) => { execFileSync(command, words, { stdio: 'ignore' }) },
      compile: async place => {
        mkdirSync(join(place, 'build/Release'), { recursive: true })
        copyFileSync(join(place, '../..', path, 'sources.c'), join(place, 'build/Release/better_sqlite3.node'))
      },
      take: file => copyFileSync(file, 'driver'),
    })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...NEAR, npm_config_registry: url, npm_config_cache: join(folder, 'cache') },
  })
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    printed += text
  })
  const [status] = await once(child, 'close')
  const driver = join(folder, 'driver')
  return {
    status,
    printed,
    driver: existsSync(driver) ? readFileSync(driver, 'utf8') : null,
    is_left: existsSync(join(folder, 'work')),
    /** The sources in node_modules. */
    sources: existsSync(join(folder, PATH)) ? readFileSync(join(folder, PATH, 'sources.c'), 'utf8') : null,
  }
}

t.test(
  'without the package in the tree, the driver is made of what the registry sends, and no source stays',
  async t => {
    const { url, integrity, requests } = await registry(t, 'sent')
    const { status, printed, driver, is_left } = await made(t, url, integrity)
    t.same({ status, printed, driver, is_left }, { status: 0, printed: '', driver: 'sent', is_left: false })
    t.equal(requests.filter(path => path.endsWith(`better-sqlite3-${VERSION}.tgz`)).length, 1)
  },
)

t.test('a package with another hash than that of the lock file is refused, and none of it compiled', async t => {
  const ours = await registry(t, 'ours')
  const other = await registry(t, 'other')
  const { status, printed, driver } = await made(t, other.url, ours.integrity)
  t.equal(status, 1)
  t.ok(printed.includes(`the registry of npm sent another better-sqlite3 ${VERSION} than package-lock.json names`))
  t.ok(printed.includes(`its hash is ${other.integrity}, and not ${ours.integrity}`), printed)
  t.equal(driver, null)
})

t.test('the package in the tree is used without the registry, and stays', async t => {
  const { url, integrity, requests } = await registry(t, 'sent')
  const { status, driver, is_left, sources } = await made(t, url, integrity, { sources: 'own', version: VERSION })
  t.same({ status, driver, is_left, sources }, { status: 0, driver: 'own', is_left: false, sources: 'own' })
  t.same(requests, [])
})

t.test('the package in the tree is not used when it has another version, and stays', async t => {
  const { url, integrity } = await registry(t, 'sent')
  const { driver, sources } = await made(t, url, integrity, { sources: 'own', version: '12.11.0' })
  t.same({ driver, sources }, { driver: 'sent', sources: 'own' })
})

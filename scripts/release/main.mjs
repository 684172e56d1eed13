// Makes a release in build/release: a tarball, a Debian package, a container image, the bill of materials, the licences,
// a table of contents, checksums and, with a key in RELEASE_KEY, their signature. Two builds of one commit are equal byte for byte, wherever the folder lies: names are sorted, owners are root, and times
// are the commit's (https://reproducible-builds.org/docs/source-date-epoch/). `npm run release`; `npm run release --
// --arch=arm64` makes one for another processor, in build/release-arm64.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { leftOutside, packagesOfRunning } from '../setup/needed-packages.mjs'
import { ARCHITECTURES, folderOf, hasCommand, toolsFor } from './architecture.mjs'
import { contentsTable, isLeftOut, nameOf, production } from './contents.mjs'
import { makePackage, NEEDED, RECOMMENDED } from './debian.mjs'
import { makeImage } from './image.mjs'
import { billOfMaterials, licenceFindings } from './sbom.mjs'
import { signature } from './signature.mjs'

process.chdir(join(dirname(fileURLToPath(import.meta.url)), '../..'))
const arch = /^--arch=(.*)$/.exec(process.argv[2] ?? '')?.[1] ?? process.arch
if (!Object.hasOwn(ARCHITECTURES, arch)) throw new Error(`no release is made for ${arch}`)
const { debian: architecture } = ARCHITECTURES[arch]
const is_own = arch === process.arch
const OUT = folderOf(arch)
const WORK = join(OUT, 'work')
const say = text => console.error(`release: ${text}`)
const readJson = path => JSON.parse(readFileSync(path, 'utf8'))
const run = (command, words, options = {}) =>
  execFileSync(command, words, { stdio: ['ignore', 'pipe', 'inherit'], ...options })

const [manifest, lock, runtimes] = ['package.json', 'package-lock.json', 'scripts/release/runtime.json'].map(readJson)
const runtime = { ...runtimes, ...runtimes.packages[arch] }
const epoch = Number(process.env.SOURCE_DATE_EPOCH ?? run('git', ['log', '-1', '--format=%ct']).toString())
process.env.SOURCE_DATE_EPOCH = String(epoch)
process.umask(0o022)

const findings = licenceFindings(lock)
if (findings.length > 0) throw new Error(`not to be shipped:\n  ${findings.join('\n  ')}`)
rmSync(OUT, { recursive: true, force: true })
mkdirSync(WORK, { recursive: true })

/** Fetches the binary package of Node.js, and refuses another than the pinned one. Returns its folder. */
function node() {
  const [{ filename }] = JSON.parse(
    run('npm', [
      'pack',
      `${runtime.package}@${runtime.version}`,
      '--json',
      '--ignore-scripts',
      '--pack-destination',
      WORK,
    ]).toString(),
  )
  const archive = readFileSync(join(WORK, filename))
  const found = `sha512-${createHash('sha512').update(archive).digest('base64')}`
  if (found !== runtime.integrity) throw new Error(`${filename} has the hash ${found}, and not ${runtime.integrity}`)
  const folder = join(WORK, 'node')
  mkdirSync(folder)
  run('tar', ['-xzf', join(WORK, filename), '-C', folder, '--strip-components=1'])
  return folder
}

/** Compiles copies of these files of a native part for the shipped Node.js. Returns the folder of what was made. */
function compiled(part, files, node_folder) {
  mkdirSync(join(WORK, part), { recursive: true })
  for (const file of files) cpSync(join(part, file), join(WORK, part, file), { recursive: true })
  // npm names it to the scripts that it runs.
  const { npm_config_node_gyp: gyp } = process.env
  if (!gyp) throw new Error('make a release by npm run release')
  const here = process.cwd()
  const flags = `-ffile-prefix-map=${here}=. -g0`
  const { env: cross } = tools
  const more = Object.fromEntries(['CFLAGS', 'CXXFLAGS'].map(name => [name, `${flags} ${cross[name] ?? ''}`]))
  // node-gyp prefers the settings of npm, which may name other headers, to its own words.
  const headers = join(here, node_folder)
  const settings = { npm_config_nodedir: headers, npm_package_config_node_gyp_nodedir: headers }
  const env = { ...process.env, ...cross, ...more, ...settings }
  const words = [gyp, 'rebuild', '-C', join(WORK, part), ...tools.words, '-j', 'max', '--silent']
  run(process.execPath, words, { env })
  return join(WORK, part, 'build/Release')
}

/** The database driver depends on the version of Node.js. */
function driver(node_folder) {
  cpSync('node_modules/better-sqlite3', join(WORK, 'node_modules/better-sqlite3'), { recursive: true })
  return join(compiled('native/sqlite', ['binding.gyp', 'object-wrap.h'], node_folder), 'better_sqlite3.node')
}

/** The media plane uses Node-API, which all versions share. */
const mediaPlane = node_folder =>
  is_own ? 'native/build/Release' : compiled('native', ['binding.gyp', 'src'], node_folder)

/** Copies a file or a folder to `to` below the staged tree. */
function stager(tree) {
  return (from, to = from, leave = () => false) => {
    const filter = source => !leave(source)
    mkdirSync(dirname(join(tree, to)), { recursive: true })
    cpSync(from, join(tree, to), { recursive: true, filter, dereference: true })
  }
}

function stripped(from, to) {
  mkdirSync(dirname(to), { recursive: true })
  run(tools.strip, ['--strip-unneeded', '-o', to, from])
}

/** Packages that have another library inside, compiled to WebAssembly: its name, licence and source. */
const INSIDE = {
  'mpg123-decoder': 'libmpg123, LGPL-2.1: https://www.mpg123.de',
  'wasm-media-encoders': 'LAME, LGPL-2.0-or-later: https://lame.sourceforge.io',
}

function licences(node_folder) {
  const told = production(lock).map(([path, { version }]) => {
    const file = existsSync(path) && readdirSync(path).find(name => /^(licen[cs]e|copying)/i.test(name))
    const text = file ? readFileSync(join(path, file), 'utf8') : `See ${nameOf(path)} in sbom.cdx.json.`
    const inside = INSIDE[nameOf(path)]
    return [`${nameOf(path)} ${version}`, inside ? `${text.trim()}\n\nIt contains ${inside}` : text]
  })
  told.push(['The GNU Lesser General Public License 2.1', readFileSync('packaging/licences/LGPL-2.1.txt', 'utf8')])
  told.push([`Node.js ${runtime.version}`, readFileSync(join(node_folder, 'LICENSE'), 'utf8')])
  const unique = new Map(told.sort(([a], [b]) => (a < b ? -1 : 1)))
  return [...unique].map(([name, text]) => `${'='.repeat(80)}\n${name}\n${'='.repeat(80)}\n${text.trim()}\n`).join('\n')
}

/** Gives all below a folder the time of the commit and the usual modes. */
function normalize(path) {
  const about = statSync(path)
  if (about.isDirectory()) for (const name of readdirSync(path)) normalize(join(path, name))
  chmodSync(path, about.isDirectory() || about.mode & 0o100 ? 0o755 : 0o644)
  utimesSync(path, epoch, epoch)
}

const hashOf = path => createHash('sha256').update(readFileSync(path)).digest('hex')

say(`strowger ${manifest.version}, as of ${new Date(epoch * 1000).toISOString()}`)
const node_folder = node()
const tools = toolsFor(arch, WORK)
say('compiling the native parts for the Node.js of the release')
const driver_file = driver(node_folder)
const media_folder = mediaPlane(node_folder)

const name = `strowger-${manifest.version}-linux-${arch}`
const tree = join(WORK, name)
const stage = stager(tree)
for (const file of ['package.json', 'LICENSE', 'README.md', 'CHANGELOG.md', 'SECURITY.md', 'bin/strowger']) stage(file)
for (const file of ['files.json', ...readJson('build/bundle/files.json')]) stage(join('build/bundle', file))
stage('build/console', 'build/console', path => path.includes('.stamp'))
stage('docs', 'docs', path => path === 'docs/decisions')
// What `strowger install` takes; the Debian package has its own copies.
for (const file of ['strowger.env', 'systemd', 'debian/strowger']) stage(join('packaging', file))
for (const path of packagesOfRunning(manifest, lock))
  stage(path, path, source => source !== path && (isLeftOut(source) || source.startsWith(`${path}/node_modules`)))
for (const file of ['media.node', 'confine'])
  stripped(join(media_folder, file), join(tree, 'native/build/Release', file))
stripped(driver_file, join(tree, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node'))
stage(join(node_folder, 'bin/node'), 'node/bin/node')
stage(join(node_folder, 'LICENSE'), 'node/LICENSE')
if (tools.runs === null) say(`no compiled code in the bundle: apt-get install qemu-user, which runs ${arch}`)
else {
  const [command, ...words] = [...tools.runs, resolve(tree, 'node/bin/node')]
  // V8 hashes the names in the code by a random seed, and takes code of any.
  run(command, [...words, '--random-seed=1', 'scripts/bundle/compile.cjs', join(tree, 'build/bundle')])
  // What a running platform finds outside of the bundle. A driver for another Node.js would be equal in both builds.
  const tried = leftOutside(manifest).map(name => `await import('${name}')`)
  const script = `${tried.join(';')};new (await import('better-sqlite3')).default(':memory:')`
  const there = { cwd: join(tree, 'build/bundle') }
  run(command, [...words, '--input-type=module', '-e', script], there)
}
writeFileSync(join(tree, 'THIRD-PARTY-LICENCES.txt'), licences(node_folder))
const bom = billOfMaterials({ manifest, lock, runtime, system: NEEDED, time: new Date(epoch * 1000).toISOString() })
writeFileSync(join(tree, 'sbom.cdx.json'), `${JSON.stringify(bom, null, 1)}\n`)
normalize(tree)

say('packing')
/** Packs names of a folder: sorted, owned by root, and with the time of the commit. */
function archive(folder, names, file) {
  const sorted = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', `--mtime=@${epoch}`, '--format=gnu']
  run('tar', ['-C', folder, ...sorted, '-cf', file, ...names])
}
const contents = contentsTable(tree)
archive(WORK, [name], join(OUT, `${name}.tar`))
run('gzip', ['-n', '-6', join(OUT, `${name}.tar`)])
const tarball = join(OUT, `${name}.tar.gz`)
const { version } = manifest
const deb = makePackage({ tree, out: OUT, work: WORK, version, architecture, normalize })
const files = [tarball, deb, join(OUT, 'sbom.cdx.json')]
if (!is_own) say('no container image: its Debian would have to run here')
else if (hasCommand('mmdebstrap')) {
  say('making the container image')
  const packages = [...NEEDED.filter(one => one !== 'adduser'), 'ca-certificates', 'passwd', ...RECOMMENDED]
  files.push(
    makeImage({ root: join(WORK, 'deb'), out: OUT, work: WORK, version, architecture, epoch, packages, archive }),
  )
} else say('no container image: apt-get install mmdebstrap')
writeFileSync(join(OUT, 'CONTENTS.txt'), contents)
files.push(join(OUT, 'CONTENTS.txt'))
const sums = files.map(file => `${hashOf(file)}  ${file.slice(OUT.length + 1)}\n`).join('')
writeFileSync(join(OUT, 'SHA256SUMS'), sums)
if (process.env.RELEASE_KEY) writeFileSync(join(OUT, 'SHA256SUMS.sig'), signature(sums, process.env.RELEASE_KEY))
else say('not signed: RELEASE_KEY names no file with an Ed25519 key')
if (process.env.RELEASE_KEEP !== '1') rmSync(WORK, { recursive: true })
process.stderr.write(contents)
for (const file of files) say(`${file}  ${(statSync(file).size / 1e6).toFixed(1)} MB  ${hashOf(file)}`)

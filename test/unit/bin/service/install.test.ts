import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { install } from '../../../../bin/service/install.ts'
import type { System } from '../../../../bin/service/places.ts'
import { leavingOf, uninstall } from '../../../../bin/service/uninstall.ts'
import { wordingOf } from '../../../../bin/service/wording.ts'
import { TREE } from '../../../../core/runtime/tree.ts'
import t from '../../../support/harness/index.ts'

// A release is installed in a folder that plays the root of the file system. systemd itself reads the unit there.

type Files = Readonly<Record<string, string>>

function put(folder: string, files: Files, mode = 0o755): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text, { mode })
  }
}

/** A machine with systemd, and a way to unpack releases on it. */
function machine(folder: string) {
  const root = realpathSync(folder)
  const ran: string[] = []
  put(root, { 'etc/passwd': 'root:x:0:0::/root:/bin/bash\n', 'run/systemd/system/.keep': '', 'bin/sh': '' })
  const run: System['run'] = async (program, ...words) => {
    ran.push([program, ...words].join(' '))
    if (program === 'useradd') appendFileSync(join(root, 'etc/passwd'), `${words.at(-1)}:x:990:990::/:/bin/sh\n`)
    if (program === 'userdel') writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/root:/bin/bash\n')
    if (program === 'install') mkdirSync(words.at(-1) ?? '', { recursive: true })
    return ''
  }
  /** Unpacks a release, and returns the machine as its command sees it. */
  const unpacked = (version: string, more: Files = {}): System => {
    const tree = join(root, 'home/desk', `strowger-${version}-linux-x64`)
    put(tree, {
      'package.json': JSON.stringify({ name: 'strowger', version }),
      'bin/strowger': '#!/bin/sh\n',
      'node/bin/node': '#!/bin/sh\n',
      'sbom.cdx.json': version,
      ...more,
    })
    cpSync(join(TREE, 'packaging'), join(tree, 'packaging'), { recursive: true })
    return { tree, root, is_root: true, run }
  }
  const read = (path: string): string => readFileSync(join(root, path), 'utf8')
  return { root, ran, unpacked, read }
}

/** What systemd finds wrong with a unit below a root: nothing, when it prints nothing. */
function verified(root: string, unit: string): string {
  const targets = ['sysinit', 'basic', 'shutdown', 'network-online', 'multi-user'].map(name => `${name}.target`)
  const there = Object.fromEntries(targets.map(name => [`usr/lib/systemd/system/${name}`, '[Unit]\n']))
  put(root, there, 0o644)
  const ended = spawnSync('systemd-analyze', ['verify', `--root=${root}`, unit], { encoding: 'utf8' })
  rmSync(join(root, 'usr/lib'), { recursive: true })
  return ended.stdout + ended.stderr
}

const below = (root: string): string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(name => name.includes('strowger'))

t.test('a release is installed once, and what an operator changed stays', async t => {
  const { root, ran, unpacked, read } = machine(t.testdir())
  const release = unpacked('1.2.3')
  put(root, { 'opt/strowger-1.2.3.new/half': 'what a killed installation left' })
  const first = await install(release, { start: false })
  t.ok(first.every(({ made }) => made))
  t.equal(readlinkSync(join(root, 'opt/strowger')), 'strowger-1.2.3')
  t.notOk(existsSync(join(root, 'opt/strowger/half')))
  t.same(verified(root, 'strowger.service'), '', 'systemd accepts the unit and finds what it runs')
  rmSync(join(root, 'opt/strowger/node'), { recursive: true })
  t.match(verified(root, 'strowger.service'), /opt\/strowger\/node\/bin\/node is not executable/)
  cpSync(join(release.tree, 'node'), join(root, 'opt/strowger/node'), { recursive: true })
  for (const path of ['etc/systemd/system/strowger.service', 'usr/local/bin/strowger'])
    t.notMatch(read(path), /usr\/lib\/strowger|usr\/share\/doc/, path)
  t.ok(ran.includes(`chmod 0600 ${join(root, 'etc/strowger/strowger.env')}`), 'its secrets are read by systemd alone')
  t.ok(ran.includes(`chmod -R go=u-w ${join(root, 'opt/strowger-1.2.3.new')}`), 'the user of the service can run it')
  t.ok(ran.includes('systemctl daemon-reload') && !ran.some(line => line.includes('enable')))

  put(root, { 'etc/strowger/strowger.env': 'STROWGER_HOST=192.0.2.1\n', 'var/lib/strowger/strowger.sqlite': 'calls' })
  const installed = { ...release, tree: join(root, 'opt/strowger-1.2.3') }
  for (const again of [release, installed]) {
    const placed = await install(again, { start: true })
    t.same(
      placed.filter(({ made }) => made),
      [],
    )
  }
  t.equal(ran.filter(line => line === 'systemctl enable --now strowger.service').length, 2)
  t.equal(read('etc/strowger/strowger.env'), 'STROWGER_HOST=192.0.2.1\n')

  await t.rejects(install(unpacked('1.3.0'), { start: true }), {
    message: /leads to 1\.2\.3: strowger upgrade RELEASE/,
  })
  const other = { ...unpacked('1.2.3', { 'sbom.cdx.json': 'other' }) }
  await t.rejects(install(other, { start: true }), { message: /another build of this version/ })

  t.throws(() => leavingOf(release, { purge: false }), { message: /is not what \/opt\/strowger leads to/ })
  put(root, { 'opt/strowger-1.1.0/bin/strowger': '', 'opt/strowger-1.1.0/package.json': '{"name":"strowger"}' })
  put(root, { 'opt/strowger-notes/package.json': '{"name":"notes"}' })
  rmSync(join(root, 'home'), { recursive: true })
  const leaving = leavingOf(installed, { purge: false })
  t.same(leaving.kept, ['/etc/strowger', '/var/lib/strowger'])
  await uninstall(installed, leaving)
  t.same(below(root).sort(), [
    ...['etc/strowger', 'etc/strowger/strowger.env', 'opt/strowger-notes', 'opt/strowger-notes/package.json'],
    ...['var/lib/strowger', 'var/lib/strowger/strowger.sqlite'],
  ])
  t.equal(ran.filter(line => line === 'systemctl disable --now strowger.service').length, 1)
})

t.test('with --purge nothing is left, not even the user', async t => {
  const { root, unpacked, read } = machine(t.testdir())
  await install(unpacked('1.2.3'), { start: true })
  rmSync(join(root, 'home'), { recursive: true })
  const installed = { ...unpacked('0.0.1'), tree: join(root, 'opt/strowger-1.2.3') }
  rmSync(join(root, 'home'), { recursive: true })
  // What restore and upgrade keep, and a file of somebody else.
  const kept = ['before-2030.tar.gz', 'before-2030/master.key', 'of-strowger-2.0.0-2030.sqlite', 'upgrade.log']
  put(root, Object.fromEntries(kept.map(name => [`var/lib/strowger.${name}`, ''])), 0o600)
  put(root, { 'var/lib/strowger-notes': '' })
  t.same(leavingOf(installed, { purge: false }).kept.slice(0, 3), [
    '/etc/strowger',
    '/var/lib/strowger',
    '/var/lib/strowger.before-2030',
  ])
  await uninstall(installed, leavingOf(installed, { purge: true }))
  t.same(below(root), ['var/lib/strowger-notes'])
  t.notMatch(read('etc/passwd'), /strowger/)
})

t.test('install says why a machine is not one for it, and changes nothing', async t => {
  const { root, ran, unpacked } = machine(t.testdir())
  const release = unpacked('1.2.3')
  const before = below(root)
  const refused = (on: System, message: RegExp) => t.rejects(install(on, { start: true }), { message })
  await refused({ ...release, is_root: false }, /needs root/)
  await refused({ ...release, tree: join(root, 'home/desk') }, /is no release/)
  rmSync(join(root, 'run'), { recursive: true })
  await refused(release, /does not run systemd: have its service manager run \S+\/bin\/strowger up/)
  put(root, { 'run/systemd/system/.keep': '', 'usr/lib/strowger/package.json': '{}' })
  await refused(release, /Debian package of Strowger is installed/)
  rmSync(join(root, 'usr'), { recursive: true })
  t.same([below(root), ran], [before, []])
})

t.test('the command knows the settings of the service, which root alone can read; the shell goes first', async t => {
  const root = t.testdir({
    'strowger.env': [
      '# STROWGER_HOST=192.0.2.1',
      'STROWGER_DOMAIN=voice.example.com',
      'STROWGER_MASTER_KEY=\'a b "c" $(id)\'',
      '  STROWGER_SMTP_URL="smtp://desk:p=w@mail.example"  ',
      'STROWGER_LOG=warn',
      'PATH=/nowhere',
      'STROWGER_x;id=1',
      'no assignment',
      'STROWGER_SANDBOX=off',
    ].join('\n'),
    command: '#!/bin/sh\nenv | grep ^STROWGER_ | sort\necho "$@"\n',
    setpriv: '#!/bin/sh\nwhile [ "$1" != env ]; do shift; done\nexec "$@"\n',
  })
  chmodSync(join(root, 'command'), 0o755)
  chmodSync(join(root, 'setpriv'), 0o755)
  const script = readFileSync(join(TREE, 'packaging/debian/strowger'), 'utf8')
    .replace('/etc/strowger/strowger.env', join(root, 'strowger.env'))
    .replace('/usr/lib/strowger/bin/strowger', join(root, 'command'))
  const env = { PATH: `${root}:${process.env['PATH']}`, STROWGER_LOG: 'debug' }
  const run = (more: Readonly<Record<string, string>> = {}) =>
    spawnSync('sh', ['-c', script, 'strowger', 'calls', 'list'], { encoding: 'utf8', env: { ...env, ...more } })
  const ran = run()
  t.same(
    [ran.stdout.split('\n'), ran.stderr],
    [
      [
        'STROWGER_DATA=/var/lib/strowger',
        'STROWGER_DOMAIN=voice.example.com',
        'STROWGER_LOG=debug',
        'STROWGER_MASTER_KEY=a b "c" $(id)',
        'STROWGER_SANDBOX=off',
        'STROWGER_SMTP_URL=smtp://desk:p=w@mail.example',
        'calls list',
        '',
      ],
      '',
    ],
  )
  const folder = (stdout: string) => /^STROWGER_DATA=(.*)$/m.exec(stdout)?.[1]
  appendFileSync(join(root, 'strowger.env'), '\nSTROWGER_DATA=/srv/strowger\n')
  t.equal(folder(run().stdout), '/srv/strowger', 'the settings move the data')
  t.equal(folder(run({ STROWGER_DATA: '/srv/other' }).stdout), '/srv/other', 'the shell names another installation')
})

t.test('what people are told to type is the command of their installation', async t => {
  const service = { command: 'strowger', start: 'systemctl start strowger' }
  for (const [tree, is_release, wanted] of [
    ['/usr/lib/strowger', true, service],
    ['/opt/strowger-0.1.0', true, service],
    ['/opt/strowger', false, { command: 'bin/strowger', start: 'npm start' }],
    ['/root/strowger-0.1.0-linux-x64', true, { command: 'bin/strowger', start: 'bin/strowger up' }],
  ] as const)
    t.same(wordingOf(tree, is_release), wanted, tree)
})

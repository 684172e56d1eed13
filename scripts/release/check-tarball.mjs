// Installs the tarball of a release by its own command in a Debian without compilers, upgrades it while a call runs,
// plants a failure, and removes it without a trace. A part of scripts/release/check.mjs.
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { placeSystemctl, SYSTEMCTL, serviceUpgraded, until } from './check-service.mjs'

const SECONDS = 12
const LONG_CALL = ['call', '+2348030000001', '--markup', `<Response><Pause length="${SECONDS}"/></Response>`]
const COMMAND = '/usr/local/bin/strowger'
/** A release whose platform does not start. */
const PLANTED = '#!/bin/sh\ncase " $* " in *" up "*) exit 1 ;; esac\n'

/**
 * `debian` is the root folder, `inside(...words)` runs a command in it and returns what it prints, `below(root, words)`
 * gives the words of `unshare` for that.
 */
export async function checkTarball({ debian, tarball, settings, inside, below, env, say }) {
  const name = tarball.replace(/\.tar\.gz$/, '').replace(/^.*\//, '')
  const traces = () => inside('find', '/opt', '/etc', '/usr/local', '/var/lib', '/root', '-xdev', '-path', '*strowger*')
  cpSync(tarball, join(debian, 'root/release.tar.gz'))
  inside('apt-get', 'install', '-y', '-qq', '--no-install-recommends', 'systemd')
  const before = traces()
  placeSystemctl(debian, settings)
  inside('tar', '-xzf', '/root/release.tar.gz', '-C', '/root')
  const installed = inside(`/root/${name}/bin/strowger`, 'install', '--start')
  if (!/^made {2}\/opt\/strowger$/m.test(installed)) throw new Error(`install says:\n${installed}`)
  const unit = '/etc/systemd/system/strowger.service'
  inside('systemd-analyze', 'verify', unit)
  const exposure = inside('systemd-analyze', 'security', '--offline=yes', '--no-pager', '--threshold=25', unit)
  say(/^.*Overall exposure level.*$/m.exec(exposure)?.[0].trim() ?? exposure)
  inside(SYSTEMCTL, 'is-enabled', 'strowger')
  const again = inside(COMMAND, 'install')
  if (/^made/m.test(again)) throw new Error(`a second install says:\n${again}`)
  inside('rm', '-r', `/root/${name}`)
  say('the tarball is installed as a service, and once')
  await serviceUpgraded({ debian, inside, below, env, say })
  await upgraded({ debian, name, settings, inside, below, env, say })
  inside(COMMAND, 'uninstall', '--purge', '--yes')
  const left = traces()
  if (left !== before) throw new Error(`uninstall --purge left:\n${left}`)
  say('uninstall --purge leaves nothing')
}

/** An installation of another folder and user, which needs no service manager, is upgraded while a call runs. */
async function upgraded({ debian, name, settings, inside, below, env, say }) {
  const home = '/srv/telephone'
  const user = ['setpriv', '--reuid=2000', '--regid=2000', '--clear-groups', '--no-new-privs', '--bounding-set=-all']
  const words = command => [
    ...user,
    'env',
    '-i',
    'PATH=/usr/bin:/bin',
    `STROWGER_DATA=${home}/data`,
    ...settings,
    ...command,
  ]
  const as = (...command) => inside(...words(command))
  const strowger = (...more) => as(`${home}/strowger/bin/strowger`, ...more)
  mkdirSync(join(debian, home), { recursive: true })
  const release = version => {
    const folder = join(debian, home, version)
    // By a command of the folder: from here, an absolute link would lead out of it.
    inside('cp', '-rL', '/opt/strowger/.', `${home}/${version}`)
    const manifest = join(folder, 'package.json')
    writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), version }))
    return folder
  }
  release('1.0.0')
  release('2.0.0')
  const broken = release('3.0.0')
  const begin = join(broken, 'bin/strowger')
  writeFileSync(begin, readFileSync(begin, 'utf8').replace(/^#!.*\n/, PLANTED))
  inside('ln', '-s', '1.0.0', `${home}/strowger`)
  inside('chown', '-R', '2000:2000', home)
  const running = () => JSON.parse(readFileSync(join(debian, home, 'data/run/platform.json'), 'utf8'))
  const platform = spawn('unshare', below(debian, words([`${home}/strowger/bin/strowger`, 'up'])), {
    stdio: ['ignore', 'ignore', 'inherit'],
    env,
  })
  const stopped = new Promise(resolve => platform.once('exit', resolve))
  const calls = () => JSON.parse(strowger('calls', 'list', '--json'))
  await until('it is ready', () => JSON.parse(strowger('status', '--json')).every(({ state }) => state !== 'down'))
  const call = spawn('unshare', below(debian, words([`${home}/strowger/bin/strowger`, ...LONG_CALL])), { env })
  let printed = ''
  call.stdout.on('data', chunk => {
    printed += chunk
  })
  await until('the call is answered', () => printed.includes('in-progress'))
  say(strowger('upgrade', `${home}/2.0.0`, '--link', `${home}/strowger`).trim())
  await stopped
  const [row] = calls()
  if (row.status !== 'completed' || row.seconds < SECONDS) throw new Error(`the call was cut: ${JSON.stringify(row)}`)
  if (running().version !== '2.0.0') throw new Error('the new version does not run')
  say(`upgraded while a call ran; it ended by itself after ${SECONDS} s`)
  let told = ''
  try {
    told = strowger('upgrade', `${home}/3.0.0`, '--link', `${home}/strowger`)
  } catch (error) {
    told = `${error.stdout}`
  }
  if (!told.includes('the way back')) throw new Error(`a release that does not start was installed:\n${told}`)
  if (running().version !== '2.0.0') throw new Error('the way back leads nowhere')
  strowger('call', '+2348030000001', '--markup', '<Response><Pause length="1"/></Response>')
  if (calls().length !== 2) throw new Error('calls were lost')
  say('a release that does not start was taken back; calls go on')
  process.kill(running().pid, 'SIGTERM')
  await until('it has stopped', () => !existsSync(join(debian, home, 'data/run/supervisor.pid')))
  inside('rm', '-r', home)
  say(`${name} was upgraded`)
}

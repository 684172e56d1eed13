import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { machineAt } from '../setup/system-packages.mjs'

/** Where npm packages of interop go: `npm test` must not grow by them. */
const PACKAGES = 'build/interop'

/** What each subject needs besides the tests: a command and its Debian package, or an npm package and its version. */
const NEEDS = {
  kamailio: [{ command: 'kamailio', apt: 'kamailio' }],
  linphone: [{ command: 'linphonec', apt: 'linphone-cli' }],
  browsers: [{ npm: 'jssip', version: '3.10.1' }],
}

/** Installs what a subject needs when asked to. Returns what it still lacks, as a sentence; null when nothing. */
export function setUp(subject, install) {
  const machine = machineAt()
  for (const { command, apt, npm, version } of NEEDS[subject] ?? []) {
    const present = () => (npm ? existsSync(join(PACKAGES, 'node_modules', npm)) : machine.command(command))
    if (present()) continue
    if (install && npm)
      run('npm', ['install', '--no-save', '--ignore-scripts', '--prefix', PACKAGES, `${npm}@${version}`])
    else if (install) run('apt-get', ['install', '-y', '--no-install-recommends', apt])
    if (!present()) return `${npm ?? apt} is missing`
  }
  return null
}

function run(command, args) {
  const sudo = command === 'apt-get' && process.getuid?.() !== 0 ? ['sudo', command] : [command]
  spawnSync(sudo[0], [...sudo.slice(1), ...args], {
    stdio: 'inherit',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
}

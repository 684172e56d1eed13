// Upgrades an installed service as its operator does, as root: while a call runs, and to a release that fails after it
// has changed the data. The platform is another user, so what root leaves must be that user's. A part of
// scripts/release/check-tarball.mjs.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const COMMAND = '/usr/local/bin/strowger'
const UNIT = 'strowger.service'
const DATA = '/var/lib/strowger'
const SECONDS = 12
const CALL = seconds => ['call', '+2348030000001', '--markup', `<Response><Pause length="${seconds}"/></Response>`]

/** No systemd runs in the folder. This one changes files, and starts what the unit says, as its user. */
export const SYSTEMCTL = '/usr/local/sbin/systemctl'
const PLAYED = settings => `#!/bin/sh
pid=${DATA}/run/supervisor.pid
case "$1" in
start)
  [ ! -e $pid ] || exit 0
  command=$(sed -n 's/^ExecStart=//p' /etc/systemd/system/${UNIT})
  setsid setpriv --reuid=strowger --regid=strowger --init-groups --bounding-set=-all --no-new-privs \\
    env -i PATH=/usr/bin:/bin STROWGER_DATA=${DATA} ${settings.join(' ')} $command >>/root/service.log 2>&1 </dev/null &
  exit ;;
stop)
  kill "$(cat $pid)"
  while [ -e $pid ]; do sleep 0.2; done
  exit ;;
esac
for word; do
  shift
  [ "$word" = --now ] || set -- "$@" "$word"
done
SYSTEMD_OFFLINE=1 exec /usr/bin/systemctl "$@"
`

export function placeSystemctl(debian, settings) {
  mkdirSync(join(debian, 'run/systemd/system'), { recursive: true })
  writeFileSync(join(debian, SYSTEMCTL), PLAYED(settings), { mode: 0o755 })
}

/** Resolves when \`look\` returns something true; what it throws meanwhile does not count. */
export async function until(what, look) {
  for (const limit = Date.now() + 180_000; Date.now() < limit; ) {
    try {
      if (look()) return
    } catch {
      // It is not up yet, and the command says so.
    }
    await new Promise(resolve => setTimeout(resolve, 500))
  }
  throw new Error(`not within three minutes: ${what}`)
}

/**
 * In the place of a release's Node.js, which the unit starts: it edits what the release says of its rehearsal, so that
 * the way back sets the database back, and does not start the platform.
 */
const BROKEN = `#!/bin/sh
node=$(dirname "$(readlink -f "$0")")/unedited
case " $* " in
*" up "*) exit 1 ;;
*" --rehearse "*) "$node" "$@" | sed 's/"migrations":\\[/"migrations":["9999-planted",/'; exit ;;
esac
exec "$node" "$@"
`

/** Packs the installed release as another version; \`edit\` changes its command. Returns the archive. */
function packed(debian, inside, version, node) {
  const folder = `/root/next/strowger-${version}-linux-x64`
  inside('mkdir', '-p', '/root/next')
  inside('cp', '-a', '/opt/strowger/.', folder)
  const at = path => join(debian, folder, path)
  const manifest = JSON.parse(readFileSync(at('package.json'), 'utf8'))
  writeFileSync(at('package.json'), JSON.stringify({ ...manifest, version }))
  if (node !== undefined) {
    renameSync(at('node/bin/node'), at('node/bin/unedited'))
    writeFileSync(at('node/bin/node'), node, { mode: 0o755 })
  }
  const archive = `/root/${version}.tar.gz`
  inside('sh', '-c', `tar -C /root/next -c strowger-${version}-linux-x64 | gzip -1 >${archive}`)
  inside('rm', '-r', '/root/next')
  return archive
}

export async function serviceUpgraded({ debian, inside, below, env, say }) {
  const running = () => JSON.parse(readFileSync(join(debian, DATA, 'run/platform.json'), 'utf8'))
  const calls = () => JSON.parse(inside(COMMAND, 'calls', 'list', '--json'))
  const upgrade = archive => inside(COMMAND, 'upgrade', archive, '--link', '/opt/strowger', '--service', UNIT)
  inside(SYSTEMCTL, 'start', UNIT)
  await until('the service is ready', () =>
    JSON.parse(inside(COMMAND, 'status', '--json')).every(({ state }) => state !== 'down'),
  )
  const call = spawn('unshare', below(debian, [COMMAND, ...CALL(SECONDS)]), { env })
  let printed = ''
  call.stdout.on('data', chunk => {
    printed += chunk
  })
  await until('the call is answered', () => printed.includes('in-progress'))
  upgrade(packed(debian, inside, '1.5.0'))
  const [row] = calls()
  if (row.status !== 'completed' || row.seconds < SECONDS) throw new Error(`the call was cut: ${JSON.stringify(row)}`)
  if (running().version !== '1.5.0') throw new Error('the new version does not run')
  let told = ''
  try {
    told = upgrade(packed(debian, inside, '1.6.0', BROKEN))
  } catch (error) {
    told = `${error.stdout}`
  }
  if (!told.includes('is kept in')) throw new Error(`the database was not set back:\n${told}`)
  if (running().version !== '1.5.0') throw new Error('the way back leads nowhere')
  const others = inside('find', DATA, '!', '-user', 'strowger')
  if (others !== '') throw new Error(`root left files that the service cannot open:\n${others}`)
  inside(COMMAND, ...CALL(1))
  if (calls().length !== 2) throw new Error('calls were lost')
  say('the service was upgraded by root while a call ran, and taken back with its database; calls go on')
  inside(SYSTEMCTL, 'stop', UNIT)
  if (existsSync(join(debian, DATA, 'run/supervisor.pid'))) throw new Error('it has not stopped')
  inside('sh', '-c', 'rm /root/*.tar.gz /root/service.log')
}

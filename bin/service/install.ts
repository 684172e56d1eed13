import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { StartRefused } from '../../core/runtime/start-refused.ts'
import { at, installedFolder, PACKAGED, PLACES, refuseOthers, type System, UNIT, USER, versionAt } from './places.ts'

const NO_SHELL = ['--shell', '/usr/sbin/nologin']

/** A thing of the installation, and whether it had to be made. */
interface Thing {
  readonly what: string
  readonly made: boolean
}

/**
 * Installs the release of this command as a service: its folder below /opt with a link to it, the user, settings, data
 * folder, command and unit. What is there as it should be stays; settings and data always stay. @throws StartRefused
 */
export async function install(on: System, options: { readonly start: boolean }): Promise<readonly Thing[]> {
  refuseOthers(on, 'install')
  const version = versionAt(on.tree)
  if (version === null) throw new StartRefused(`${on.tree} is no release of Strowger`)
  const folder = `${PLACES.versions}/strowger-${version}`
  refuseClash(on, folder)
  const placed: Thing[] = []
  const place = async (what: string, is_there: boolean, make: () => unknown): Promise<void> => {
    if (!is_there) await make()
    placed.push({ what, made: !is_there })
  }
  const there = (path: string): boolean => existsSync(at(on, path))
  await place(`user ${USER}`, hasUser(on), () =>
    on.run(
      'useradd',
      '--system',
      '--user-group',
      '--no-create-home',
      ...['--home-dir', PLACES.data],
      ...NO_SHELL,
      USER,
    ),
  )
  await place(folder, there(folder), () => copyRelease(on, folder))
  await place(PLACES.link, there(PLACES.link), () => symlinkSync(`strowger-${version}`, at(on, PLACES.link)))
  await place(PLACES.settings, there(PLACES.settings), async () => {
    const file = at(on, PLACES.settings)
    mkdirSync(dirname(file), { recursive: true })
    cpSync(join(on.tree, 'packaging/strowger.env'), file)
    await on.run('chown', `root:${USER}`, dirname(file))
    await on.run('chmod', '0750', dirname(file))
    // systemd alone reads it: secrets in it are not for the processes that strangers reach.
    await on.run('chmod', '0600', file)
  })
  await place(PLACES.data, there(PLACES.data), () =>
    on.run('install', ...['-d', '-m', '0700', '-o', USER, '-g', USER], at(on, PLACES.data)),
  )
  for (const [path, source, mode] of [
    [PLACES.command, 'packaging/debian/strowger', 0o755],
    [PLACES.unit, `packaging/systemd/${UNIT}`, 0o644],
  ] as const) {
    const text = adapted(readFileSync(join(on.tree, source), 'utf8'))
    await place(path, there(path) && readFileSync(at(on, path), 'utf8') === text, () => write(at(on, path), text, mode))
  }
  await on.run('systemctl', 'daemon-reload')
  if (options.start) await on.run('systemctl', 'enable', '--now', UNIT)
  return placed
}

/** Refuses before anything is changed. */
function refuseClash(on: System, folder: string): void {
  if (existsSync(at(on, PACKAGED)))
    throw new StartRefused('the Debian package of Strowger is installed: remove it first, or upgrade it by apt')
  const installed = installedFolder(on)
  if (installed !== null && installed !== at(on, folder))
    throw new StartRefused(
      `${PLACES.link} leads to ${versionAt(installed) ?? installed}: strowger upgrade RELEASE --link ${PLACES.link} ` +
        `--service ${UNIT}`,
    )
  const bill = 'sbom.cdx.json'
  const other = at(on, join(folder, bill))
  if (existsSync(at(on, folder)) && on.tree !== at(on, folder))
    if (!existsSync(other) || readFileSync(other, 'utf8') !== readFileSync(join(on.tree, bill), 'utf8'))
      throw new StartRefused(`${folder} holds another build of this version: remove it first`)
}

const hasUser = (on: System): boolean => new RegExp(`^${USER}:`, 'm').test(readFileSync(at(on, '/etc/passwd'), 'utf8'))

/** A kill leaves no half release under its name. */
async function copyRelease(on: System, folder: string): Promise<void> {
  const part = `${at(on, folder)}.new`
  rmSync(part, { recursive: true, force: true })
  mkdirSync(dirname(part), { recursive: true })
  cpSync(on.tree, part, { recursive: true, preserveTimestamps: true })
  await on.run('chown', '-R', 'root:root', part)
  // Commands create files for their user alone; the platform is another one.
  await on.run('chmod', '-R', 'go=u-w', part)
  await on.run('sync', '--file-system', part)
  renameSync(part, at(on, folder))
}

/** The unit and the command of the Debian package, for the places of a tarball. */
const adapted = (text: string): string =>
  text.replaceAll('/usr/share/doc/strowger', `${PLACES.link}/docs`).replaceAll(PACKAGED, PLACES.link)

function write(file: string, text: string, mode: number): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.new`, text)
  // Commands create files for their user alone.
  chmodSync(`${file}.new`, mode)
  renameSync(`${file}.new`, file)
}

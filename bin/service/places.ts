import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { StartRefused } from '../../core/runtime/start-refused.ts'
import { TREE } from '../../core/runtime/tree.ts'

/** Where `strowger install` puts a release, and what systemd, a shell and the platform find there. */
export const PLACES = {
  versions: '/opt',
  link: '/opt/strowger',
  settings: '/etc/strowger/strowger.env',
  unit: '/etc/systemd/system/strowger.service',
  command: '/usr/local/bin/strowger',
  data: '/var/lib/strowger',
} as const

/** Where the Debian package lies, as its files say, which `install` adapts. */
export const PACKAGED = '/usr/lib/strowger'
export const USER = 'strowger'
export const UNIT = 'strowger.service'

/** What of the machine is used: another root folder and other programs in tests. */
export interface System {
  /** Folder of the release whose command runs. */
  readonly tree: string
  /** The root of the file system, such as `/`. */
  readonly root: string
  readonly is_root: boolean
  /** Runs a program that changes the machine. Returns what it prints. @throws StartRefused */
  readonly run: (program: string, ...words: readonly string[]) => Promise<string>
}

export const thisSystem = (): System => ({
  tree: TREE,
  root: '/',
  is_root: process.geteuid?.() === 0,
  async run(program, ...words) {
    // Most commands learn only where things lie.
    const { runBare } = await import('../../core/runtime/bare-child.ts')
    const end = await runBare(program, words, { max_bytes: 1024 * 1024 })
    if (!end.ok) throw new StartRefused(end.detail)
    return end.stdout.toString()
  },
})

export const at = ({ root }: Pick<System, 'root'>, path: string): string => join(root, path)

/** The version of a folder of Strowger; null for another folder. */
export function versionAt(folder: string): string | null {
  const file = join(folder, 'package.json')
  if (!existsSync(file) || !existsSync(join(folder, 'bin/strowger'))) return null
  const { name, version } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly name?: string
    readonly version: string
  }
  return name === 'strowger' ? version : null
}

/** The folder to which the link of the installation leads; null for none. */
export const installedFolder = (on: Pick<System, 'root'>): string | null =>
  existsSync(at(on, PLACES.link)) ? realpathSync(at(on, PLACES.link)) : null

export const hasSystemd = (on: Pick<System, 'root'>): boolean => existsSync(at(on, '/run/systemd/system'))

/** @throws StartRefused unless this command is that of a release, and may change the machine */
export function refuseOthers(on: System, what: string): void {
  if (!existsSync(join(on.tree, 'node/bin/node')))
    throw new StartRefused(`${on.tree} is no release: unpack the .tar.gz of one, and ${what} by its bin/strowger`)
  if (on.tree === at(on, PACKAGED))
    throw new StartRefused('this Strowger is a Debian package: apt installs, upgrades and removes it')
  if (!on.is_root) throw new StartRefused(`to ${what} needs root`)
  if (!hasSystemd(on))
    throw new StartRefused(`this machine does not run systemd: have its service manager run ${on.tree}/bin/strowger up`)
}

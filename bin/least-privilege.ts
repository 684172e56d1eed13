import { spawnSync } from 'node:child_process'
import { chownSync, closeSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Config } from '../core/runtime/config.ts'
import { giveFolder, programsUser, type UserName, userOf } from '../core/runtime/own-user.ts'
import { builtModule, TREE } from '../core/runtime/tree.ts'
import type { Environment } from '../core/runtime/variables.ts'
import type { ProcessName } from './child-environment.ts'
import { confining, confiningPrograms } from './confinement.ts'

/** How to start a process that strangers' packets reach, with fewer rights than ours where that is possible. */
export interface Fewer {
  readonly by: readonly string[]
  /** The user that it becomes once it has started; null: it remains user 0. */
  readonly user: number | null
  /** The command by which the supervisor runs programs for it, with fewer rights than its own. */
  readonly as_programs: readonly string[]
}

/**
 * Capabilities (capabilities(7)) that the processes which handle strangers' packets keep when they remain user 0: for
 * ports below 1024, and for the packet ring, real-time threads and locked buffers of the media plane.
 */
const KEPT: Readonly<Record<UserName, readonly string[]>> = {
  edge: ['net_bind_service'],
  media: ['net_bind_service', 'net_raw', 'sys_nice', 'ipc_lock'],
  sandbox: [],
}
/** Further capabilities to open files of any owner and to change users. Changing users drops them all. */
const TO_CHANGE = ['setuid', 'setgid', 'chown', 'dac_override']
const UNPRIVILEGED_PORTS = 1024
/** Samples of the files that processes load after they have changed users. */
const LATE = [
  ['build', relative(join(TREE, 'build'), builtModule('media/files/audio-thread.js'))],
  ['node_modules', 'mpg123-decoder/package.json'],
  ['native', 'build/Release/media.node'],
] as const

/**
 * Shell script that fails when any capability is left, because setpriv does not report one that it cannot drop. Prints
 * the first argument before `--` that is not readable, or the first after it that is not writable.
 */
const LOOK =
  'grep -q "^CapEff:[[:space:]]*0*$" /proc/self/status || exit 1; ' +
  'while [ "$1" != -- ]; do [ -r "$1" ] || { echo "$1"; exit 1; }; shift; done; shift; ' +
  'for one; do [ -w "$one" ] || { echo "$one"; exit 1; }; done'

const dropping = (kept: readonly string[]): string[] => [
  '--bounding-set',
  ['-all', ...kept.map(name => `+${name}`)].join(','),
  '--inh-caps',
  '-all',
  '--no-new-privs',
]

/** How far the processes that handle strangers' packets can drop root. */
export type ProcessStanding =
  /** The platform was not started by root: there is nothing to drop. */
  | { readonly who: 'not_root' }
  | { readonly who: 'own_users'; readonly first: number }
  /** User 0 without its capabilities. `why` is what prevents separate users; null: the operator turned them off. */
  | { readonly who: 'bare_root'; readonly why: string | null }
  | { readonly who: 'root'; readonly why: string }

type Place = Pick<Config, 'data_dir' | 'run_dir' | 'tls' | 'users' | 'rtp_ports'>

export function standing(config: Place): ProcessStanding {
  if (!isRoot()) return { who: 'not_root' }
  const { users: first } = config
  const no_users = first === null ? null : hindranceOfUsers(config, first)
  if (first !== null && no_users === null) return { who: 'own_users', first }
  const no_drop = hindrance(config)
  return no_drop === null ? { who: 'bare_root', why: no_users } : { who: 'root', why: no_drop }
}

/** Returns how to start a process; null when it keeps all our rights. */
export function startedWith(
  name: ProcessName,
  at: ProcessStanding,
  config: Pick<Config, 'media_realtime'> & Parameters<typeof confining>[1],
  env: Environment,
): Fewer | null {
  if (!isUserName(name)) return null
  const confined = confining(name, config, env)
  const programs = confiningPrograms(config)
  if (at.who === 'not_root' || at.who === 'root') return { by: confined, user: null, as_programs: programs }
  if (at.who === 'bare_root')
    return {
      by: ['setpriv', ...dropping(KEPT[name]), ...confined],
      user: null,
      as_programs: ['setpriv', ...dropping([]), ...programs],
    }
  const drop = ['setpriv', ...dropping([...KEPT[name], ...TO_CHANGE])]
  const media = name === 'media'
  return {
    // The packet threads drop their real-time priority at times and must be allowed to raise it again.
    by: [...(media && config.media_realtime && mayGrant(RTPRIO) ? RTPRIO : []), ...drop, ...confined],
    user: userOf(name, at.first),
    as_programs: [...asPrograms(at.first), ...programs],
  }
}

/** Returns the command that runs a program as the separate user of programs. */
export function asPrograms(first: number): string[] {
  const id = String(programsUser(first))
  return ['setpriv', '--reuid', id, '--regid', id, '--clear-groups', ...dropping([])]
}

const RTPRIO = ['prlimit', '--rtprio=1:1']
const mayGrant = ([command = '', ...words]: readonly string[]): boolean =>
  spawnSync(command, [...words, 'true']).status === 0

const isUserName = (name: ProcessName): name is UserName => name in KEPT

/** Returns the standing of a start and gives the recordings to the user that writes them. Root can always read them. */
export function stand(config: Place): ProcessStanding {
  const at = standing(config)
  if (at.who === 'not_root' || at.who === 'root') return at
  try {
    giveFolder(join(config.data_dir, 'recordings'), at.who === 'own_users' ? userOf('media', at.first) : 0)
    return at
  } catch (error) {
    return { who: 'root', why: `the recordings cannot be given to another user (${(error as Error).message})` }
  }
}

export const isRoot = (): boolean => process.geteuid?.() === 0

/** Returns why processes cannot become separate users, or null when they can. */
export function hindranceOfUsers({ run_dir, rtp_ports }: Place, first: number): string | null {
  if (rtp_ports.first !== 0 && rtp_ports.first < UNPRIVILEGED_PORTS)
    return 'STROWGER_RTP_PORTS has ports below 1024, which are opened call by call'
  const [setpriv = '', ...words] = asPrograms(first)
  const folders = [...new Set(LATE.map(([part]) => part))]
  const doors = folders.map(part => openSync(join(TREE, part), 'r'))
  const looked = LATE.map(([part, file]) => `/proc/self/fd/${3 + folders.indexOf(part)}/${file}`)
  const { status, stdout, error } = spawnSync(setpriv, [...words, 'sh', '-c', LOOK, 'sh', ...looked, '--'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe', ...doors],
  })
  for (const door of doors) closeSync(door)
  if (error) return 'setpriv (util-linux) is not installed'
  if (status === 0) return hindranceOfOwners(run_dir, first)
  const at = looked.indexOf(stdout.trim())
  const [part, file] = LATE[at] ?? []
  return part === undefined
    ? 'user ids cannot be changed here'
    : `${join(TREE, part, file ?? '')} is not readable for others`
}

function hindranceOfOwners(run_dir: string, user: number): string | null {
  const folder = mkdtempSync(join(run_dir, 'owner-'))
  try {
    chownSync(folder, user, user)
    return null
  } catch (error) {
    return `the data folder takes no other owner (${(error as NodeJS.ErrnoException).code})`
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * Returns why root's capabilities cannot be dropped, or null. Without them root needs ordinary file permissions: it
 * must own the tree, the keys and the data, or have access to them. `stand` makes it the owner of the recordings.
 */
export function hindrance(config: Pick<Config, 'data_dir' | 'run_dir' | 'tls'>): string | null {
  const { data_dir, run_dir, tls } = config
  const read = [process.execPath, builtModule('bin/main.js'), join(TREE, 'node_modules'), join(TREE, 'native')]
  const data = readdirSync(data_dir).filter(name => name !== 'recordings')
  const written = [data_dir, run_dir, ...data.map(name => join(data_dir, name))]
  const looked = [...read, ...(tls ? [tls.cert_file, tls.key_file] : []), '--', ...written]
  const { status, stdout, error } = spawnSync('setpriv', [...dropping([]), 'sh', '-c', LOOK, 'sh', ...looked], {
    encoding: 'utf8',
  })
  if (status === 0) return null
  if (error) return 'setpriv (util-linux) is not installed'
  return stdout === '' ? 'setpriv may not drop capabilities here' : `${stdout.trim()} belongs to another user`
}

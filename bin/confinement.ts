import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Settings } from '../core/runtime/config.ts'
import { MEDIA_CODE } from '../core/runtime/doors.ts'
import { METRICS_FOLDER } from '../core/runtime/metrics-folder.ts'
import type { UserName } from '../core/runtime/own-user.ts'
import { builtModule, TREE } from '../core/runtime/tree.ts'
import type { Environment } from '../core/runtime/variables.ts'
import { JOURNAL_FILES } from '../signaling/edge/journal.ts'

// What the processes that strangers' packets reach may do beyond their rights as users: which files they may open, and
// that they start no program. native/src/confine enforces it, from before they run until they end.

type Place = Pick<Settings, 'data_dir' | 'run_dir' | 'tls' | 'confinement'>

/** Starts a program with these restraints. */
export const LAUNCHER = join(TREE, 'native/build/Release/confine')

/**
 * What Node.js, the libraries and the resolver read of a system. /etc is a whole, because programs that write
 * resolv.conf replace it. Secrets in it are kept by their owner (`docs/operations.md`).
 */
const OF_THE_SYSTEM = [
  ...['/usr', '/lib', '/lib64', '/nix/store', '/gnu/store', '/etc', '/proc', '/sys', '/dev/urandom', '/dev/random'],
  ...['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager'],
]
/** What processes load: our build, packages, the native part. The data may lie beside them. */
const OF_THE_TREE = [builtModule('.'), ...['node_modules', 'native', 'package.json'].map(part => join(TREE, part))]

/** What a process may open besides: paths in the data folder, but those of `tls`, which are absolute. */
interface Needs {
  readonly read?: readonly string[]
  readonly write?: readonly string[]
  /** Folders in which it makes its sockets. */
  readonly sockets: readonly string[]
  readonly calls?: readonly string[]
}

const METRICS = join('run', METRICS_FOLDER)
const NEEDS: Readonly<Record<UserName, Needs>> = {
  edge: { read: ['tls'], write: JOURNAL_FILES.map(name => join('run', name)), sockets: ['run', METRICS] },
  media: {
    write: ['recordings', join('run', MEDIA_CODE)],
    sockets: ['run', METRICS],
    calls: ['--io-uring', '--packets'],
  },
  sandbox: { sockets: [METRICS] },
}

/** Returns the command that confines a process; empty when it remains unconfined. */
export function confining(name: UserName, config: Place, env: Environment): string[] {
  if (!isConfined(config)) return []
  const { data_dir, tls } = config
  const { read = [], write = [], sockets, calls = [] } = NEEDS[name]
  const inside = (path: string): string => join(data_dir, path)
  const own = name === 'edge' && tls ? [tls.cert_file, tls.key_file] : []
  const named = [env['NODE_EXTRA_CA_CERTS'], env['SSL_CERT_FILE'], env['SSL_CERT_DIR'], env['LD_PRELOAD']]
  const libraries = [...named, ...(env['LD_LIBRARY_PATH'] ?? '').split(delimiter)].filter(path => path)
  const loaded = librariesIn(readFileSync('/proc/self/maps', 'utf8'))
  const readable = [...OF_THE_SYSTEM, ...OF_THE_TREE, ...own, ...libraries, ...loaded, ...read.map(inside)]
  return [
    LAUNCHER,
    ...readable.flatMap(path => ['--read', path ?? '']),
    ...write.flatMap(path => ['--write', inside(path)]),
    ...sockets.flatMap(path => ['--sockets', inside(path)]),
    ...['--run', process.execPath, ...calls, '--'],
  ]
}

/**
 * Returns the libraries of a memory map (proc_pid_maps(5)) outside of the system's folders. A Node.js of Homebrew, for
 * one, loads its own, and the processes run the same.
 */
export function librariesIn(maps: string): string[] {
  const found = [...maps.matchAll(/^\S+ ..x\S* (?:\S+ +){3}(\/.*\.so\b\S*)$/gm)].map(([, path]) => path ?? '')
  return [...new Set(found)].filter(path => !OF_THE_SYSTEM.some(folder => path.startsWith(`${folder}/`)))
}

/** The most files that a program gets as open descriptors (core/runtime/bare-child.ts). */
const FILES = [3, 4, 5, 6].map(fd => `/proc/self/fd/${fd}`)

/** Returns the command that confines a program which the supervisor runs for such a process. It names its arguments. */
export function confiningPrograms(config: Place): string[] {
  if (!isConfined(config)) return []
  const readable = [...OF_THE_SYSTEM.slice(1), ...FILES].flatMap(path => ['--read', path])
  return [LAUNCHER, ...readable, '--run', '/usr', '--run', '/bin', '--programs', '--']
}

/** Makes what the confined processes write to: they may open these files and folders, and not make them. */
export function makeWritable({ data_dir }: Pick<Place, 'data_dir'>): void {
  for (const folder of ['recordings', METRICS, join('run', MEDIA_CODE)])
    mkdirSync(join(data_dir, folder), { recursive: true, mode: 0o700 })
  for (const name of JOURNAL_FILES) closeSync(openSync(join(data_dir, 'run', name), 'a', 0o600))
}

const isConfined = ({ confinement }: Place): boolean => confinement && existsSync(LAUNCHER)

/** Returns why the processes are not confined, wholly or in part; null when they are. */
export function hindranceOfConfinement(): string | null {
  const { status, stdout } = spawnSync(LAUNCHER, ['--check'], { encoding: 'utf8' })
  if (status !== 0) return `${LAUNCHER} does not run here: npm run setup`
  const has = JSON.parse(stdout) as { readonly landlock: number; readonly seccomp: boolean }
  if (has.landlock === 0)
    return 'the kernel has no Landlock, or it is off (Linux 5.13, lsm=landlock), so files are not kept from them'
  return has.seccomp ? null : 'the kernel filters no system calls (CONFIG_SECCOMP_FILTER)'
}

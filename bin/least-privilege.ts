import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../core/runtime/config.ts'
import type { ProcessName } from './child-environment.ts'

/**
 * What those that strangers' packets reach may keep of root's rights (capabilities(7)): ports below 1024; the packet
 * ring, real-time threads and locked buffers of the media plane.
 */
const KEPT: Readonly<Partial<Record<ProcessName, readonly string[]>>> = {
  edge: ['net_bind_service'],
  media: ['net_bind_service', 'net_raw', 'sys_nice', 'ipc_lock'],
  sandbox: [],
}
const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

/**
 * Fails where a right is left: setpriv says nothing when it may not drop one. Names the first of $1… up to -- that
 * cannot be read, and of those after it the first that cannot be written.
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

/** The command that a process is started by, so that it has only these rights; null where it keeps all of ours. */
export const startedBy = (name: ProcessName): readonly string[] | null => {
  const kept = KEPT[name]
  return kept ? ['setpriv', ...dropping(kept)] : null
}

export const isRoot = (): boolean => process.geteuid?.() === 0

/**
 * Why root's rights cannot be dropped, or null. Without them root is one user among others: the tree, the keys and the
 * data must be its own or be open to it.
 */
export function hindrance(config: Pick<Config, 'data_dir' | 'run_dir' | 'tls'>): string | null {
  const { data_dir, run_dir, tls } = config
  const read = [process.execPath, join(root, 'build/bin/main.js'), join(root, 'node_modules'), join(root, 'native')]
  const written = [data_dir, run_dir, ...readdirSync(data_dir).map(name => join(data_dir, name))]
  const looked = [...read, ...(tls ? [tls.cert_file, tls.key_file] : []), '--', ...written]
  const { status, stdout, error } = spawnSync('setpriv', [...dropping([]), 'sh', '-c', LOOK, 'sh', ...looked], {
    encoding: 'utf8',
  })
  if (status === 0) return null
  if (error) return 'setpriv (util-linux) is not installed'
  return stdout === '' ? 'setpriv may not drop capabilities here' : `${stdout.trim()} belongs to another user`
}

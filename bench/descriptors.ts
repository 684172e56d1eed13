import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

// Counts a process's open descriptors by kind. This reveals leaks of things that no counter tracks.

/** Counts by kind: files, pipes, sockets by protocol, and kernel objects (`eventfd`, `io_uring`, …). */
type Descriptors = Readonly<Record<string, number>>

const PROTOCOLS = ['udp', 'udp6', 'tcp', 'tcp6', 'unix'] as const
/** The state of a listening TCP socket in /proc/net/tcp. */
const LISTENS = '0A'

/** Maps the inodes of sockets to their kinds. */
function sockets(pid: number): Map<string, string> {
  const kinds = new Map<string, string>()
  for (const protocol of PROTOCOLS) {
    const [, ...lines] = readFileSync(`/proc/${pid}/net/${protocol}`, 'utf8').split('\n')
    for (const line of lines) {
      const columns = line.trim().split(/\s+/)
      const inode = columns[protocol === 'unix' ? 6 : 9]
      const listens = protocol.startsWith('tcp') && columns[3] === LISTENS
      if (inode) kinds.set(inode, `${protocol.replace('6', '')}${listens ? ' listener' : ''}`)
    }
  }
  return kinds
}

/** @throws when the process has ended */
function descriptorsOf(pid: number): Descriptors {
  const kinds = sockets(pid)
  const counts: Record<string, number> = {}
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const kind = kindOf(`/proc/${pid}/fd/${fd}`, kinds)
    if (kind !== null) counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

/** Returns the kind of a descriptor; null when it has been closed meanwhile. */
function kindOf(path: string, kinds: ReadonlyMap<string, string>): string | null {
  const target = unlessGone(() => readlinkSync(path))
  if (target === null) return null
  const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1]
  // A socket that is in no table is not connected.
  if (inode !== undefined) return kinds.get(inode) ?? 'unconnected socket'
  return /^anon_inode:\[?([^\]]+)/.exec(target)?.[1] ?? /^(pipe):/.exec(target)?.[1] ?? 'file'
}

function unlessGone<T>(look: () => T): T | null {
  try {
    return look()
  } catch (error) {
    if (/^(ENOENT|ESRCH|EINVAL)$/.test((error as NodeJS.ErrnoException).code ?? '')) return null
    throw error
  }
}

export const PROCESSES = ['signaling', 'media', 'edge', 'control', 'sandbox'] as const

/** The open descriptors of each process of a platform. Leaves out a process that is restarting. */
export type Open = Readonly<
  Partial<Record<(typeof PROCESSES)[number], { readonly pid: number; readonly open: Descriptors }>>
>

export const pidOf = (folder: string, name: string): number =>
  Number(readFileSync(join(folder, 'run', `${name}.pid`), 'utf8'))

export const openOf = (folder: string): Open =>
  Object.fromEntries(
    PROCESSES.flatMap(name => {
      const found = unlessGone(() => {
        const pid = pidOf(folder, name)
        return { pid, open: descriptorsOf(pid) }
      })
      return found ? [[name, found]] : []
    }),
  )

/** Updates the idle counts: a process that has restarted gets its current counts. */
export const restAfter = (rest: Open, now: Open): Open =>
  Object.fromEntries(PROCESSES.map(name => [name, rest[name]?.pid === now[name]?.pid ? rest[name] : now[name]]))

/** Descriptors that a process opens on first use and keeps: for worker threads and connections to the state. */
const LATER = 12

/**
 * Returns a sentence for each kind of which a process has more open than its idle count (`rest`) and its owned
 * descriptors explain, when no call is up. `ports` is the number of RTP port pairs in use or quarantined. Ignores TCP
 * connections: a metric counts SIP's, and HTTP's end by themselves.
 */
export function stillOpen(rest: Open, now: Open, ports: number): string[] {
  return PROCESSES.flatMap(name => {
    const [then, today] = [rest[name], now[name]]
    // A restarted process has other idle counts.
    if (!then || then.pid !== today?.pid) return []
    return Object.entries(today.open).flatMap(([kind, count]) => {
      const before = then.open[kind] ?? 0
      const owned = before + LATER + (name === 'media' && kind === 'udp' ? 2 * ports : 0)
      return kind !== 'tcp' && count > owned ? [`${name} has ${count} of ${kind} open, ${before} at rest`] : []
    })
  })
}

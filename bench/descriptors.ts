import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

// What a process has open, by kind: what a leak is seen by whose owner counts nothing.

/** Of each kind how many: files, pipes, sockets by protocol, and what the kernel makes (`eventfd`, `io_uring`, …). */
type Descriptors = Readonly<Record<string, number>>

const PROTOCOLS = ['udp', 'udp6', 'tcp', 'tcp6', 'unix'] as const
/** State of a TCP socket that listens, in /proc/net/tcp. */
const LISTENS = '0A'

/** Inodes of sockets with their kind. */
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

/** @throws when the process is gone */
function descriptorsOf(pid: number): Descriptors {
  const kinds = sockets(pid)
  const counts: Record<string, number> = {}
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const kind = kindOf(`/proc/${pid}/fd/${fd}`, kinds)
    if (kind !== null) counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

/** Null when it was closed meanwhile. */
function kindOf(path: string, kinds: ReadonlyMap<string, string>): string | null {
  const target = unlessGone(() => readlinkSync(path))
  if (target === null) return null
  const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1]
  // A socket that is in no table is not connected yet, or not any more.
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

/** What each process of a platform has open; one that is being started again is left out. */
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

/** A process that was started meanwhile has its rest from now on. */
export const restAfter = (rest: Open, now: Open): Open =>
  Object.fromEntries(PROCESSES.map(name => [name, rest[name]?.pid === now[name]?.pid ? rest[name] : now[name]]))

/** What a process opens when it is first needed, and keeps: worker threads, connections to the state. */
const LATER = 12

/**
 * What the processes have open, when no call is up, beyond their rest and beyond what has an owner: `ports` are pairs
 * of RTP ports in use or resting. Connections over TCP are left out: SIP's are counted, and those of HTTP end by
 * themselves.
 */
export function stillOpen(rest: Open, now: Open, ports: number): string[] {
  return PROCESSES.flatMap(name => {
    const [then, today] = [rest[name], now[name]]
    // One that was killed has another rest.
    if (!then || then.pid !== today?.pid) return []
    return Object.entries(today.open).flatMap(([kind, count]) => {
      const before = then.open[kind] ?? 0
      const owned = before + LATER + (name === 'media' && kind === 'udp' ? 2 * ports : 0)
      return kind !== 'tcp' && count > owned ? [`${name} has ${count} of ${kind} open, ${before} at rest`] : []
    })
  })
}

import type { Client } from 'undici'

/** Connections between two exchanges, by origin; each leaves by itself when its server or its idle time ends it. */
export interface IdleConnections {
  take(origin: string): Client | null
  /** Keeps a client whose exchange is over, or ends it when there are enough. */
  put(origin: string, client: Client): void
  count(): number
  close(): Promise<void>
}

const MAX_PER_ORIGIN = 16
const MAX_TOTAL = 256

export function createIdleConnections(): IdleConnections {
  const idle = new Map<string, Set<Client>>()
  let total = 0

  const remove = (origin: string, client: Client): boolean => {
    const clients = idle.get(origin)
    if (!clients?.delete(client)) return false
    if (clients.size === 0) idle.delete(origin)
    total--
    return true
  }

  return {
    take(origin) {
      // The last one put back is the least likely to be closed by its server meanwhile.
      const client = [...(idle.get(origin) ?? [])].at(-1)
      if (client === undefined) return null
      remove(origin, client)
      return client
    },
    put(origin, client) {
      const clients = idle.get(origin) ?? new Set()
      if (client.destroyed || client.stats.connected === false || clients.size >= MAX_PER_ORIGIN || total >= MAX_TOTAL)
        return end(client)
      idle.set(origin, clients.add(client))
      total++
      client.once('disconnect', () => {
        if (remove(origin, client)) end(client)
      })
    },
    count: () => total,
    async close() {
      const clients = [...idle.values()].flatMap(set => [...set])
      idle.clear()
      total = 0
      await Promise.all(clients.map(client => client.destroy()))
    },
  }
}

/** undici reports the end of the requests that were in flight to their callers; `destroy` itself has nothing to tell. */
export const end = (client: Client): void => {
  client.destroy().catch(() => undefined)
}

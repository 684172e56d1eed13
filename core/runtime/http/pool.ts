import type { Client, Dispatcher } from 'undici'

/** Connections between two exchanges, by origin; each leaves by itself when its server or its idle time ends it. */
export interface IdleConnections {
  take(origin: string): Client | null
  /** Keeps a client whose exchange is over, or ends it when there are enough. */
  put(origin: string, client: Client): void
  /** Keeps a client whose answer has a body nobody wants, if that body is short and ends soon; else ends it. */
  drain(origin: string, client: Client, body: Dispatcher.ResponseData['body']): void
  count(): number
  close(): Promise<void>
}

const MAX_PER_ORIGIN = 16
const MAX_TOTAL = 256
const MAX_DRAINED_BYTES = 16 * 1024
const MAX_DRAIN_MS = 1_000

export function createIdleConnections(): IdleConnections {
  const idle = new Map<string, Set<Client>>()
  const draining = new Set<Client>()
  let total = 0

  const remove = (origin: string, client: Client): boolean => {
    const clients = idle.get(origin)
    if (!clients?.delete(client)) return false
    if (clients.size === 0) idle.delete(origin)
    total--
    return true
  }

  const put = (origin: string, client: Client): void => {
    const clients = idle.get(origin) ?? new Set()
    if (client.destroyed || !client.stats.connected || clients.size >= MAX_PER_ORIGIN || total >= MAX_TOTAL) {
      end(client)
      return
    }
    idle.set(origin, clients.add(client))
    total++
    client.once('disconnect', () => {
      if (remove(origin, client)) end(client)
    })
  }

  return {
    put,
    take(origin) {
      // The last one put back is the least likely to be closed by its server meanwhile.
      const client = [...(idle.get(origin) ?? [])].at(-1)
      if (client === undefined) return null
      remove(origin, client)
      return client
    },
    drain(origin, client, body) {
      draining.add(client)
      // `dump` ends the connection of a body that is too long or too slow; `put` sees that it is gone.
      body.dump({ limit: MAX_DRAINED_BYTES, signal: AbortSignal.timeout(MAX_DRAIN_MS) }).then(
        () => draining.delete(client) && put(origin, client),
        () => draining.delete(client) && end(client),
      )
    },
    count: () => total,
    async close() {
      const clients = [...[...idle.values()].flatMap(set => [...set]), ...draining]
      idle.clear()
      draining.clear()
      total = 0
      await Promise.all(clients.map(client => client.destroy()))
    },
  }
}

/** undici reports the end of the requests that were in flight to their callers; `destroy` itself has nothing to tell. */
export const end = (client: Client): void => {
  client.destroy().catch(() => undefined)
}

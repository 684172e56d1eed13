import type { Client, Dispatcher } from 'undici'

/** Idle connections by origin. A connection leaves the pool when its server or its idle timeout closes it. */
export interface IdleConnections {
  take(origin: string): Client | null
  /** Keeps a client after its exchange, or ends it when the pool is full. */
  put(origin: string, client: Client): void
  /** Discards an unread body and keeps the client if the body is short and ends soon; else ends the client. */
  drain(origin: string, client: Client, body: Dispatcher.ResponseData['body']): void
  count(): number
  close(): Promise<void>
}

const MAX_PER_ORIGIN = 16
const MAX_TOTAL = 256
const MAX_DRAINED_BYTES = 16 * 1024
const MAX_DRAIN_MS = 1_000

export function createIdleConnections(): IdleConnections {
  /** Clients by origin, each with its listener for a disconnect while idle. */
  const idle = new Map<string, Map<Client, () => void>>()
  const draining = new Set<Client>()
  let total = 0

  const remove = (origin: string, client: Client): boolean => {
    const clients = idle.get(origin)
    const gone = clients?.get(client)
    if (!clients?.delete(client) || gone === undefined) return false
    client.off('disconnect', gone)
    if (clients.size === 0) idle.delete(origin)
    total--
    return true
  }

  const put = (origin: string, client: Client): void => {
    const clients = idle.get(origin) ?? new Map<Client, () => void>()
    if (client.destroyed || !client.stats.connected || clients.size >= MAX_PER_ORIGIN || total >= MAX_TOTAL) {
      end(client)
      return
    }
    const gone = (): void => {
      if (remove(origin, client)) end(client)
    }
    idle.set(origin, clients.set(client, gone))
    total++
    client.once('disconnect', gone)
  }

  return {
    put,
    take(origin) {
      // The server is least likely to have closed the connection that was put back last.
      const client = [...(idle.get(origin)?.keys() ?? [])].at(-1)
      if (client === undefined) return null
      remove(origin, client)
      return client
    },
    drain(origin, client, body) {
      draining.add(client)
      // `dump` ends the connection of a body that is too long or too slow; `put` then finds it destroyed.
      body.dump({ limit: MAX_DRAINED_BYTES, signal: AbortSignal.timeout(MAX_DRAIN_MS) }).then(
        () => draining.delete(client) && put(origin, client),
        () => draining.delete(client) && end(client),
      )
    },
    count: () => total,
    async close() {
      const clients = [...[...idle.values()].flatMap(kept => [...kept.keys()]), ...draining]
      idle.clear()
      draining.clear()
      total = 0
      await Promise.all(clients.map(client => client.destroy()))
    },
  }
}

/** Ends a client. Errors of `destroy` are ignored: undici reports the aborted requests to their callers. */
export const end = (client: Client): void => {
  client.destroy().catch(() => undefined)
}

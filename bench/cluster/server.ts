import { openState, type State } from '../../core/state/index.ts'
import { startPostgres } from '../postgres-server.ts'
import { freePort } from '../up.ts'

/** How long a writer of a benchmark waits for its turn. */
const PATIENCE_MS = 60_000

export interface Served {
  readonly database_url: string
  readonly pid: () => number
  /** Has the server gather statistics, as it does by itself within a minute. */
  readonly analyze: () => Promise<void>
  /** Opens the state of the server. */
  readonly open: () => Promise<State>
}

/** Runs `work` with a PostgreSQL server of its own, which syncs each commit to the disk. */
export async function onServer<T>(work: (served: Served) => Promise<T>): Promise<T> {
  const server = await startPostgres({ port: await freePort(), settings: {} })
  const database_url = `postgres://strowger@127.0.0.1:${server.port}/postgres`
  try {
    return await work({
      database_url,
      pid: server.pid,
      analyze: () => server.tell('analyze'),
      open: () => openState({ data_dir: '', database_url, migrates: 'anybody', busy_timeout_ms: PATIENCE_MS }),
    })
  } finally {
    await server.remove()
  }
}

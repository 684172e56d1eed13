import { Client, type QueryArrayConfig, type QueryConfig } from 'pg'
import { afterAwake } from '../../runtime/awake.ts'
import type { Host } from '../../runtime/database-url.ts'
import type { Value } from '../procedures/query.ts'
import { Batch, type BatchReply, type BatchStatement, PreparedNames } from './batch.ts'
import { leavesConnection, postgresError } from './errors.ts'
import { parameterOf, parserOf } from './values.ts'

export interface TimeOuts {
  /** How long a server may take to accept a connection and to say what it is. */
  readonly connect_ms: number
  /** How long a statement may take. The server ends it then; a second later the connection is given up. */
  readonly statement_ms: number
  /**
   * How long a transaction may wait between two statements: it holds locks that the writers of all machines wait for.
   * The server ends the connection of a process that stands still or was cut off. Default: 3 s.
   */
  readonly idle_ms?: number
}

export interface Reply {
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  /** Rows that an insert, update or delete has changed. */
  readonly changes: number
}

/** A reply of the driver. */
interface Replied {
  readonly rows: readonly unknown[]
  readonly rowCount: number | null
}

/** What the connections of a pool have done. */
export interface Counts {
  statements: number
  /** Messages to the server, of one or more statements. */
  messages: number
  commits: number
}

export const COMMIT = 'commit'

/** A statement that ran this often on a connection is prepared there: the server parses and plans it once. */
const PREPARED_AFTER = 2
const MOST_TEXTS = 500

/** How much longer the server may take to say that it has ended a statement. */
const GRACE_MS = 1000
/** How long a connection may take to close. A peer that vanished never answers. */
const CLOSE_MS = 1000
const IDLE_MS = 3000
/** The server gives up a client that vanished after 5 s with something to send, and after 11 s without. */
const SERVER_OPTIONS = [
  ['tcp_user_timeout', 5000],
  ['tcp_keepalives_idle', 5],
  ['tcp_keepalives_interval', 2],
  ['tcp_keepalives_count', 3],
] as const

/** A connection to a server. */
export class Link {
  readonly host: Host
  /** The id of the server's process; null behind a pooler, which tells ids of its own. */
  backend: number | null = null
  readonly #client: Client
  readonly #counts: Counts
  #broken = false
  /** Statements without a reply, and since when the server owes the next one. */
  #owed = 0
  #owes_since_ms = performance.now()
  readonly #prepared = new PreparedNames()
  /** How often each of the first texts has run, and its name once it is prepared. */
  readonly #texts = new Map<string, { readonly name: string; runs: number }>()

  private constructor(host: Host, client: Client, counts: Counts) {
    this.host = host
    this.#client = client
    this.#counts = counts
    const broken = () => {
      this.#broken = true
    }
    client.on('error', broken)
    client.on('end', broken)
  }

  /** Connects to a server. @throws StateError */
  static async open(host: Host, time_outs: TimeOuts, counts: Counts): Promise<Link> {
    const { connect_ms, statement_ms, idle_ms = IDLE_MS } = time_outs
    const client = new Client({
      connectionString: host.url,
      application_name: 'strowger',
      statement_timeout: statement_ms,
      query_timeout: statement_ms + GRACE_MS,
      idle_in_transaction_session_timeout: idle_ms,
      options: SERVER_OPTIONS.map(([name, value]) => `-c ${name}=${value}`).join(' '),
      keepAlive: true,
      // What is sent does not wait for the reply before.
      pipeline: true,
      types: { getTypeParser: parserOf as Client['getTypeParser'] },
    })
    const link = new Link(host, client, counts)
    const late = afterAwake(connect_ms, () => client.connection.stream.destroy(new Error('timeout expired')))
    try {
      await client.connect()
      return link
    } catch (error) {
      link.destroy()
      throw postgresError(error)
    } finally {
      late.cancel()
    }
  }

  /** It may have lost the server, or the server may still work on what it was asked: use it no more. */
  get broken(): boolean {
    return this.#broken
  }

  /** How much the server has sent. */
  get heard_bytes(): number {
    const { bytesRead = 0 } = this.#client.connection.stream as { readonly bytesRead?: number }
    return bytesRead
  }

  /** Since when the server owes a reply, on the monotonic clock; null: it owes none. */
  get owes_since_ms(): number | null {
    return this.#owed > 0 ? this.#owes_since_ms : null
  }

  /** Learns from the server whether it is a standby, and which of its processes serves this connection. */
  async meet(): Promise<{ readonly standby: boolean }> {
    const { rows } = await this.run('select pg_is_in_recovery() as standby, pg_backend_pid() as backend')
    const [{ standby = 1, backend = null } = {}] = rows
    const { processID: told = null } = this.#client as { readonly processID?: number | null }
    this.backend = backend !== null && backend === told ? told : null
    return { standby: standby !== 0 }
  }

  /** Since when it has nothing to do, on the monotonic clock; null: it has. */
  get idle_since_ms(): number | null {
    return this.#owed > 0 ? null : this.#owes_since_ms
  }

  /** Runs a statement, or several without values, of which the last one's reply counts. @throws StateError */
  async run(sql: string, values: readonly unknown[] = []): Promise<Reply> {
    const { rows, rowCount } = await this.#asked(sql, values)
    if (sql === COMMIT) this.#counts.commits++
    return { rows: rows as Reply['rows'], changes: rowCount ?? 0 }
  }

  /**
   * Runs statements that are prepared, in order, in one message. It returns the first column of their rows, as text.
   * @throws StateError, and the server has skipped the statements after the one that failed
   */
  async batch(statements: readonly BatchStatement[]): Promise<readonly BatchReply[]> {
    const send = () =>
      new Promise<readonly BatchReply[]>((resolve, reject) => {
        const batch = new Batch(statements, this.#prepared, error => (error ? reject(error) : resolve(batch.replies)))
        this.#client.query(batch)
      })
    const replies = await this.#owing(statements.length, send)
    if (statements.at(-1)?.sql === COMMIT) this.#counts.commits++
    return replies
  }

  /** Runs a statement. Returns the values of each row, in the order of its columns. @throws StateError */
  async rows(sql: string, values: readonly unknown[]): Promise<readonly (readonly Value[])[]> {
    const { rows } = await this.#ask({ text: sql, values: values.map(parameterOf), rowMode: 'array' })
    return rows as Value[][]
  }

  #asked(sql: string, values: readonly unknown[]): Promise<Replied> {
    const name = values.length > 0 ? this.#nameOf(sql) : null
    const query = { text: sql, values: values.map(parameterOf) }
    return this.#ask(name === null ? query : { ...query, name })
  }

  async #ask(query: QueryConfig | QueryArrayConfig): Promise<Replied> {
    const replied: unknown = await this.#owing(1, () => this.#client.query(query))
    return (Array.isArray(replied) ? replied.at(-1) : replied) as Replied
  }

  /** Sends so many statements in one message, and waits for what the server owes then. @throws StateError */
  async #owing<T>(statements: number, send: () => Promise<T>): Promise<T> {
    this.#counts.statements += statements
    this.#counts.messages++
    if (this.#owed++ === 0) this.#owes_since_ms = performance.now()
    try {
      return await send()
    } catch (error) {
      if (!leavesConnection(error)) this.#broken = true
      throw postgresError(error)
    } finally {
      this.#owed--
      this.#owes_since_ms = performance.now()
    }
  }

  /** Returns the name under which a text is prepared; null while it is not. */
  #nameOf(sql: string): string | null {
    let text = this.#texts.get(sql)
    if (!text) {
      if (this.#texts.size >= MOST_TEXTS) return null
      text = { name: `s${this.#texts.size}`, runs: 0 }
      this.#texts.set(sql, text)
    }
    return ++text.runs > PREPARED_AFTER ? text.name : null
  }

  /** Closes the connection without waiting for the server. */
  destroy(): void {
    this.#broken = true
    this.#client.connection.stream.destroy()
  }

  /** Closes the connection in order. */
  async close(): Promise<void> {
    if (this.#broken) return this.destroy()
    const late = setTimeout(() => this.destroy(), CLOSE_MS)
    await this.#client.end().catch(() => this.destroy())
    clearTimeout(late)
  }
}

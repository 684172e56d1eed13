import { Client, type QueryArrayConfig, type QueryConfig } from 'pg'
import type { Host } from '../../runtime/database-url.ts'
import type { Value } from '../procedures/query.ts'
import { leavesConnection, postgresError } from './errors.ts'
import { parameterOf, parserOf } from './values.ts'

export interface TimeOuts {
  /** How long a server may take to accept a connection and to say what it is. */
  readonly connect_ms: number
  /** How long a statement may take. The server ends it then; a second later the connection is given up. */
  readonly statement_ms: number
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
/** The server ends a transaction whose process waits this long between two statements: it holds locks. */
const IDLE_MS = 30_000

/** A connection to a server. */
export class Link {
  readonly #client: Client
  readonly #counts: Counts
  #broken = false
  /** Replies to what was sent. */
  readonly #sent: Promise<Replied>[] = []
  /** How often each of the first texts has run, and its name once it is prepared. */
  readonly #texts = new Map<string, { readonly name: string; runs: number }>()

  private constructor(client: Client, counts: Counts) {
    this.#client = client
    this.#counts = counts
    const broken = () => {
      this.#broken = true
    }
    client.on('error', broken)
    client.on('end', broken)
  }

  /** Connects to a server. @throws StateError */
  static async open({ url }: Host, { connect_ms, statement_ms }: TimeOuts, counts: Counts): Promise<Link> {
    const client = new Client({
      connectionString: url,
      application_name: 'strowger',
      connectionTimeoutMillis: connect_ms,
      statement_timeout: statement_ms,
      query_timeout: statement_ms + GRACE_MS,
      idle_in_transaction_session_timeout: IDLE_MS,
      keepAlive: true,
      // What is sent does not wait for the reply before.
      pipeline: true,
      types: { getTypeParser: parserOf as Client['getTypeParser'] },
    })
    const link = new Link(client, counts)
    try {
      await client.connect()
      return link
    } catch (error) {
      link.destroy()
      throw postgresError(error)
    }
  }

  /** It may have lost the server, or the server may still work on what it was asked: use it no more. */
  get broken(): boolean {
    return this.#broken
  }

  /** Runs a statement, or several without values, of which the last one's reply counts. @throws StateError */
  async run(sql: string, values: readonly unknown[] = []): Promise<Reply> {
    const { rows, rowCount } = await this.#asked(sql, values)
    if (sql === COMMIT) this.#counts.commits++
    return { rows: rows as Reply['rows'], changes: rowCount ?? 0 }
  }

  /**
   * Sends a write of the open transaction, whose reply is not needed. The server runs it before what is sent later;
   * when it fails, so does `settled`, and the transaction cannot be committed.
   */
  send(sql: string, values: readonly unknown[]): void {
    const replied = this.#asked(sql, values)
    this.#sent.push(replied)
    // `settled` tells of the failure.
    replied.catch(() => undefined)
  }

  /** Resolves when the server has run all that was sent. @throws StateError, that of the first failure */
  async settled(): Promise<void> {
    for (const replied of this.#sent.splice(0)) await replied
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
    this.#counts.statements++
    try {
      const replied: unknown = await this.#client.query(query)
      return (Array.isArray(replied) ? replied.at(-1) : replied) as Replied
    } catch (error) {
      if (!leavesConnection(error)) this.#broken = true
      throw postgresError(error)
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

import { type Connection, Query } from 'pg'
import { parameterOf } from './values.ts'
import { Messages } from './wire.ts'

/** A statement with `$1`, `$2` for its values. */
export interface BatchStatement {
  readonly sql: string
  readonly values: readonly unknown[]
}

export interface BatchReply {
  /** The first column of each row. */
  readonly texts: readonly (string | null)[]
  /** Rows that an insert, update or delete has changed. */
  readonly changes: number
}

/** A server keeps some 100 KiB for a long statement that is prepared. */
const MOST_PREPARED = 300
/** The statement without a name: each use prepares it. */
const UNNAMED = ''

/** The names of the statements that are prepared on a connection. */
export class PreparedNames {
  readonly #names = new Map<string, string>()
  #drawn = 0

  nameOf(sql: string): string | undefined {
    return this.#names.get(sql)
  }

  /** Gives a statement a name that was never used: the server may still know the name of one that has failed. */
  add(sql: string): string {
    if (this.#names.size >= MOST_PREPARED) return UNNAMED
    const name = `b${this.#drawn++}`
    this.#names.set(sql, name)
    return name
  }

  forget(sql: string): void {
    this.#names.delete(sql)
  }
}

/**
 * Several prepared statements that travel together, with one Sync at their end (PostgreSQL, 55.2.4): after a failure
 * the server skips the rest. A query of the driver costs both sides more than most of our statements do.
 */
export class Batch extends Query {
  readonly replies: BatchReply[] = []
  readonly #statements: readonly BatchStatement[]
  readonly #names: PreparedNames
  /** Statements that this batch prepares, by their place in it. */
  readonly #prepares = new Map<number, string>()
  #texts: (string | null)[] = []
  /** The driver keeps it here, and may wrap it, to end the time limit of the query. */
  declare readonly callback: (error: Error | null) => void

  constructor(statements: readonly BatchStatement[], names: PreparedNames, callback: (error: Error | null) => void) {
    super('', callback as never)
    this.#statements = statements
    this.#names = names
  }

  // The driver calls these.

  override submit = (connection: Connection): null => {
    const messages = new Messages()
    for (const [at, { sql, values }] of this.#statements.entries()) {
      let statement = this.#names.nameOf(sql)
      if (statement === undefined) {
        statement = this.#names.add(sql)
        this.#prepares.set(at, sql)
        messages.parse(statement, sql)
      }
      messages.run(statement, values.map(wireText))
    }
    messages.sync()
    connection.stream.write(messages.bytes())
    return null
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    this.#texts.push(fields[0] ?? null)
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.replies.push({ texts: this.#texts, changes: Number(/\d+$/.exec(text)?.[0] ?? 0) })
    this.#texts = []
  }

  handleError(error: Error): void {
    for (const [at, sql] of this.#prepares) if (at >= this.replies.length) this.#names.forget(sql)
    this.#told(error)
  }

  handleReadyForQuery(): void {
    this.#told(null)
  }

  #told(error: Error | null): void {
    this.callback(error)
  }
}

function wireText(value: unknown): string | null {
  const given = parameterOf(value)
  return given === null || given === undefined ? null : String(given)
}

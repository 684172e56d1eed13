import { newId } from '../../runtime/ids.ts'
import type { Query, Row, Value } from '../procedures/query.ts'
import { PROCEDURES, type ProcedureName } from '../procedures/table.ts'
import type { Reply } from './link.ts'
import { READ_NOW } from './turns.ts'
import { storable, withNumbers } from './values.ts'

/** Runs the statements of a procedure in its transaction. */
interface Runner {
  run(sql: string, values: readonly Value[]): Promise<Reply>
  /** Sends a write of which the procedure wants no rows, and waits for nothing. Null: such a runner is not at hand. */
  readonly send: ((sql: string, values: readonly Value[]) => void) | null
}

interface Asked {
  readonly sql: string
  readonly values: readonly Value[]
}

interface Answered extends Asked {
  readonly rows: readonly Row[]
  readonly changes: number
}

/** Interrupts a procedure at a statement that has no answer yet. */
class Unanswered extends Error {
  override readonly name = 'Unanswered'
  readonly asked: Asked
  constructor(asked: Asked) {
    super('a statement has no answer yet')
    this.asked = asked
  }
}

/**
 * Runs a procedure, which waits for nothing, over a connection, for which one waits. At a statement without an answer
 * the procedure is interrupted; with the answer it runs again from its beginning, where the earlier answers lead it to
 * the next statement (decision 1054). Writes that return nothing are sent, and do not interrupt it.
 */
export async function runProcedure(
  name: ProcedureName,
  input: unknown,
  { run, send }: Runner,
  now_ms: number | null,
): Promise<unknown> {
  if (!Object.hasOwn(PROCEDURES, name)) throw new Error(`there is no procedure ${name}`)
  const log = new AnswerLog(name, now_ms, send)
  // A procedure that changed its input would find another one at its next run.
  const given = frozen(storable(input))
  for (;;) {
    try {
      return PROCEDURES[name](log.fromBeginning(), given as never)
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error
      const { sql, values } = error.asked
      const { rows, changes } = await run(withNumbers(sql), values)
      log.answer(error.asked, rows as readonly Row[], changes)
    }
  }
}

/** The answers to a procedure's statements in order, and the ids that it drew. */
class AnswerLog {
  readonly #name: ProcedureName
  readonly #answers: Answered[] = []
  readonly #ids: string[] = []
  #now_ms: number | null
  readonly #send: Runner['send']

  constructor(name: ProcedureName, now_ms: number | null, send: Runner['send']) {
    this.#name = name
    this.#now_ms = now_ms
    this.#send = send
  }

  answer(asked: Asked, rows: readonly Row[], changes: number): void {
    if (asked.sql === READ_NOW) this.#now_ms = Number(rows[0]?.['now_ms'])
    else this.#answers.push({ ...asked, rows: frozen(rows), changes })
  }

  /** Returns the statements' runner for one more run of the procedure. */
  fromBeginning(): Query {
    let [statements, ids] = [0, 0]
    const next = (sql: string, values: readonly Value[]): Answered => {
      const answered = this.#answers[statements++]
      if (!answered) throw new Unanswered({ sql, values })
      if (answered.sql !== sql || !answered.values.every((value, at) => Object.is(value, values[at])))
        throw new Error(`${this.#name} did not repeat its statement ${statements}`)
      return answered
    }
    // The author of a statement asserts the type of its rows.
    const rows = <R extends object>(sql: string, ...values: readonly Value[]): R[] => {
      if (this.#send && statements === this.#answers.length && RETURNS_NOTHING.test(sql)) {
        this.#send(withNumbers(sql), values)
        this.answer({ sql, values }, [], 0)
      }
      return [...(next(sql, values).rows as readonly R[])]
    }
    return Object.assign(rows, {
      changes: (sql: string, ...values: readonly Value[]) => next(sql, values).changes,
      now_ms: () => {
        if (this.#now_ms === null) throw new Unanswered({ sql: READ_NOW, values: [] })
        return this.#now_ms
      },
      uuid: () => {
        const at = ids++
        const id = this.#ids[at] ?? newId.uuid()
        this.#ids[at] = id
        return id
      },
    })
  }
}

/** A write without `returning`. Who wants to know how many rows it changed asks by `changes`. */
const RETURNS_NOTHING = /^\s*(?:insert|update|delete)\b(?!.*\breturning\b)/is

/** Freezes plain data in depth. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const part of Object.values(value)) frozen(part)
  return Object.freeze(value)
}

import type { Db } from '../../core/state/db.ts'
import type { State } from '../../core/state/index.ts'

type Plugin = Parameters<Db['withPlugin']>[0]
type Node = Parameters<Plugin['transformQuery']>[0]['node']

/** Returns how SQLite would run a statement, a line for each step. */
export async function explained(db: Db, sql: string, parameters: readonly unknown[]): Promise<string[]> {
  const query = { sql: `explain query plan ${sql}`, parameters, query: { kind: 'RawNode' } }
  const { rows } = await db.executeQuery<{ detail: string }>(query as never)
  return rows.map(({ detail }) => detail)
}

/** Runs `work` and returns how many statements it began. */
export const statementsIn = async (db: Db, work: (db: Db) => Promise<unknown>): Promise<number> =>
  (await statementsOf(db, work)).length

/** Runs `reads` and returns how SQLite runs each of its statements. */
export const plansOf = async (db: Db, reads: (db: Db) => Promise<unknown>): Promise<string[]> =>
  await plansOfAll(db, await statementsOf(db, reads))

/** Runs `work` and returns how SQLite runs each of its statements, also those of its transactions. */
export async function plansOfWork(state: State, work: (state: State) => Promise<unknown>): Promise<string[]> {
  const { seen, notes } = notebook()
  const noted =
    (run: State['transaction']): State['transaction'] =>
    inside =>
      run(trx => inside(trx.withPlugin(notes)))
  await work({
    ...state,
    db: state.db.withPlugin(notes),
    transaction: noted(state.transaction),
    shortTransaction: noted(state.shortTransaction),
  })
  return await plansOfAll(state.db, seen)
}

async function plansOfAll(db: Db, statements: readonly Node[]): Promise<string[]> {
  const plans: string[] = []
  for (const node of statements) {
    const { sql, parameters } = db.getExecutor().compileQuery(node as never, { queryId: '' } as never)
    plans.push(...(await explained(db, sql, parameters)))
  }
  return plans
}

async function statementsOf(db: Db, work: (db: Db) => Promise<unknown>): Promise<readonly Node[]> {
  const { seen, notes } = notebook()
  await work(db.withPlugin(notes))
  return seen
}

/** Notes the statements that a handle with this plugin runs. */
function notebook(): { readonly seen: readonly Node[]; readonly notes: Plugin } {
  const seen: Node[] = []
  const notes: Plugin = {
    transformQuery({ node }) {
      seen.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  return { seen, notes }
}

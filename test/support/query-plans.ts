import type { Db } from '../../core/state/db.ts'

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
export async function plansOf(db: Db, reads: (db: Db) => Promise<unknown>): Promise<string[]> {
  const plans: string[] = []
  for (const node of await statementsOf(db, reads)) {
    const { sql, parameters } = db.getExecutor().compileQuery(node as never, { queryId: '' } as never)
    plans.push(...(await explained(db, sql, parameters)))
  }
  return plans
}

async function statementsOf(db: Db, work: (db: Db) => Promise<unknown>): Promise<Node[]> {
  const seen: Node[] = []
  const notes: Plugin = {
    transformQuery({ node }) {
      seen.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  await work(db.withPlugin(notes))
  return seen
}

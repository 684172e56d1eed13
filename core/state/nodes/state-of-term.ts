import {
  DeleteQueryNode,
  InsertQueryNode,
  type KyselyPlugin,
  type OperationNode,
  type PluginTransformQueryArgs,
  type RootOperationNode,
  sql,
  UpdateQueryNode,
  WhereNode,
} from 'kysely'
import type { Trx } from '../db.ts'
import type { State } from '../index.ts'
import { type TaskTerm, termLasts } from './task-lease-rows.ts'

/** The process has lost the lease of its task: it wrote nothing. */
class TermOver extends Error {
  override readonly name = 'TermOver'
  constructor() {
    super('another process has taken the task')
  }
}

/**
 * The state for the writes of a task. A process may stand still between its look at the lease and its write, and
 * another one may do the task meanwhile. So each transaction sees first that the term lasts, or rejects with TermOver.
 * An update or delete outside of a transaction finds no rows after the term, and an insert there is a bug. Procedures
 * are not held back: each has a key of its own, and does its work once.
 */
export function stateOfTerm(state: State, term: () => TaskTerm | null): State {
  const lasting =
    <T>(work: (trx: Trx) => Promise<T>) =>
    async (trx: Trx): Promise<T> => {
      const now = term()
      if (now === null || !(await termLasts(trx, now))) throw new TermOver()
      return work(trx)
    }
  return {
    ...state,
    db: state.db.withPlugin(new WhileTermLasts(term)),
    transaction: work => state.transaction(lasting(work)),
    shortTransaction: work => state.shortTransaction(lasting(work)),
  }
}

class WhileTermLasts implements KyselyPlugin {
  readonly #term: () => TaskTerm | null

  constructor(term: () => TaskTerm | null) {
    this.#term = term
  }

  transformQuery({ node }: PluginTransformQueryArgs): RootOperationNode {
    if (InsertQueryNode.is(node)) throw new Error('a task inserts within a transaction')
    if (!UpdateQueryNode.is(node) && !DeleteQueryNode.is(node)) return node
    const lasts = this.#lasts()
    const where = node.where ? WhereNode.cloneWithOperation(node.where, 'And', lasts) : WhereNode.create(lasts)
    return { ...node, where }
  }

  async transformResult<Result>({ result }: { readonly result: Result }): Promise<Result> {
    return result
  }

  #lasts(): OperationNode {
    const now = this.#term()
    if (now === null) throw new TermOver()
    return sql<boolean>`exists (
      select 1 from task_lease
      where task_lease.name = ${now.name} and task_lease.holder = ${now.holder} and task_lease.term = ${now.term}
    )`.toOperationNode()
  }
}

import type { State, Trx } from '../../core/state/index.ts'

/** Returns a state that runs `look` after each of its transactions. */
export function afterEachTransaction(state: State, look: () => Promise<void>): State {
  const followed =
    (run: State['transaction']): State['transaction'] =>
    async <T>(work: (trx: Trx) => Promise<T>): Promise<T> => {
      const value = await run(work)
      await look()
      return value
    }
  return { ...state, transaction: followed(state.transaction), shortTransaction: followed(state.shortTransaction) }
}

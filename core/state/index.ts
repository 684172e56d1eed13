export type { Db, NewRow, Trx } from './db.ts'
export {
  type Failure,
  failure,
  isPassing,
  type RowReader,
  type State,
  StateError,
  type StateWork,
} from './port.ts'
export type { Value } from './procedures/query.ts'
export * from './schema/index.ts'
export { openRowReader } from './sqlite/row-reader.ts'
export { keepDatabase, setBackDatabase } from './sqlite/set-back.ts'
export { damageOf, isDatabase } from './sqlite/soundness.ts'
export { DATABASE_FILE, openState } from './sqlite/store.ts'

import { type Expression, expressionBuilder, type SqlBool } from 'kysely'
import type { Schema } from '../schema/index.ts'

/**
 * The condition that a row of `call` has not ended. It names the few live calls by their index: with a project or a
 * trunk beside it, a plain `ended_at is null` is looked for in all calls that the project or trunk ever had.
 */
export function isLive(): Expression<SqlBool> {
  const eb = expressionBuilder<Schema, 'call'>()
  return eb(
    'call.position',
    'in',
    eb.selectFrom('call as running').select('running.position').where('running.ended_at', 'is', null),
  )
}

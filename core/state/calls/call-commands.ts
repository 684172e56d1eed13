import type { Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { CallCommandTable, Db, Trx } from '../db.ts'
import type { State } from '../index.ts'

export type CallCommand = Selectable<CallCommandTable>

/**
 * Claims the commands that wait for this node, in order of id: at most `originates` calls that no node has taken, which
 * this node then owns, and commands for calls that it runs.
 */
export async function claimCommands(
  state: State,
  node_id: string,
  options: { readonly originates: number; readonly limit: number },
): Promise<CallCommand[]> {
  if (!(await somethingWaits(state.db, node_id))) return []
  return state.transaction(async trx => {
    const waiting = await trx
      .selectFrom('call_command')
      .innerJoin('call', 'call.sid', 'call_command.call_sid')
      .selectAll('call_command')
      .select('call.node_id')
      .where('call_command.done_at', 'is', null)
      .where('call_command.taken_by', 'is', null)
      .where(eb =>
        eb.or([
          eb('call.node_id', '=', node_id),
          eb.and([eb('call.node_id', 'is', null), eb('call_command.kind', '=', 'originate')]),
        ]),
      )
      .orderBy('call_command.id')
      .limit(options.limit)
      .execute()
    const claimed: CallCommand[] = []
    let originates = 0
    for (const { node_id: owner, ...command } of waiting) {
      if (owner === null && ++originates > options.originates) continue
      await trx.updateTable('call_command').set({ taken_by: node_id }).where('id', '=', command.id).execute()
      if (owner === null) await trx.updateTable('call').set({ node_id }).where('sid', '=', command.call_sid).execute()
      claimed.push({ ...command, taken_by: node_id })
    }
    return claimed
  })
}

const somethingWaits = async (db: Db, node_id: string): Promise<boolean> =>
  (await db
    .selectFrom('call_command')
    .innerJoin('call', 'call.sid', 'call_command.call_sid')
    .select('call_command.id')
    .where('call_command.done_at', 'is', null)
    .where('call_command.taken_by', 'is', null)
    .where(eb => eb.or([eb('call.node_id', '=', node_id), eb('call.node_id', 'is', null)]))
    .limit(1)
    .executeTakeFirst()) !== undefined

export async function finishCommand(db: Db | Trx, id: number, outcome: string, now_ms: number): Promise<void> {
  await db
    .updateTable('call_command')
    .set({ done_at: iso(now_ms), outcome })
    .where('id', '=', id)
    .where('done_at', 'is', null)
    .execute()
}

import { type RawBuilder, sql } from 'kysely'
import { shownUrl } from '../../domain/calls/typed.ts'
import { CALLBACK_ANSWERED_WITH_ERROR } from '../../domain/webhooks/errors.ts'
import { addCallEvent } from '../calls/call-events.ts'
import type { Trx } from '../db.ts'
import type { State } from '../index.ts'
import { writeInParts } from '../maintenance/parts.ts'

/**
 * A project whose servers take nothing, or take it slowly, would fill the tables of what waits for delivery: rows that
 * wait behind others are not tried, so neither their tries nor their age ends them.
 */

/** What of a project is given up, the oldest first. */
interface Surplus {
  readonly project_id: string
  readonly table: 'outbox' | 'webhook_delivery'
  readonly rows: number
}

interface Queue {
  readonly table: Surplus['table']
  readonly number: 'id' | 'position'
  /** The literals match the partial index of waiting rows. */
  readonly waits: RawBuilder<boolean>
  giveUp(trx: Trx, numbers: readonly number[], why: { readonly most: number; readonly now_ms: number }): Promise<void>
}

const QUEUES: readonly Queue[] = [
  { table: 'outbox', number: 'id', waits: sql`delivered = 0 and given_up = 0`, giveUp: giveUpCallbacks },
  { table: 'webhook_delivery', number: 'position', waits: sql`state = 'pending'`, giveUp: giveUpDeliveries },
]

/** The most rows of a project that one look gives up. Their numbers are in memory. */
const MOST_AT_ONCE = 50_000

/**
 * Gives up what waits of a project beyond `most` callbacks, and beyond `most` events for its webhook endpoints: the
 * oldest that is not being delivered. A call tells of its callbacks, and an endpoint lists its deliveries.
 */
export async function giveUpSurplus(state: State, most: number, goesOn?: () => boolean): Promise<Surplus[]> {
  const given_up: Surplus[] = []
  for (const { table, number, waits, giveUp } of QUEUES) {
    const [rows, key] = [sql.table(table), sql.ref(number)]
    // No project has more while all together have not. This reads the index alone.
    const part = sql`select 1 from ${rows} where ${waits} limit ${most + 1}`
    const { rows: counted } = await sql<{ waiting: number }>`
      select count(*) as waiting from (${part}) as part`.execute(state.db)
    if (Number(counted[0]?.waiting ?? 0) <= most) continue
    const { rows: beyond } = await sql<{ project_id: string; waiting: number }>`
      select project_id, count(*) as waiting from ${rows} where ${waits}
      group by project_id having count(*) > ${most}`.execute(state.db)
    for (const { project_id, waiting } of beyond) {
      // Without the sign, the planner would read all rows in the order of their numbers.
      const { rows: oldest } = await sql<{ number: number }>`
        select ${key} as number from ${rows} where ${waits} and lease_until is null and project_id = ${project_id}
        order by +${key} limit ${Math.min(Number(waiting) - most, MOST_AT_ONCE)}`.execute(state.db)
      const numbers = oldest.map(row => Number(row.number))
      given_up.push({ project_id, table, rows: numbers.length })
      await writeInParts(
        state,
        async (trx, size) => {
          const next = numbers.splice(0, size)
          if (next.length > 0) await giveUp(trx, next, { most, now_ms: state.clock.now() })
          return numbers.length > 0
        },
        goesOn,
      )
    }
  }
  return given_up
}

const reasonOf = (what: string, most: number): string =>
  `given up, because more than ${most.toLocaleString('en')} ${what} of the project waited`

async function giveUpCallbacks(
  trx: Trx,
  ids: readonly number[],
  { most, now_ms }: { readonly most: number; readonly now_ms: number },
): Promise<void> {
  const last_error = reasonOf('callbacks', most)
  const given_up = await trx
    .updateTable('outbox')
    .set({ given_up: 1, last_error })
    .where('id', 'in', ids)
    .where('delivered', '=', 0)
    .where('given_up', '=', 0)
    .returning(['project_id', 'call_sid', 'url'])
    .execute()
  const [{ project_id } = { project_id: '' }] = given_up
  const account = await trx
    .selectFrom('voice_account')
    .select('call_event_history')
    .where('project_id', '=', project_id)
    .executeTakeFirst()
  if (account?.call_event_history !== 'enabled') return
  // One event of a call, however many of its callbacks are given up together.
  const calls = new Map(given_up.map(({ call_sid, url }) => [call_sid, url]))
  for (const [call_sid, url] of calls) {
    const detail = { url: shownUrl(url), detail: `a callback was ${last_error}` }
    const event = { kind: 'warning', number: CALLBACK_ANSWERED_WITH_ERROR, detail } as const
    if (call_sid !== null) await addCallEvent(trx, { call_sid, ...event }, now_ms)
  }
}

async function giveUpDeliveries(
  trx: Trx,
  positions: readonly number[],
  { most }: { readonly most: number },
): Promise<void> {
  await trx
    .updateTable('webhook_delivery')
    .set({ state: 'failed', last_error: reasonOf('events', most) })
    .where('position', 'in', positions)
    .where('state', '=', 'pending')
    .execute()
}

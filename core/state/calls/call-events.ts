import { iso } from '../../runtime/clock.ts'
import type { CallEventTable, Db, Trx } from '../db.ts'

/** Limit per call: a looping script must not fill the disk. */
const MAX_EVENTS = 1000

export async function addCallEvent(
  db: Db | Trx,
  event: {
    readonly call_sid: string
    readonly kind: CallEventTable['kind']
    readonly number: number | null
    readonly detail: Readonly<Record<string, unknown>>
  },
  now_ms: number,
): Promise<void> {
  const { count } = await db
    .selectFrom('call_event')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('call_sid', '=', event.call_sid)
    .executeTakeFirstOrThrow()
  // The first half of a full list stays as it is. The other half always has the latest events.
  if (Number(count) >= MAX_EVENTS)
    await db
      .deleteFrom('call_event')
      .where('id', '=', eb =>
        eb
          .selectFrom('call_event')
          .select('id')
          .where('call_sid', '=', event.call_sid)
          .orderBy('id')
          .limit(1)
          .offset(MAX_EVENTS / 2),
      )
      .execute()
  await db
    .insertInto('call_event')
    .values({
      call_sid: event.call_sid,
      at: iso(now_ms),
      kind: event.kind,
      number: event.number,
      detail: JSON.stringify(event.detail),
    })
    .execute()
}

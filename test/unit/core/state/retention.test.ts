import { iso } from '../../../../core/runtime/clock.ts'
import { forgetOldMessages } from '../../../../core/state/calls/ladder.ts'
import { pruneAdmission } from '../../../../core/state/calls/leases.ts'
import { pruneMediaQuality } from '../../../../core/state/calls/media-quality.ts'
import { pruneCallbacks } from '../../../../core/state/delivery/outbox-delivery.ts'
import { dropOldDeliveries } from '../../../../core/state/delivery/webhook-endpoints.ts'
import type { State } from '../../../../core/state/index.ts'
import type { Schema } from '../../../../core/state/schema/index.ts'
import { admissionWorld, NOW_MS } from '../../../support/admission-world.ts'
import { onPostgres } from '../../../support/engine.ts'
import t from '../../../support/harness/index.ts'
import { plansOfWork } from '../../../support/query-plans.ts'

const DAY_MS = 86_400_000
const PROJECT = { project_id: 'prj_1' }

/** A table whose rows are deleted when they are old, and the change by which one stays. */
interface Kept {
  readonly table: keyof Schema
  readonly days: number
  row(n: number, at_ms: number): object
  readonly stays: object | null
  drop(state: State): Promise<unknown>
}

const KEPT: readonly Kept[] = [
  {
    table: 'lease',
    days: 30,
    row: (n, at_ms) => ({
      ...PROJECT,
      ...{ call_sid: `CA${n}`, part: 'outbound', node_id: 'node_1', begun_at: iso(at_ms), ended_at: iso(at_ms) },
    }),
    stays: { ended_at: null },
    drop: state => pruneAdmission(state, NOW_MS),
  },
  {
    table: 'media_quality',
    days: 30,
    row: (n, at_ms) => ({ call_sid: `CA${n}`, leg_id: 'a', at: iso(at_ms), stats: '{}' }),
    stays: null,
    drop: state => pruneMediaQuality(state, NOW_MS - 30 * DAY_MS),
  },
  {
    table: 'sip_message',
    days: 7,
    row: (n, at_ms) => ({
      ...{ sip_call_id: `${n}@test`, at_ms, direction: 'in', protocol: 'udp', local: '', remote: '' },
      ...{ retransmission: 0, text: 'BYE' },
    }),
    stays: null,
    drop: state => forgetOldMessages(state, NOW_MS),
  },
  {
    table: 'outbox',
    days: 7,
    row: (n, at_ms) => ({
      ...PROJECT,
      ...{ ordering_key: `${n}`, kind: 'status_callback', call_sid: `CA${n}`, url: 'http://a.test/', method: 'POST' },
      ...{ parameters: '{}', event_id: `${n}`, attempts: 1, next_attempt_at: iso(at_ms), lease_until: null },
      ...{ delivered: 1, given_up: 0, last_status: 200, last_error: null, created_at: iso(at_ms) },
    }),
    stays: { delivered: 0 },
    drop: state => pruneCallbacks(state, NOW_MS - 7 * DAY_MS),
  },
  {
    table: 'webhook_delivery',
    days: 30,
    row: (n, at_ms) => ({
      ...PROJECT,
      ...{ id: `whd_${n}`, endpoint_id: 'whe_1', event_id: `${n}`, event_kind: 'call.ended', payload: '{}' },
      ...{ state: 'delivered', attempts: 1, next_attempt_at: iso(at_ms), expires_at: iso(at_ms) },
      created_at: iso(at_ms),
    }),
    stays: { state: 'pending' },
    drop: state => dropOldDeliveries(state, iso(NOW_MS - 30 * DAY_MS)),
  },
]

async function addRows(state: State, table: string, rows: readonly object[]): Promise<void> {
  for (let at = 0; at < rows.length; at += 500)
    await state.db
      .insertInto(table as never)
      .values(rows.slice(at, at + 500) as never)
      .execute()
}

const countOf = async ({ db }: State, table: string): Promise<number> =>
  (
    await db
      .selectFrom(table as 'lease')
      .select(eb => eb.lit(1).as('one'))
      .execute()
  ).length

for (const { table, days, row, stays, drop } of KEPT) {
  const many = (from: number, count: number, at_ms: number) =>
    Array.from({ length: count }, (_, at) => row(from + at, at_ms))
  const old_ms = NOW_MS - (days + 1) * DAY_MS

  t.test(`one run deletes all old rows of ${table}, whatever lies before them`, async t => {
    const { state, close } = await admissionWorld()
    t.teardown(close)
    const kept = stays ? many(0, 700, old_ms).map(one => ({ ...one, ...stays })) : []
    // The machine's clock was wrong for a while.
    const ahead = many(1000, 700, Date.parse('2199-01-01'))
    const young = many(2000, 3, NOW_MS - (days - 1) * DAY_MS)
    await addRows(state, table, [...kept, ...ahead, ...many(3000, 5001, old_ms), ...young])
    await drop(state)
    t.equal(await countOf(state, table), kept.length + ahead.length + young.length)
  })

  t.test(
    `a look for old rows of ${table} does not read the young ones`,
    { skip: onPostgres() && 'these are plans of SQLite' },
    async t => {
      const { state, close } = await admissionWorld()
      t.teardown(close)
      await addRows(state, table, [...many(0, 10, old_ms), ...many(100, 10, NOW_MS)])
      const plans = await plansOfWork(state, drop)
      t.equal(await countOf(state, table), 10)
      const steps = plans.filter(step => new RegExp(`\\b${table}\\b`).test(step))
      t.ok(steps.length > 0)
      for (const step of steps) t.match(step, /^SEARCH /)
    },
  )
}

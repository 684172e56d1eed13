import { type AliasableExpression, type Expression, type ExpressionBuilder, sql } from 'kysely'
import type { Lines, RowRange, RowReader, TextRule, WriteText } from '../port.ts'
import type { Value } from '../procedures/query.ts'
import type { Schema } from '../schema/index.ts'
import { type HistoryFilter, matches } from './call-history.ts'

/** Where each field of an exported call is stored. The price and its currency are known once the call is charged. */
const EXPORTED = {
  account_sid: 'call.account_sid',
  application_id: 'call.application_id',
  billed_seconds: 'reservation.billed_seconds',
  carrier_id: 'reservation.carrier_id',
  cost_minor: 'reservation.cost_minor',
  destination: 'reservation.rate_label',
  direction: 'call.direction',
  duration_seconds: 'call.duration_seconds',
  ended_at: 'call.ended_at',
  ended_by: 'call.ended_by',
  from: 'call.from_number',
  id: 'call.sid',
  number_id: 'call.number_id',
  origin: 'call.origin',
  parent_call_id: 'call.parent_call_sid',
  price_minor: 'reservation.charge_minor',
  project_id: 'call.project_id',
  queued_at: 'call.queued_at',
  reason: 'call.reason',
  sip_code: 'call.sip_code',
  start_time: 'call.answered_at',
  status: 'call.status',
  to: 'call.to_number',
  trunk_id: 'call.trunk_id',
} as const
export type ExportedField = keyof typeof EXPORTED | 'currency' | 'pdd_ms'

/** A field in a line. */
export interface LineField {
  readonly field: ExportedField
  /** What stands before it. */
  readonly before: string
  /** A number, a text that stands between two quotes as it is, or one that a rule writes. */
  readonly write: 'number' | { readonly quote: string } | { readonly rule: TextRule }
  /** What stands in place of a missing value. */
  readonly absent: string
}

type JoinedTables = ExpressionBuilder<Schema, 'call' | 'reservation'>

function fieldOf(eb: JoinedTables, name: ExportedField): AliasableExpression<Value> {
  if (name === 'currency')
    return eb.case().when('reservation.charge_minor', 'is not', null).then(eb.ref('reservation.currency')).end()
  if (name !== 'pdd_ms') return eb.ref(EXPORTED[name])
  // Calls of before the column, and those without a delay, are looked up.
  const recorded = eb.selectFrom('cdr').select('cdr.pdd_ms').whereRef('cdr.call_sid', '=', 'call.sid')
  return eb.fn.coalesce('call.pdd_ms', recorded)
}

function textsOf(eb: JoinedTables, { field, before, write, absent }: LineField, written: WriteText) {
  const text = textOf(fieldOf(eb, field), write, written)
  return [sql.lit(before), absent === '' ? text : eb.fn.coalesce(text, sql.lit(absent))]
}

function textOf(value: Expression<Value>, write: LineField['write'], written: WriteText): Expression<string | null> {
  if (write === 'number') return sql<string | null>`cast(${value} as text)`
  const text = value as Expression<string | null>
  if ('rule' in write) return written(write.rule, text)
  const quote = sql.lit(write.quote)
  return write.quote === '' ? text : sql<string | null>`${quote} || ${text} || ${quote}`
}

/**
 * Returns what reads ended calls with their record and money in order of position, as a line each: its fields, and
 * `end`.
 */
export const callLines = (
  reader: Pick<RowReader, 'lines'>,
  { fields, end }: { readonly fields: readonly LineField[]; readonly end: string },
  filter: HistoryFilter & { readonly project_id?: string },
): ((range: RowRange) => Promise<Lines>) =>
  reader.lines((db, written, range) =>
    db
      .selectFrom('call')
      .leftJoin('reservation', join =>
        join.on(eb =>
          eb.or([
            eb('reservation.call_position', '=', eb.ref('call.position')),
            eb.and([eb('reservation.call_position', 'is', null), eb('reservation.call_sid', '=', eb.ref('call.sid'))]),
          ]),
        ),
      )
      .select(eb => [
        'call.position',
        eb.fn<string>('concat', [...fields.flatMap(field => textsOf(eb, field, written)), sql.lit(end)]).as('line'),
      ])
      .where('call.position', '>', range.after)
      .where('call.position', '<=', range.last)
      .where('call.ended_at', 'is not', null)
      .where(matches(filter))
      .orderBy('call.position')
      .limit(range.limit),
  )

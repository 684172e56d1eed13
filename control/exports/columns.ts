import { csvCell } from '../../core/domain/text/csv.ts'
import type { EndedCallRow } from '../../core/state/calls/call-history.ts'
import { Count64, Int64, nullable, resource, type Static, Type } from '../http/schema.ts'
import { callFields, presentCall } from '../v1/call-present.ts'

const TextOrNull = nullable(Type.String())

/** A line of an export: a call as in the history, with its record and price. Its fields are the columns of a CSV. */
const ExportedCall = resource('ExportedCall', {
  ...callFields,
  billed_seconds: nullable(Count64),
  currency: TextOrNull,
  destination: TextOrNull,
  pdd_ms: nullable(Count64),
  price_minor: nullable(Count64),
})

/** What an operator reads besides. */
const OperatorExportedCall = resource('OperatorExportedCall', {
  ...ExportedCall.properties,
  carrier_id: TextOrNull,
  cost_minor: nullable(Int64),
  project_id: Type.String(),
})

// These extend one object instead of spreading it into another, which takes a fifth of the time of an export.
const presented = (row: EndedCallRow): Static<typeof ExportedCall> =>
  Object.assign(presentCall(row), {
    billed_seconds: row.billed_seconds,
    currency: row.charge_minor === null ? null : row.currency,
    destination: row.destination,
    pdd_ms: row.pdd_ms,
    price_minor: row.charge_minor,
  })

const presentedToOperator = (row: EndedCallRow): Static<typeof OperatorExportedCall> =>
  Object.assign(presented(row), {
    carrier_id: row.carrier_id,
    cost_minor: row.cost_minor,
    project_id: row.project_id,
  })

/** How an export is written: what stands before its lines, and the line of a call. */
interface LineWriter {
  readonly head: string
  line(row: EndedCallRow): string
}

/** Returns the writer of a format, for a customer or an operator. */
export function lineWriter(format: 'csv' | 'jsonl', reader: 'customer' | 'operator'): LineWriter {
  const present: (row: EndedCallRow) => object = reader === 'operator' ? presentedToOperator : presented
  if (format === 'jsonl') return { head: '', line: row => `${JSON.stringify(present(row))}\n` }
  const { properties } = reader === 'operator' ? OperatorExportedCall : ExportedCall
  const columns = Object.keys(properties)
  return {
    // Lines end as RFC 4180 §2 says.
    head: `${columns.join(',')}\r\n`,
    line(row) {
      const fields = present(row) as Readonly<Record<string, string | number | null>>
      return `${columns.map(name => cell(fields[name])).join(',')}\r\n`
    },
  }
}

const cell = (value: string | number | null | undefined): string => {
  if (value === null || value === undefined) return ''
  return typeof value === 'number' ? String(value) : csvCell(value)
}

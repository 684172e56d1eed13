import { csvCell } from '../../core/domain/text/csv.ts'
import type { ExportedField } from '../../core/state/calls/call-history.ts'
import type { Value } from '../../core/state/index.ts'
import { Count64, Int64, nullable, resource, type TSchema, Type } from '../http/schema.ts'
import { callFields } from '../v1/call-present.ts'

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

const FIELDS: Readonly<Record<'customer' | 'operator', Readonly<Partial<Record<ExportedField, TSchema>>>>> = {
  customer: ExportedCall.properties,
  operator: OperatorExportedCall.properties,
}

/** How an export is written: the fields of a line in order, what stands before the lines, and the lines of calls. */
interface LineWriter {
  readonly fields: readonly ExportedField[]
  readonly head: string
  /** Writes a line of each row, which has a value for each field after the first `skip` ones. */
  lines(rows: readonly (readonly Value[])[], skip: number): string
}

/** A field in a format: what stands before its value, and how the value is written. */
interface Cell {
  readonly before: string
  write(value: Value): Value
}

const FORMATS: Readonly<
  Record<'csv' | 'jsonl', { cell(name: string, at: number, plain: boolean): Cell; readonly end: string }>
> = {
  // Lines end as RFC 4180 §2 says.
  csv: {
    cell: (_, at, plain) => ({ before: at === 0 ? '' : ',', write: plain ? plainCell : textCell }),
    end: '\r\n',
  },
  jsonl: {
    cell: (name, at, plain) => ({
      before: `${at === 0 ? '{' : ','}${JSON.stringify(name)}:`,
      write: plain ? plainJson : textJson,
    }),
    end: '}\n',
  },
}

const plainCell = (value: Value): Value => value ?? ''
const textCell = (value: Value): Value => (typeof value === 'string' ? csvCell(value) : plainCell(value))
const plainJson = (value: Value): Value => (typeof value === 'string' ? `"${value}"` : String(value))
const textJson = (value: Value): Value => JSON.stringify(value)

interface Shape {
  readonly type?: string
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Shape[]
}

/** Reports whether a text of the schema never needs quotes: a time or one of our words. */
const isPlain = (schema: Shape): boolean =>
  (schema.anyOf ?? [schema]).every(one => one.type !== 'string' || one.format === 'date-time' || one.enum !== undefined)

/** Returns the writer of a format, for a customer or an operator. */
export function lineWriter(format: 'csv' | 'jsonl', reader: 'customer' | 'operator'): LineWriter {
  const { cell, end } = FORMATS[format]
  const fields = Object.keys(FIELDS[reader]) as ExportedField[]
  const cells = fields.map((name, at) => cell(name, at, isPlain(FIELDS[reader][name] ?? {})))
  return {
    fields,
    head: format === 'csv' ? `${fields.join(',')}${end}` : '',
    lines(rows, skip) {
      let text = ''
      for (const row of rows) {
        let at = skip
        for (const { before, write } of cells) {
          text += before
          text += write(row[at++] ?? null)
        }
        text += end
      }
      return text
    },
  }
}

import { csvCell } from '../../core/domain/text/csv.ts'
import type { ExportedColumn, ExportedField, JoinedField } from '../../core/state/calls/call-history.ts'
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

/** How an export is written. */
interface LineWriter {
  /** What stands before the lines. */
  readonly head: string
  /** What is read of each call. */
  readonly columns: readonly ExportedColumn[]
  /** Writes a line of each row, which has a value for each column after its position. */
  lines(rows: readonly (readonly Value[])[]): string
}

/** How the fields of a format are written. Texts of ours never need quotes within, so that the store joins them. */
interface Format {
  before(name: string, at: number): string
  readonly quote: string
  readonly absent: string
  /** Writes a value that is no text of ours. */
  write(value: Value): string
  readonly end: string
}

const FORMATS: Readonly<Record<'csv' | 'jsonl', Format>> = {
  // Lines end as RFC 4180 §2 says.
  csv: {
    before: (_, at) => (at === 0 ? '' : ','),
    quote: '',
    absent: '',
    write: value => (typeof value === 'string' ? csvCell(value) : String(value ?? '')),
    end: '\r\n',
  },
  jsonl: {
    before: (name, at) => `${at === 0 ? '{' : ','}${JSON.stringify(name)}:`,
    quote: '"',
    absent: 'null',
    write: value => JSON.stringify(value),
    end: '}\n',
  },
}

/** Fields whose texts are ids, words and codes of ours. */
const OURS: ReadonlySet<string> = new Set<ExportedField>([
  ...(['account_sid', 'application_id', 'carrier_id', 'currency', 'id', 'number_id'] as const),
  ...(['parent_call_id', 'project_id', 'reason', 'trunk_id'] as const),
])

interface Shape {
  readonly type?: string
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Shape[]
}

const shapesOf = (schema: Shape): readonly Shape[] => schema.anyOf ?? [schema]
const isText = (schema: Shape): boolean => shapesOf(schema).some(({ type }) => type === 'string')

/** Reports whether a value never needs quotes within: a number, a time, or a text of ours. */
const isPlain = (name: string, schema: Shape): boolean =>
  OURS.has(name) ||
  shapesOf(schema).every(one => one.type !== 'string' || one.format === 'date-time' || one.enum !== undefined)

/** Returns the writer of a format, for a customer or an operator. */
export function lineWriter(format: 'csv' | 'jsonl', reader: 'customer' | 'operator'): LineWriter {
  const { before, quote, absent, write, end } = FORMATS[format]
  const fields = Object.entries(FIELDS[reader]) as [ExportedField, TSchema][]
  const columns: (ExportedField | JoinedField[])[] = []
  // What stands before the value of a field that is written here; null of a text that the store has joined.
  const befores: (string | null)[] = []
  for (const [at, [field, schema]] of fields.entries()) {
    const last = columns.at(-1)
    const joined = { field, before: before(field, at), quote: isText(schema) ? quote : '', absent }
    if (!isPlain(field, schema)) {
      columns.push(field)
      befores.push(joined.before)
    } else if (typeof last === 'object') last.push(joined)
    else {
      columns.push([joined])
      befores.push(null)
    }
  }
  return {
    head: format === 'csv' ? `${fields.map(([name]) => name).join(',')}${end}` : '',
    columns,
    lines(rows) {
      let text = ''
      for (const row of rows) {
        let at = 1
        for (const before of befores) {
          const value = row[at++] ?? null
          text += before === null ? value : before + write(value)
        }
        text += end
      }
      return text
    },
  }
}

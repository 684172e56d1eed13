import type { ExportedField, LineField } from '../../core/state/calls/call-lines.ts'
import type { TextRule } from '../../core/state/index.ts'
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

/** How the lines of an export are written: plain data, which goes to a thread. */
export interface LineFormat {
  /** What stands before the lines. */
  readonly head: string
  readonly fields: readonly LineField[]
  /** What ends a line. */
  readonly end: string
}

/** How the fields of a format are written. */
interface Format {
  before(name: string, at: number): string
  readonly rule: TextRule
  /** What stands around a text of ours, which never needs quotes within. */
  readonly quote: string
  readonly absent: string
  readonly end: string
}

const FORMATS: Readonly<Record<'csv' | 'jsonl', Format>> = {
  // Lines end as RFC 4180 §2 says.
  csv: { before: (_, at) => (at === 0 ? '' : ','), rule: 'csv_cell', quote: '', absent: '', end: '\r\n' },
  jsonl: {
    before: (name, at) => `${at === 0 ? '{' : ','}${JSON.stringify(name)}:`,
    rule: 'json_string',
    quote: '"',
    absent: 'null',
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
const isText = ({ type }: Shape): boolean => type === 'string'

/** How the values of a field are written: a number, or a text of ours, never needs quotes within. */
function writeOf(name: string, schema: Shape, { quote, rule }: Format): LineField['write'] {
  const texts = shapesOf(schema).filter(isText)
  if (texts.length === 0) return 'number'
  const ours = OURS.has(name) || texts.every(one => one.format === 'date-time' || one.enum !== undefined)
  return ours ? { quote } : { rule }
}

/** Returns how lines of a format are written, for a customer or an operator. */
export function lineFormat(format: 'csv' | 'jsonl', reader: 'customer' | 'operator'): LineFormat {
  const how = FORMATS[format]
  const { before, absent, end } = how
  const fields = Object.entries(FIELDS[reader]) as [ExportedField, TSchema][]
  return {
    head: format === 'csv' ? `${fields.map(([name]) => name).join(',')}${end}` : '',
    fields: fields.map(([field, schema], at) => ({
      field,
      before: before(field, at),
      write: writeOf(field, schema, how),
      absent,
    })),
    end,
  }
}

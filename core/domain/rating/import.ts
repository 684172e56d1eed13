import { CsvError, type Options, parse } from 'csv-parse'
import { csvCell, readCell } from '../text/csv.ts'
import { DECEIVING } from '../text/visible.ts'
import { decimal } from './explain.ts'
import type { Breathe } from './slices.ts'
import { MICRO_PER_MINOR, SIP_CLASS, type Tariff } from './types.ts'

/** One line of a rate list. */
export interface ImportedRate extends Tariff {
  readonly prefix: string
  readonly label: string
}

interface RateImport {
  readonly rates: readonly ImportedRate[]
  readonly problems: readonly { readonly line: number; readonly message: string }[]
}

const COLUMNS = ['prefix', 'label', 'rate', 'unit', 'initial', 'additional'] as const
const MAX_LINES = 1_000_000
const MAX_PROBLEMS = 100
const SLICE_BYTES = 32_768
const DECEIVES = new RegExp(`[${DECEIVING}]`, 'u')

/**
 * Parses a rate list: CSV (RFC 4180) with the header `prefix,label,rate,unit,initial,additional`. `rate` is in minor
 * units with up to six decimals, `unit` is minute or second, and the increments are whole seconds. Lists all problems
 * by line, up to the first line that is not CSV. It breathes between slices, because a list may have a million lines.
 */
export async function readRates(csv: string, breathe: Breathe): Promise<RateImport> {
  const problems = new Map<number, string>()
  const rates = new Map<string, ImportedRate>()
  let at: readonly number[] = []
  let count = 0
  const note = (line: number, message: string): void => {
    if (problems.size < MAX_PROBLEMS) problems.set(line, message)
  }
  const take = (fields: readonly string[], line: number): void => {
    const read = readRate(at.map(column => fields[column] ?? ''))
    if (typeof read === 'string') note(line, read)
    else if (rates.has(read.prefix)) note(line, `the prefix ${read.prefix} is repeated`)
    else rates.set(read.prefix, read)
  }
  try {
    await parseInSlices(csv, breathe, {
      bom: true,
      trim: true,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      skip_empty_lines: true,
      // Handles each line as it is parsed, so that the parser stores none.
      on_record: (fields: string[], { lines }) => {
        count += 1
        if (count > MAX_LINES) return null
        if (count === 1) at = columnsOf(fields)
        else if (!at.includes(-1)) take(fields, lines)
        return null
      },
    })
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    // After a misplaced quote the beginning of the next line is unknown.
    problems.set(Number(error['lines'] ?? 1), `this is not CSV: ${error.message}`)
  }
  if (at.length === 0 || at.includes(-1)) return refused(1, `the first line must be ${COLUMNS.join(',')}`)
  if (count > MAX_LINES) return refused(MAX_LINES, 'the list is too long')
  return { rates: [...rates.values()], problems: [...problems].map(([line, message]) => ({ line, message })) }
}

async function parseInSlices(csv: string, breathe: Breathe, options: Options<string[]>) {
  const parser = parse(options)
  const ended = new Promise<void>((resolve, reject) => {
    parser.once('end', resolve).once('error', reject).resume()
  })
  let failed = false
  ended.catch(() => {
    failed = true
  })
  const bytes = Buffer.from(csv)
  for (let at = 0; at < bytes.length && !failed; at += SLICE_BYTES) {
    parser.write(bytes.subarray(at, at + SLICE_BYTES))
    await breathe()
  }
  if (!failed) parser.end()
  await ended
}

/** Writes a rate list that `readRates` reads. */
export const writeRates = (rates: readonly ImportedRate[]): string =>
  [COLUMNS.join(','), ...rates.map(lineOf), ''].join('\n')

const lineOf = (rate: ImportedRate): string =>
  [
    rate.prefix,
    csvCell(rate.label),
    decimal(rate.rate_micro),
    rate.rate_unit,
    rate.increment_initial_seconds,
    rate.increment_additional_seconds,
  ].join(',')

/** Returns the index of each column; -1 for a missing one. */
function columnsOf(header: readonly string[]): readonly number[] {
  const names = header.map(name => name.toLowerCase())
  return COLUMNS.map(column => names.indexOf(column))
}

const refused = (line: number, message: string): RateImport => ({ rates: [], problems: [{ line, message }] })

function readRate([prefix = '', label = '', rate = '', unit = '', initial = '', additional = '']: string[]):
  | ImportedRate
  | string {
  const digits = prefix.toLowerCase() === SIP_CLASS ? SIP_CLASS : prefix.replace(/^(\+|00)/, '')
  if (digits !== SIP_CLASS && !/^[0-9]{1,15}$/.test(digits))
    return `${prefix || 'nothing'} is not a prefix of digits, nor the class ${SIP_CLASS}`
  const name = readCell(label)
  if (name === '' || name.length > 200) return 'the label must have 1 to 200 characters'
  if (DECEIVES.test(name)) return 'the label has a control character'
  const rate_micro = readMicro(rate)
  if (rate_micro === null) return `${rate || 'nothing'} is not a rate of up to six decimals`
  if (unit !== 'minute' && unit !== 'second') return `${unit || 'nothing'} is not a unit: minute or second`
  const first = readSeconds(initial)
  const next = readSeconds(additional)
  if (first === null || next === null || next === 0)
    return 'the increments must be whole seconds, the additional one not 0'
  return {
    prefix: digits,
    label: name,
    rate_micro,
    rate_unit: unit,
    increment_initial_seconds: first,
    increment_additional_seconds: next,
  }
}

function readMicro(text: string): number | null {
  const match = /^([0-9]{1,9})(?:\.([0-9]{1,6}))?$/.exec(text)
  return match ? Number(match[1]) * MICRO_PER_MINOR + Number((match[2] ?? '').padEnd(6, '0')) : null
}

const readSeconds = (text: string): number | null => (/^[0-9]{1,5}$/.test(text) ? Number(text) : null)

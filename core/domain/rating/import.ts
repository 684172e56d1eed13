import { csvCell, readCell } from '../text/csv.ts'
import { readTable } from '../text/csv-table.ts'
import { DECEIVING, STRAY_JOINER } from '../text/visible.ts'
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
const DECEIVES = new RegExp(`[${DECEIVING}]|${STRAY_JOINER}`, 'u')

/**
 * Parses a rate list: CSV (RFC 4180) with the header `prefix,label,rate,unit,initial,additional`. `rate` is in minor
 * units with up to six decimals, `unit` is minute or second, and the increments are whole seconds. Lists all problems
 * by line, up to the first line that is not CSV. It breathes between slices, because a list may have a million lines.
 */
export async function readRates(csv: string, breathe: Breathe): Promise<RateImport> {
  const rates = new Map<string, ImportedRate>()
  const take = (cells: readonly string[]): string | null => {
    const read = readRate(cells)
    if (typeof read === 'string') return read
    if (rates.has(read.prefix)) return `the prefix ${read.prefix} is repeated`
    rates.set(read.prefix, read)
    return null
  }
  const problems = await readTable(csv, breathe, { required: COLUMNS, max_lines: MAX_LINES, take })
  return { rates: [...rates.values()], problems }
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

function readRate([prefix = '', label = '', rate = '', unit = '', initial = '', additional = '']: readonly string[]):
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

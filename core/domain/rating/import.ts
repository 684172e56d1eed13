import { MICRO_PER_MINOR, SIP_CLASS, type Tariff } from './types.ts'

/** One line of a rate list. */
export interface ImportedRate extends Tariff {
  readonly prefix: string
  readonly label: string
}

export interface RateImport {
  readonly rates: readonly ImportedRate[]
  readonly problems: readonly { readonly line: number; readonly message: string }[]
}

const COLUMNS = ['prefix', 'label', 'rate', 'unit', 'initial', 'additional'] as const
const MAX_LINES = 1_000_000
const MAX_PROBLEMS = 100

/**
 * Reads a rate list: CSV with the header `prefix,label,rate,unit,initial,additional`; `rate` is minor units with up
 * to six decimals, `unit` minute or second, the increments are whole seconds. All problems are told at once, by line.
 */
export function readRates(csv: string): RateImport {
  const lines = csv.replace(/^\ufeff/, '').split(/\r?\n/)
  const problems: { line: number; message: string }[] = []
  const rates = new Map<string, ImportedRate>()
  const header = splitLine(lines[0] ?? '').map(name => name.trim().toLowerCase())
  const at = COLUMNS.map(column => header.indexOf(column))
  if (at.includes(-1))
    return { rates: [], problems: [{ line: 1, message: `the first line must be ${COLUMNS.join(',')}` }] }
  if (lines.length > MAX_LINES) return { rates: [], problems: [{ line: MAX_LINES, message: 'the list is too long' }] }
  for (const [index, line] of lines.entries()) {
    if (index === 0 || line.trim() === '') continue
    const fields = splitLine(line)
    const read = readRate(at.map(column => (fields[column] ?? '').trim()))
    if (typeof read === 'string') problems.push({ line: index + 1, message: read })
    else if (rates.has(read.prefix))
      problems.push({ line: index + 1, message: `the prefix ${read.prefix} is repeated` })
    else rates.set(read.prefix, read)
    if (problems.length >= MAX_PROBLEMS) break
  }
  return { rates: [...rates.values()], problems }
}

function readRate([prefix = '', label = '', rate = '', unit = '', initial = '', additional = '']: string[]):
  | ImportedRate
  | string {
  const digits = prefix.toLowerCase() === SIP_CLASS ? SIP_CLASS : prefix.replace(/^(\+|00)/, '')
  if (digits !== SIP_CLASS && !/^[0-9]{1,15}$/.test(digits))
    return `${prefix || 'nothing'} is not a prefix of digits, nor the class ${SIP_CLASS}`
  if (label === '' || label.length > 200) return 'the label must have 1 to 200 characters'
  const rate_micro = readMicro(rate)
  if (rate_micro === null) return `${rate || 'nothing'} is not a rate of up to six decimals`
  if (unit !== 'minute' && unit !== 'second') return `${unit || 'nothing'} is not a unit: minute or second`
  const first = readSeconds(initial)
  const next = readSeconds(additional)
  if (first === null || next === null || next === 0)
    return 'the increments must be whole seconds, the additional one not 0'
  return {
    prefix: digits,
    label,
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

/** RFC 4180 without line ends inside quotes. */
function splitLine(line: string): string[] {
  if (!line.includes('"')) return line.split(',')
  const fields: string[] = []
  const field = /(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g
  for (const match of line.matchAll(field)) fields.push(match[1]?.replace(/""/g, '"') ?? match[2] ?? '')
  return fields
}

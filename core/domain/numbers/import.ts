import { readTable } from '../text/csv-table.ts'
import { DEFAULT_COUNTRY } from './default-country.ts'
import { parseNumber } from './parse.ts'

/** Whom a number of the inventory is offered to. */
export const AUDIENCES = ['all', 'project', 'nobody'] as const
export type Audience = (typeof AUDIENCES)[number]

/** One line of a list of numbers. */
export interface ImportedNumber {
  /** With the plus. */
  readonly e164: string
  readonly monthly_minor: number
  readonly offered_to: Audience
  readonly offered_project_id: string | null
}

const MAX_LINES = 100_000
const MAX_MONTHLY = 100_000_000

/**
 * Parses a list of numbers: CSV with the column `number`, and optionally `monthly` (minor units) and `offered_to`
 * (`all`, `nobody` or the id of a project; `all` when it is empty). Lists all problems by line.
 */
export async function readNumberList(csv: string, breathe: () => Promise<void>) {
  const numbers = new Map<string, ImportedNumber>()
  const take = (cells: readonly string[]): string | null => {
    const read = readLine(cells)
    if (typeof read === 'string') return read
    if (numbers.has(read.e164)) return `the number ${read.e164} is repeated`
    numbers.set(read.e164, read)
    return null
  }
  const columns = { required: ['number'], optional: ['monthly', 'offered_to'] }
  const problems = await readTable(csv, breathe, { ...columns, max_lines: MAX_LINES + 1, take })
  return { numbers: [...numbers.values()], problems }
}

function readLine([number = '', monthly = '', offered = '']: readonly string[]): ImportedNumber | string {
  // Spreadsheets lose the plus, or keep it as text behind an apostrophe.
  const e164 = `+${number.replace(/^'?\+?/, '')}`
  if (!/^\+[1-9][0-9]{6,14}$/.test(e164) || parseNumber(e164, DEFAULT_COUNTRY)?.e164 !== e164)
    return `${number || 'nothing'} is not a number in E.164 that calls can reach`
  if (!/^[0-9]{0,9}$/.test(monthly) || Number(monthly) > MAX_MONTHLY)
    return `${monthly} is not a price in minor units, at most ${MAX_MONTHLY}`
  const price = { e164, monthly_minor: Number(monthly) }
  if (offered === '' || offered === 'all') return { ...price, offered_to: 'all', offered_project_id: null }
  if (offered === 'nobody') return { ...price, offered_to: 'nobody', offered_project_id: null }
  if (!/^prj_[0-9A-Za-z_-]{1,60}$/.test(offered)) return `${offered} is not all, nobody or the id of a project`
  return { ...price, offered_to: 'project', offered_project_id: offered }
}

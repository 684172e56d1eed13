import { oneLine } from '../core/domain/text/visible.ts'
import { painted, toneOf } from './colour.ts'

/** A column of a table: its title, and the text of a row. */
export interface Column<Row> {
  readonly title: string
  readonly text: (row: Row) => string
  /** Numbers stand at the right. */
  readonly right?: boolean
  /** The fewest characters to which it is cut; without it, it is shown whole. */
  readonly least?: number
  /** Columns of a higher rank are left out first where there is no room for all; those of rank 2 before one is cut. */
  readonly rank?: number
  /** Its words are states, which have colours. */
  readonly states?: boolean
}

const GAP = '  '

/**
 * Returns the lines of a table with a header, none longer than `width`. Columns of rank 2 are left out, then texts that
 * may be cut are, then other columns are left out: the highest rank first, and of it the last. The first one stays.
 */
export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[], width: number): string[] {
  const cells = columns.map(column => [column.title, ...rows.map(row => oneLine(column.text(row)))])
  const natural = cells.map(texts => Math.max(...texts.map(text => text.length)))
  let shown = columns.map((_, at) => at)
  for (;;) {
    const spares = shown.some(at => (columns[at]?.rank ?? 0) >= 2)
    const whole = sumOf(shown.map(at => natural[at] ?? 0)) + GAP.length * (shown.length - 1)
    const spared = spares && whole > width
    const widths = spared ? null : fitted(shown, columns, natural, width)
    if (widths || shown.length === 1) return linesOf(shown, widths ?? [width], { columns, cells })
    shown = withoutOne(shown, columns)
  }
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0)

/** Returns the widths of the shown columns, or null when they do not fit even as narrow as they may be. */
function fitted<Row>(
  shown: readonly number[],
  columns: readonly Column<Row>[],
  natural: readonly number[],
  width: number,
): number[] | null {
  const widths = shown.map(at => natural[at] ?? 0)
  const least = shown.map((at, index) => Math.min(widths[index] ?? 0, columns[at]?.least ?? widths[index] ?? 0))
  const room = width - GAP.length * (shown.length - 1)
  if (sumOf(least) > room) return null
  while (sumOf(widths) > room) {
    const spare = widths.map((value, index) => value - (least[index] ?? 0))
    const widest = spare.indexOf(Math.max(...spare))
    widths[widest] = (widths[widest] ?? 0) - Math.min(Math.max(...spare), sumOf(widths) - room)
  }
  return widths
}

function withoutOne<Row>(shown: readonly number[], columns: readonly Column<Row>[]): number[] {
  const [first = 0, ...others] = shown
  const rankOf = (at: number): number => columns[at]?.rank ?? 0
  const last = others.reduce((worst, at) => (rankOf(at) >= rankOf(worst) ? at : worst), others[0] ?? first)
  return [first, ...others.filter(at => at !== last)]
}

function linesOf<Row>(
  shown: readonly number[],
  widths: readonly number[],
  of: { readonly columns: readonly Column<Row>[]; readonly cells: readonly (readonly string[])[] },
): string[] {
  const count = of.cells[0]?.length ?? 0
  return Array.from({ length: count }, (_, line) =>
    shown
      .map((at, index) => {
        const width = widths[index] ?? 0
        const word = of.cells[at]?.[line] ?? ''
        const text = shortened(word, width)
        const tone = line === 0 ? 'title' : of.columns[at]?.states ? toneOf(word) : null
        const blanks = ' '.repeat(width - text.length)
        if (of.columns[at]?.right) return blanks + painted(text, tone)
        return painted(text, tone) + (index === shown.length - 1 ? '' : blanks)
      })
      .join(GAP)
      .trimEnd(),
  )
}

/** Cuts a text to so many characters; a cut one ends with an ellipsis. */
export const shortened = (text: string, width: number): string =>
  text.length <= width ? text : width <= 1 ? text.slice(0, width) : `${text.slice(0, width - 1)}…`

/** Ids are shown by so many characters, by which every command finds them again. */
const SHORT_ID = 12
const ID = /^([a-z]{2,4}_[0-9a-f-]{12,}|[A-Z]{2}[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/
const INSTANT = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(\.\d+)?Z$/

export const shortId = (id: string): string => (ID.test(id) ? id.slice(0, SHORT_ID) : id)

/** Texts of this many characters, such as numbers and times, are never cut. */
const WHOLE = 16

/** What a reader needs last: these columns are left out first. */
const LAST = new Set(['revision', 'created_at', 'updated_at', 'machine_id', 'time_zone', 'position'])

/** What a reader needs first: these columns are left out last. */
const FIRST = new Set(['action', 'e164', 'email', 'finding', 'kind', 'name', 'result', 'state', 'status', 'to'])

/** Texts that say nothing without their end: these columns are left out rather than cut. */
const WHOLE_ONLY = new Set(['price'])

/** Fields whose words are states. */
const STATES = new Set(['result', 'severity', 'standing', 'state', 'status'])

const shownText = (value: unknown, brief: boolean): string => {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  const text = Array.isArray(value) ? value.join(', ') || '-' : String(value)
  if (!brief) return text
  const [, day, time] = INSTANT.exec(text) ?? []
  return day === undefined ? shortId(text) : `${day} ${time}`
}

/** A column for every plain field of the items. `brief`, for people, shortens ids and times. */
export function columnsOf(items: readonly object[], brief: boolean): Column<object>[] {
  const names = [...new Set(items.flatMap(item => Object.entries(item).flatMap(plainName)))]
  return names.map(name => {
    const fieldOf = (row: object) => (row as Readonly<Record<string, unknown>>)[name]
    const numeric = items.every(item => typeof (fieldOf(item) ?? 0) === 'number')
    return {
      title: name.replaceAll('_', ' ').toUpperCase(),
      text: row => shownText(fieldOf(row), brief),
      right: numeric,
      states: STATES.has(name),
      ...(!WHOLE_ONLY.has(name) && items.some(item => shownText(fieldOf(item), brief).length > WHOLE)
        ? { least: SHORT_ID }
        : {}),
      rank: LAST.has(name) ? 2 : FIRST.has(name) ? -1 : 0,
    }
  })
}

function plainName([name, value]: readonly [string, unknown]): string[] {
  const texts = Array.isArray(value) && value.every(item => typeof item === 'string')
  return typeof value === 'object' && value !== null && !texts ? [] : [name]
}

import { painted } from '../colour.ts'
import { type Column, shortened, table } from '../table.ts'

// What a person sees and does in a list on the screen: pure, so that tests press keys without a terminal.

/** A list that a person looks through. */
export interface View<Row> {
  /** Lines above the list. */
  readonly head: readonly string[]
  readonly rows: readonly Row[]
  readonly columns: readonly Column<Row>[]
  /** Tells rows apart while the list changes, so that the cursor stays on its row. */
  readonly key: (row: Row) => string
}

export interface Browsing {
  /** The key of the chosen row; null for the first. */
  readonly chosen: string | null
  readonly filter: string
  /** Whether keys are letters of the filter. */
  readonly typing: boolean
  /** The column by which rows are sorted; null: as they come. */
  readonly sorted: number | null
  readonly reversed: boolean
  /** First line shown of an open row; null while the list is shown. */
  readonly open: number | null
}

export const BEGUN: Browsing = { chosen: null, filter: '', typing: false, sorted: null, reversed: false, open: null }

export interface Size {
  readonly columns: number
  readonly lines: number
}

const COLOUR = /\u001b\[[0-9;]*m/g
const HELP = '↑↓ choose  Enter open  / filter  s sort  r reverse  q quit'
const HELP_OPEN = '↑↓ scroll  Esc back  q quit'
/** The line of help, and the header of the table. */
const AROUND = 2

/** Returns the rows that the filter leaves, in their order. */
export function shownRows<Row>({ rows, columns }: View<Row>, { filter, sorted, reversed }: Browsing): Row[] {
  const wanted = filter.toLowerCase()
  const left = rows.filter(row => columns.some(({ text }) => text(row).toLowerCase().includes(wanted)))
  const column = sorted === null ? undefined : columns[sorted]
  if (column) left.sort((a, b) => column.text(a).localeCompare(column.text(b), 'en', { numeric: true }))
  return reversed ? left.reverse() : left
}

/** Returns what a key does; null: the person leaves. `page` is how many rows the screen shows. */
export function pressed<Row>(now: Browsing, key: string, view: View<Row>, page: number): Browsing | null {
  if (key === 'ctrl-c') return null
  if (now.typing) return typed(now, key)
  if (now.open !== null) return scrolled(now, now.open, key, page)
  const rows = shownRows(view, now)
  const at = rows.findIndex(row => view.key(row) === now.chosen)
  const to = (index: number): Browsing => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))]
    return { ...now, chosen: row === undefined ? null : view.key(row) }
  }
  const from = Math.max(0, at)
  switch (key) {
    case 'q':
      return null
    case 'escape':
      return now.filter === '' ? null : { ...now, filter: '' }
    case 'up':
    case 'k':
      return to(from - 1)
    case 'down':
    case 'j':
      return to(from + 1)
    case 'page-up':
      return to(from - page)
    case 'page-down':
      return to(from + page)
    case 'home':
      return to(0)
    case 'end':
      return to(rows.length - 1)
    case 'enter':
    case 'right':
      return rows.length === 0 ? now : { ...to(from), open: 0 }
    case '/':
      return { ...now, typing: true }
    case 's': {
      const next = now.sorted === null ? 0 : now.sorted + 1
      return { ...now, sorted: next < view.columns.length ? next : null }
    }
    case 'r':
      return { ...now, reversed: !now.reversed }
    default:
      return now
  }
}

function typed(now: Browsing, key: string): Browsing {
  if (key === 'enter') return { ...now, typing: false }
  if (key === 'escape') return { ...now, typing: false, filter: '' }
  if (key === 'backspace') return { ...now, filter: now.filter.slice(0, -1) }
  return key.length === 1 ? { ...now, filter: now.filter + key } : now
}

function scrolled(now: Browsing, open: number, key: string, page: number): Browsing | null {
  const steps: Readonly<Record<string, number>> = { up: -1, k: -1, down: 1, j: 1, 'page-up': -page, 'page-down': page }
  if (key === 'q') return null
  if (key === 'escape' || key === 'left' || key === 'enter') return { ...now, open: null }
  return { ...now, open: Math.max(0, open + (steps[key] ?? 0)) }
}

/** How many rows of the list a screen shows. */
export const rowsShown = ({ head }: Pick<View<unknown>, 'head'>, { lines }: Size): number =>
  Math.max(1, lines - head.length - AROUND)

/** Returns the lines of the screen with the list: none is longer, and there are not more than it has. */
export function listScreen<Row>(view: View<Row>, now: Browsing, { columns: width, lines }: Size): string[] {
  const rows = shownRows(view, now)
  const page = rowsShown(view, { columns: width, lines })
  const chosen = Math.max(
    0,
    rows.findIndex(row => view.key(row) === now.chosen),
  )
  const first = Math.max(0, Math.min(chosen - Math.floor(page / 2), rows.length - page))
  const [header = '', ...all] = table(rows.slice(first, first + page), view.columns, width - 2)
  const body = all.map((line, at) =>
    first + at === chosen ? painted(`> ${line.replace(COLOUR, '')}`, 'chosen') : `  ${line}`,
  )
  return [
    ...view.head.map(line => shortened(line, width)),
    `  ${header}`,
    ...body,
    ...Array.from({ length: page - body.length }, () => ''),
    shortened(footOf(view, now, rows.length), width),
  ]
}

function footOf<Row>(
  { rows, columns }: View<Row>,
  { filter, typing, sorted, reversed }: Browsing,
  left: number,
): string {
  if (typing) return `/${filter}_`
  const by = sorted === null ? '' : `by ${columns[sorted]?.title}${reversed ? ' reversed' : ''}  `
  const of = filter === '' ? '' : `${left} of ${rows.length} have "${filter}"  `
  return `${of}${by}${HELP}`
}

/** Returns the lines of the screen with an open row. */
export function openScreen(lines: readonly string[], first: number, size: Size): string[] {
  const page = Math.max(1, size.lines - 1)
  const from = Math.min(first, Math.max(0, lines.length - page))
  const shown = lines.slice(from, from + page).map(line => shortened(line, size.columns))
  return [...shown, ...Array.from({ length: page - shown.length }, () => ''), shortened(HELP_OPEN, size.columns)]
}

const KEYS: Readonly<Record<string, string>> = {
  '\u001b[A': 'up',
  '\u001bOA': 'up',
  '\u001b[B': 'down',
  '\u001bOB': 'down',
  '\u001b[C': 'right',
  '\u001bOC': 'right',
  '\u001b[D': 'left',
  '\u001bOD': 'left',
  '\u001b[5~': 'page-up',
  '\u001b[6~': 'page-down',
  '\u001b[H': 'home',
  '\u001b[F': 'end',
  '\u001b': 'escape',
  '\r': 'enter',
  '\n': 'enter',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0003': 'ctrl-c',
}
const ONE_KEY = /\u001b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|[\s\S]/g

/** Returns the keys in what a terminal sent (ECMA-48, and xterm's sequences). */
export const keysIn = (sent: string): string[] => (sent.match(ONE_KEY) ?? []).map(one => KEYS[one] ?? one)

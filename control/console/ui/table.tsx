import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Pages } from '../lib/data.ts'
import { Button, NoRows, ScrollBox } from './basics.tsx'

export interface Column<T> {
  readonly title: string
  readonly cell: (row: T) => ComponentChildren
  readonly right?: boolean
  /** Hides the column on narrow screens. */
  readonly wide?: boolean
  /** The CSS width of the column in tables with a fixed row height. */
  readonly width?: string
}

const classOf = <T,>(column: Column<T>): string =>
  `${column.right ? 'right num' : ''} ${column.wide ? 'wide-only' : ''}`

interface TableProps<T> {
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  /** Returns the address that a row links to. Its first cell holds the link. */
  readonly hrefOf?: (row: T) => string
}

const Head = <T,>({ columns }: { columns: readonly Column<T>[] }) => (
  <thead>
    <tr>
      {columns.map(column => (
        <th
          key={column.title}
          scope="col"
          class={classOf(column)}
          style={column.width ? { width: column.width } : undefined}
        >
          {column.title === '' ? <span class="hidden-visually">Actions</span> : column.title}
        </th>
      ))}
    </tr>
  </thead>
)

function Row<T>({
  row,
  columns,
  href,
  index,
}: {
  row: T
  columns: readonly Column<T>[]
  href?: string
  index?: number
}) {
  return (
    <tr class={href ? 'linked' : ''} aria-rowindex={index}>
      {columns.map((column, at) => (
        <td key={column.title} class={classOf(column)} data-title={column.title}>
          {at === 0 && href ? (
            <a class="row-link" href={href}>
              {column.cell(row)}
            </a>
          ) : (
            column.cell(row)
          )}
        </td>
      ))}
    </tr>
  )
}

export const Table = <T,>({ label, columns, rows, keyOf, hrefOf }: TableProps<T>) => (
  <ScrollBox label={label} kind="table-box">
    <table class="list wrap" aria-label={label}>
      <Head columns={columns} />
      <tbody>
        {rows.map(row => (
          <Row key={keyOf(row)} row={row} columns={columns} {...(hrefOf ? { href: hrefOf(row) } : {})} />
        ))}
      </tbody>
    </table>
  </ScrollBox>
)

/** The height of a row; style.css has it too. */
const ROW_PX = 44

/** The height of a card, which narrow screens have for a row: its values two a line, and what can be done below. */
function heightOfCard<T>(columns: readonly Column<T>[]): number {
  const shown = columns.filter(({ wide }) => !wide)
  const values = shown.filter(({ title }) => title !== '')
  return 20 + 24 * Math.ceil(values.length / 2) + (values.length < shown.length ? 32 : 0)
}
const SPARE_ROWS = 12
/** The rows that fill the box, whose height style.css limits. To read its height would lay out the page once more. */
const rowsInView = (row_px: number): number => Math.ceil(Math.min(innerHeight * 0.7, 900) / row_px)

/**
 * A table of any length: renders only the rows in view, and loads more near the end. Rows around those in view are
 * drawn when somebody is about to scroll.
 */
export function LongTable<T>({
  label,
  columns,
  rows,
  keyOf,
  hrefOf,
  more,
  onNearEnd,
}: TableProps<T> & { more: boolean; onNearEnd: () => void }) {
  const box = useRef<HTMLElement>(null)
  const [view, setView] = useState({ first: 0, last: 0 })
  const card_px = heightOfCard(columns)
  const row_px = matchMedia('(max-width: 700px)').matches ? card_px : ROW_PX
  const end = Math.max(view.last, rowsInView(row_px))

  const look = () => {
    const element = box.current
    if (!element) return
    // Steps of six rows cause fewer renders while scrolling.
    const first = Math.max(0, Math.floor(element.scrollTop / row_px / 6) * 6 - SPARE_ROWS)
    const last = Math.ceil((element.scrollTop + element.clientHeight) / row_px / 6) * 6 + SPARE_ROWS
    setView(before => (before.first === first && before.last === last ? before : { first, last }))
    if (more && last >= rows.length - SPARE_ROWS) onNearEnd()
  }
  const near_end = more && end >= rows.length - SPARE_ROWS
  useEffect(() => {
    if (near_end) onNearEnd()
  }, [near_end, rows.length, onNearEnd])

  const shown = rows.slice(view.first, end)
  const above = Math.min(view.first, rows.length) * row_px
  const below = Math.max(0, rows.length - end) * row_px
  return (
    <section
      class="table-box tall"
      ref={box}
      onScroll={look}
      onPointerEnter={look}
      onFocus={look}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it.
      tabIndex={0}
      aria-label={label}
    >
      <table
        class="list fixed"
        style={{ '--card-height': `${card_px}px` }}
        aria-label={label}
        aria-rowcount={more ? -1 : rows.length + 1}
      >
        <Head columns={columns} />
        <tbody>
          {above > 0 && <Gap px={above} span={columns.length} />}
          {shown.map((row, at) => (
            <Row
              key={keyOf(row)}
              row={row}
              columns={columns}
              index={view.first + at + 2}
              {...(hrefOf ? { href: hrefOf(row) } : {})}
            />
          ))}
          {below > 0 && <Gap px={below} span={columns.length} />}
        </tbody>
      </table>
    </section>
  )
}

const Gap = ({ px, span }: { px: number; span: number }) => (
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: it contains nothing that takes the focus.
  <tr class="gap" aria-hidden="true">
    <td colSpan={span} style={{ height: `${px}px` }} />
  </tr>
)

interface ListedProps {
  readonly of: Pages<unknown>
  /** What stands there when the list is empty. */
  readonly none: ComponentChildren
  /** The text of the button that loads the next page. */
  readonly more: string
  readonly children: ComponentChildren
}

/** A list that is loaded page by page: its rows, or why there are none, and what loads more. */
export const Listed = ({ of, none, more, children }: ListedProps) => (
  <>
    {of.rows.length === 0 ? <NoRows of={of}>{none}</NoRows> : children}
    <More of={of}>{more}</More>
  </>
)

/** Loads the next page of a list. */
export const More = ({ of, children }: { of: Pages<unknown>; children: ComponentChildren }) =>
  of.more ? (
    <div class="table-foot">
      <Button small onClick={of.loadMore}>
        {children}
      </Button>
    </div>
  ) : null

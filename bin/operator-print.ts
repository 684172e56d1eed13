import { oneLine } from '../core/domain/text/visible.ts'
import { type Column, columnsOf, table } from './table.ts'
import { give, show, tell, terminal } from './terminal.ts'

/**
 * Prints what an endpoint answered: `--json` as it is, else a table of its items or a line for each field. A terminal
 * gets a table that fits it; a program gets whole ids and every column.
 */
export function print(answer: unknown, { json = false }: { readonly json?: boolean }): void {
  if (json && answer === undefined) return
  if (json) give(`${JSON.stringify(answer)}\n`)
  else if (answer === undefined) tell('done\n')
  else if (!Array.isArray(answer)) tell(`${fieldsOf(answer as object).join('\n')}\n`)
  else if (answer.length === 0) tell('none\n')
  else printTable(answer, columnsOf(answer, terminal().columns !== null))
}

/** Prints a table that fits the terminal; a program gets every column. */
export const printTable = <Row>(rows: readonly Row[], columns: readonly Column<Row>[]): void =>
  show(table(rows, columns, terminal().columns ?? Number.POSITIVE_INFINITY))

/** The fields of an object, with those of the objects in it, such as `ceilings.cps: 5`. */
function fieldsOf(value: object, prefix = ''): string[] {
  return Object.entries(value).flatMap(([name, field]) => {
    if (typeof field === 'object' && field !== null && !Array.isArray(field))
      return fieldsOf(field, `${prefix}${name}.`)
    return [`${prefix}${name}: ${textOf(field)}`]
  })
}

const textOf = (field: unknown): string => {
  if (field === null) return '-'
  return Array.isArray(field) ? field.map(textOf).join(', ') || '-' : oneLine(String(field))
}

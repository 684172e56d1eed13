import { oneLine } from '../core/domain/text/visible.ts'
import { columnsOf, table } from './table.ts'

/**
 * Prints what an endpoint answered: `--json` as it is, else a table of its items or a line for each field. A terminal
 * gets a table that fits it; a program gets whole ids and every column.
 */
export function print(answer: unknown, { json = false }: { readonly json?: boolean }): void {
  if (json && answer === undefined) return
  process.stdout.write(json ? `${JSON.stringify(answer)}\n` : shown(answer))
}

function shown(answer: unknown): string {
  if (answer === undefined) return 'done\n'
  if (!Array.isArray(answer)) return `${fieldsOf(answer as object).join('\n')}\n`
  if (answer.length === 0) return 'none\n'
  const { isTTY, columns } = process.stdout
  const items = answer as object[]
  const lines = table(items, columnsOf(items, isTTY === true), isTTY ? columns : Number.POSITIVE_INFINITY)
  return `${lines.join('\n')}\n`
}

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

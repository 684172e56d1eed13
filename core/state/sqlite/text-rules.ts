import type { Database } from 'better-sqlite3'
import { type Expression, type RawBuilder, sql } from 'kysely'
import { csvCell } from '../../domain/text/csv.ts'
import type { TextRule, WriteText } from '../port.ts'

// A rule stands in JavaScript. SQLite calls it for those texts alone that are not obviously written in one of the ways
// below, which most numbers and names are: a call costs as much as reading the row.

const RULES: Readonly<Record<TextRule, (text: string) => string>> = {
  csv_cell: csvCell,
  json_string: text => JSON.stringify(text),
}

/** Lets the statements of a connection call the rules. */
export function defineTextRules(database: Database): void {
  for (const [name, rule] of Object.entries(RULES)) database.function(name, { deterministic: true }, rule)
}

type Text = Expression<string | null>

/** Whether a text is a plus sign and the digits of a whole number, as callers' and called numbers are. */
const isNumber = (text: Text) => sql`'+' || cast(${text} as integer) = ${text}`

/** Whether `pattern` has a character of a text. `glob` ends at a NUL, and so does `length`. */
const has = (text: Text, pattern: string) =>
  sql`octet_length(${text}) <> length(${text}) or ${text} glob ${sql.lit(pattern)}`

/** Ways in which a text is written without its rule. */
const OBVIOUS: Readonly<Record<TextRule, (text: Text) => RawBuilder<string>>> = {
  // What begins with a plus sign is a formula. Words begin with no sign, and have no separator.
  csv_cell: text => sql`
    when ${isNumber(text)} then '''' || ${text}
    when ${text} glob '[0-9A-Za-z]*' and not (${has(text, '*[^0-9A-Za-z ._()/-]*')}) then ${text}`,
  json_string: text => sql`
    when ${isNumber(text)} or not (${has(text, '*[^0-9A-Za-z +._()/-]*')}) then '"' || ${text} || '"'`,
}

export const sqliteText: WriteText = (rule, text) => sql<string | null>`case
    when ${text} is null then null
    ${OBVIOUS[rule](text)}
    else ${sql.raw(rule)}(${text}) end`

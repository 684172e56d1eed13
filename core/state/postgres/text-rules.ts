import { sql } from 'kysely'
import { FORMULA } from '../../domain/text/csv.ts'
import type { TextRule, WriteText } from '../port.ts'

// The rules for texts, by which SQLite writes too (sqlite/text-rules.ts), in the words of PostgreSQL. Its regular
// expressions know the escapes of ours, and a text of it has no NUL.

const RULES: Readonly<Record<TextRule, (text: Parameters<WriteText>[1]) => ReturnType<WriteText>>> = {
  csv_cell(text) {
    const shown = sql`case when ${text} ~ ${sql.lit(FORMULA.source)} then '''' || ${text} else ${text} end`
    return sql`case when ${text} ~ '[",\r\n]' then '"' || replace(${shown}, '"', '""') || '"' else ${shown} end`
  },
  json_string: text => sql`to_json(${text})::text`,
}

export const postgresText: WriteText = (rule, text) => RULES[rule](text)

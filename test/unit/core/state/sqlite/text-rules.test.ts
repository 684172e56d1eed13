import Database from 'better-sqlite3'
import { csvCell } from '../../../../../core/domain/text/csv.ts'
import { compiler } from '../../../../../core/state/sqlite/compiler.ts'
import { defineTextRules, sqliteText } from '../../../../../core/state/sqlite/text-rules.ts'
import t from '../../../../support/harness/index.ts'
import { anyCharacter, fc } from '../../../../support/properties.ts'

/** Returns what SQLite writes of a text. */
function written(database: Database.Database, rule: 'csv_cell' | 'json_string') {
  const query = compiler.selectFrom('short_code').select(eb => sqliteText(rule, eb.ref('sends_to')).as('written'))
  const statement = database.prepare(`with short_code(sends_to) as (select ?) ${query.compile().sql}`).pluck()
  return (text: string | null) => statement.get(text)
}

const database = new Database(':memory:')
t.teardown(() => void database.close())
defineTextRules(database)
const csv = written(database, 'csv_cell')
const json = written(database, 'json_string')

const said = [
  ...['', '0', 'a', '+2348030000001', '2348030000001', '++', '+1 2', '1+1', '-1', '=1+1', '@x', "'", "'=1", 'a,b', '"'],
  ...['a"b', 'a\r\nb', '\n', '\t=', 'a\u0000,b', '\u0000', '1\u0000"', '+1\u0000,', 'x]y', 'x[y', 'x^y', 'x*y', 'x?y'],
  ...['Nigeria (MTN) - mobile', 'Côte d’Ivoire', '\u200b=1', '＋1', '😀', 'a\\b', '\u007f', '\u2028', '\u001f', 'é,'],
]
const unit = fc.constantFrom(...`09aZ +-._()/[]^*?!%,;:'"\\=@\r\n\t\u0000\u0001\u007f\u00ad\u200b\u2028\ufeff＋é😀`)
const texts = fc.oneof(fc.string({ unit }), fc.string({ unit: anyCharacter }))

t.test(
  'SQLite writes every text as the rules in JavaScript do, also those that it writes without asking them',
  async t => {
    for (const text of said)
      t.same([csv(text), json(text)], [csvCell(text), JSON.stringify(text)], JSON.stringify(text))
    fc.assert(
      fc.property(texts, text => csv(text) === csvCell(text) && json(text) === JSON.stringify(text)),
      { numRuns: 2000 },
    )
    t.same([csv(null), json(null)], [null, null])
  },
)

t.test('SQLite asks the rules in JavaScript about none of the usual numbers and names', async t => {
  let asked = 0
  const counting = new Database(':memory:')
  for (const rule of ['csv_cell', 'json_string'] as const) {
    counting.function(rule, (_: unknown) => String(++asked))
    const write = written(counting, rule)
    for (const usual of ['+2348030000001', '2348030000001', 'alice', 'Nigeria - mobile (MTN)', null]) write(usual)
  }
  counting.close()
  t.equal(asked, 0)
})

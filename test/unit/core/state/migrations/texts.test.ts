import { createHash } from 'node:crypto'
import { Kysely } from 'kysely'
import type { AnyDb } from '../../../../../core/state/migrations/create-tables.ts'
import { MIGRATIONS } from '../../../../../core/state/migrations/index.ts'
import type { LocalConnection } from '../../../../../core/state/sqlite/local.ts'
import { localSqliteDialect } from '../../../../../core/state/sqlite/local-dialect.ts'
import t from '../../../../support/harness/index.ts'

// Data folders have run these migrations. PostgreSQL runs them too: what makes that possible must not change a letter
// of what they say to SQLite.
const LAST = '0041-exports-of-machines'
const TEXTS = 'bfadbc194fe0825c7cf508b8bbb19bcf08ddbb8642dd448c492599df101209dd'

t.test('the migrations up to 0041 say to SQLite what they always said', async t => {
  const texts: string[] = []
  const local = {
    run({ sql }: { readonly sql: string }) {
      texts.push(sql)
      return { rows: [] }
    },
  } as Partial<LocalConnection>
  const db: AnyDb = new Kysely({ dialect: localSqliteDialect(local as LocalConnection) })
  for (const [name, { up }] of Object.entries(MIGRATIONS)) if (name <= LAST) await up(db)
  t.ok(texts.some(text => text.endsWith(' without rowid')))
  t.equal(createHash('sha256').update(texts.join('\n')).digest('hex'), TEXTS)
})

import {
  type AlterTableNode,
  type ColumnDefinitionNode,
  Kysely,
  type KyselyPlugin,
  type RootOperationNode,
} from 'kysely'
import type { AnyDb } from '../../../../../core/state/migrations/create-tables.ts'
import { isAddition, MIGRATIONS } from '../../../../../core/state/migrations/index.ts'
import { queueWrite } from '../../../../../core/state/port.ts'
import type { LocalConnection } from '../../../../../core/state/sqlite/local.ts'
import { localSqliteDialect } from '../../../../../core/state/sqlite/local-dialect.ts'
import t from '../../../../support/harness/index.ts'

// Machines are upgraded one by one on one database: a release must run on a database to which a newer one has added
// (decision 1086). So what a migration does is read here, and what an earlier release could notice is refused.

/** Returns what an earlier release could notice of a migration. */
async function noticed(up: (db: AnyDb) => Promise<void>): Promise<string[]> {
  const nodes: RootOperationNode[] = []
  const reading: KyselyPlugin = {
    transformQuery({ node }) {
      nodes.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  const local = { run: () => ({ rows: [] }) } as Partial<LocalConnection>
  await up(new Kysely({ dialect: localSqliteDialect(local as LocalConnection), plugins: [reading] }))
  const made = new Set<string>()
  return nodes.flatMap(node => faultsOf(node, made))
}

/** Returns what is wrong with an operation, by the tables that the migration has made so far. */
function faultsOf(node: RootOperationNode, made: Set<string>): string[] {
  switch (node.kind) {
    case 'CreateTableNode':
      made.add(node.table.table.identifier.name)
      return []
    case 'CreateIndexNode': {
      const table = node.table?.table.identifier.name ?? ''
      return node.unique && !made.has(table) ? [`a unique index on ${table} refuses rows of the earlier release`] : []
    }
    case 'AlterTableNode':
      return made.has(node.table.table.identifier.name) ? [] : faultsOfAlter(node)
    default:
      return [`${node.kind}: rows and tables of the earlier release stay as they are`]
  }
}

function faultsOfAlter(node: AlterTableNode): string[] {
  const { kind: _kind, table: _table, columnAlterations = [], ...others } = node
  const faults = Object.entries(others).flatMap(([what, given]) =>
    given === undefined ? [] : [`alter table: ${what}`],
  )
  for (const one of columnAlterations) {
    if (one.kind !== 'AddColumnNode') faults.push(`alter table: ${one.kind}`)
    else if (needsValue(one.column))
      faults.push(`${one.column.column.column.name}: the earlier release gives it no value`)
  }
  return faults
}

const needsValue = (column: ColumnDefinitionNode): boolean =>
  column.unique === true || column.primaryKey === true || (column.notNull === true && column.defaultTo === undefined)

for (const [name, { up }] of Object.entries(MIGRATIONS))
  if (isAddition(name))
    t.test(`${name}: an earlier release runs on a database that has it`, async t => t.same(await noticed(up), []))

t.test('what an earlier release would notice is refused', async t => {
  const refused = async (of: (schema: AnyDb['schema']) => Parameters<typeof queueWrite>[1], why: RegExp) => {
    const faults = await noticed(db => queueWrite(db, of(db.schema)))
    t.match(faults.join(), why)
  }
  await refused(schema => schema.dropTable('call'), /DropTableNode/)
  await refused(schema => schema.alterTable('call').dropColumn('sid'), /DropColumnNode/)
  await refused(schema => schema.alterTable('call').renameColumn('sid', 'id'), /RenameColumnNode/)
  await refused(schema => schema.alterTable('call').renameTo('calls'), /renameTo/)
  await refused(schema => schema.alterTable('call').addColumn('more', 'text', one => one.notNull()), /no value/)
  await refused(schema => schema.alterTable('call').addColumn('more', 'text', one => one.unique()), /no value/)
  await refused(schema => schema.createIndex('once').on('call').column('sid').unique(), /unique index on call/)
  const writes = (db: AnyDb) => queueWrite(db, db.updateTable('call').set({ sid: '' }))
  t.match((await noticed(writes)).join(), /UpdateQueryNode/)
  const adds = async (db: AnyDb): Promise<void> => {
    await queueWrite(db, db.schema.createTable('note').addColumn('id', 'text'))
    await queueWrite(db, db.schema.createIndex('note_once').on('note').column('id').unique())
    await queueWrite(db, db.schema.alterTable('call').addColumn('note', 'text'))
    await queueWrite(
      db,
      db.schema.alterTable('call').addColumn('count', 'integer', one => one.notNull().defaultTo(0)),
    )
    await queueWrite(db, db.schema.createIndex('call_note').on('call').column('note'))
  }
  t.same(await noticed(adds), [])
})

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { TREE } from '../../../../core/runtime/tree.ts'
import { DATABASE_FILE, openState } from '../../../../core/state/index.ts'
import { decisionsAgain } from '../../../../core/state/maintenance/decisions-again.ts'
import { brokenInvariants } from '../../../../core/state/maintenance/invariants.ts'
import { insertTestAlert, insertTestContainment } from '../../../support/alerts.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import { ranCall, trunkOf } from '../../../support/ended-calls.ts'
import t from '../../../support/harness/index.ts'

// Databases as released versions left them are upgraded to now. fixtures/schemas has one for each release, with rows of
// all that a customer has: TEST_WRITE=1 writes that of the version in package.json, which is done when it is released.
// first.sql is an empty database of the first migration, which had no release. 2026-11-24.sql has a call, and is what
// the main branch of that day left: its first migration made less.

const FOLDER = join(TREE, 'fixtures/schemas')
/** Tables that a migration gave other names. */
const RENAMED: Readonly<Record<string, string>> = { trunk_step: 'call_step', trunk_step_failure: 'call_step_failure' }
const { version } = JSON.parse(readFileSync(join(TREE, 'package.json'), 'utf8')) as { readonly version: string }

const folder = mkdtempSync(join(tmpdir(), 'strowger-releases-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

interface Named {
  readonly name: string
  readonly sql: string
}

/** Returns a database as statements: its tables, its rows, then indexes, which would slow the rows down. */
function dumped(file: string): string {
  const db = new Database(file, { readonly: true })
  try {
    const all = (type: string) =>
      db
        .prepare("select name, sql from sqlite_master where type = ? and sql is not null and name not like 'sqlite_%'")
        .all(type) as Named[]
    const tables = all('table')
    const rows = tables.flatMap(({ name }) =>
      (db.prepare(`select * from "${name}"`).raw().all() as unknown[][]).map(
        values => `insert into "${name}" values (${values.map(literal).join(', ')})`,
      ),
    )
    const others = ['index', 'trigger', 'view'].flatMap(all)
    return [...tables.map(({ sql }) => sql), ...rows, ...others.map(({ sql }) => sql), ''].join(';\n')
  } finally {
    db.close()
  }
}

const literal = (value: unknown): string => {
  if (value === null) return 'null'
  if (Buffer.isBuffer(value)) return `x'${value.toString('hex')}'`
  return typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`
}

/** What counts of a schema: `alter table` puts columns elsewhere and spells statements otherwise. */
function shapeOf(file: string): object {
  const db = new Database(file, { readonly: true })
  try {
    const names = db
      .prepare("select type, name from sqlite_master where name not like 'sqlite_%' order by type, name")
      .all() as { type: string; name: string }[]
    return names.map(({ type, name }) => {
      if (type === 'index') return [name, db.prepare(`select name from pragma_index_info('${name}')`).pluck().all()]
      const columns = 'select name, type, "notnull", pk from'
      return type === 'table'
        ? [name, db.prepare(`${columns} pragma_table_info('${name}') order by name`).all()]
        : [name]
    })
  } finally {
    db.close()
  }
}

const counts = (file: string): Map<string, number> => {
  const db = new Database(file, { readonly: true })
  try {
    const tables = db
      .prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
      .pluck()
    return new Map(
      (tables.all() as string[]).map(name => [
        name,
        db.prepare(`select count(*) from "${name}"`).pluck().get() as number,
      ]),
    )
  } finally {
    db.close()
  }
}

/** Writes the database of this version, with rows. */
async function write(t: Parameters<typeof controlPlane>[0]): Promise<void> {
  const w = await controlPlane(t)
  const trunk_id = await trunkOf(w, "Head office 'Lagos'")
  await insertTestAlert(w)
  await insertTestContainment(w)
  await ranCall(w, { seconds: 62, pdd_ms: 840, call: { trunk_id } })
  await ranCall(w, { cause: 'refused', sip_code: 486, call: { trunk_id } })
  await w.state.db.updateTable('call').set({ decision_trace: '{}' }).execute()
  const copy = join(folder, 'now.sqlite')
  await w.state.maintenance.copyTo(copy)
  writeFileSync(join(FOLDER, `${version}.sql`), dumped(copy))
}

t.test('every released schema is upgraded to the one of a new database, with all its rows', async t => {
  if (process.env['TEST_WRITE']) await write(t)
  const fresh = join(folder, 'fresh')
  await (await openState({ data_dir: fresh, here: true })).close()
  const wanted = shapeOf(join(fresh, DATABASE_FILE))
  const files = readdirSync(FOLDER)
  t.ok(files.length >= 2)
  for (const file of files) {
    const data_dir = mkdtempSync(join(folder, 'old-'))
    const database = join(data_dir, DATABASE_FILE)
    const old = new Database(database)
    old.exec(readFileSync(join(FOLDER, file), 'utf8'))
    old.close()
    const before = counts(database)
    const state = await openState({ data_dir, here: true })
    t.same(await state.maintenance.faults(), [], file)
    t.same(await brokenInvariants(state.db), [], file)
    const again = await decisionsAgain(state.db, '2000-01-01T00:00:00.000Z')
    t.equal(again.length, before.get('call') ?? 0, `${file}: admission knows every call`)
    await state.close()
    t.same(shapeOf(database), wanted, `${file} has the schema of a new database`)
    const after = counts(database)
    for (const [name, rows] of before)
      t.ok((after.get(RENAMED[name] ?? name) ?? 0) >= rows, `${file}: ${name} keeps its rows`)
  }
})

t.test('migrations are one transaction: what ends them in the middle leaves the data as it was', async t => {
  const data_dir = mkdtempSync(join(folder, 'cut-'))
  const database = join(data_dir, DATABASE_FILE)
  const old = new Database(database)
  old.exec(readFileSync(join(FOLDER, '2026-11-24.sql'), 'utf8'))
  // The table of a late migration is there already, so that one fails after dozens that do not.
  old.exec('create table key_proof (planted text)')
  old.close()
  const before = dumped(database)
  await t.rejects(openState({ data_dir, here: true }), { message: /could not be brought up to date \(0045/ })
  t.equal(dumped(database), before)
  const mended = new Database(database)
  mended.exec('drop table key_proof')
  mended.close()
  const state = await openState({ data_dir, here: true })
  t.same(await brokenInvariants(state.db), [], 'the next start does all of them')
  await state.close()
})

t.test('every release of the changelog has its schema', async t => {
  const changes = readFileSync(join(TREE, 'CHANGELOG.md'), 'utf8')
  const released = [...changes.matchAll(/^## (\d+\.\d+\.\d+)/gm)].map(([, name]) => name)
  for (const name of [...released, version])
    t.ok(existsSync(join(FOLDER, `${name}.sql`)), `fixtures/schemas/${name}.sql`)
})

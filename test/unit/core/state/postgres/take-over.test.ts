import { existsSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { sql } from 'kysely'
import { machineOf } from '../../../../../core/runtime/machine.ts'
import { insertCall } from '../../../../../core/state/calls/running-calls.ts'
import { DATABASE_FILE, openState, type State } from '../../../../../core/state/index.ts'
import { verifyChain } from '../../../../../core/state/people/audit.ts'
import { openPostgres } from '../../../../../core/state/postgres/store.ts'
import { runCommand } from '../../../../support/command-line.ts'
import { controlPlane } from '../../../../support/control-plane.ts'
import { queuedCall, ranCall, recordingOf, trunkOf } from '../../../../support/ended-calls.ts'
import t from '../../../../support/harness/index.ts'
import { postgresDatabase } from '../../../../support/postgres.ts'

// `strowger migrate to-postgres`: all rows of an installation with calls, money and an audit trail.

const ODD_TEXTS = ['', 'it\'s "quoted" \\u0000 \\ $1 ? {} :x', 'a\0b', '😀\u2028\r\n\t\u{10ffff}', 'null']
const MOST = Number.MAX_SAFE_INTEGER

async function rowsOf({ db }: State, table: string, order: string): Promise<unknown[]> {
  return (await sql`select * from ${sql.table(table)} order by ${sql.raw(order)}`.execute(db)).rows
}

/** PostgreSQL has no text with NUL. */
const withoutNul = (rows: readonly unknown[]): unknown =>
  JSON.parse(JSON.stringify(rows), (_, value: unknown) =>
    typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value,
  )

t.test('an installation moves to PostgreSQL row for row, or nothing is moved', async t => {
  const w = await controlPlane(t)
  const trunk_id = await trunkOf(w, 'Head office Lagos')
  const call = { trunk_id, number_id: null }
  await ranCall(w, { seconds: null, cause: 'refused', sip_code: 486, call })
  const sid = await ranCall(w, { seconds: 62, pdd_ms: 840, call })
  const codes = ODD_TEXTS.map((code, at) => ({
    id: `sho_${at}`,
    project_id: null,
    code,
    sends_to: 'x'.repeat(300_000),
  }))
  await w.state.db.insertInto('short_code').values(codes).execute()
  await w.state.db.updateTable('configuration').set({ revision: MOST }).execute()
  // Of before machines had ids: its file is here.
  await w.state.db
    .insertInto('recording')
    .values(recordingOf(w, sid, ''))
    .execute()
  const data_dir = join(t.testdir({ data: { run: {} } }), 'data')
  const file = join(data_dir, DATABASE_FILE)
  await w.state.maintenance.copyTo(file)
  const source = new Database(file)
  t.teardown(() => source.close())
  const target = await postgresDatabase({ template: 'template0' })
  const env = { STROWGER_DATA: data_dir, STROWGER_MASTER_KEY: '07'.repeat(32) }
  const move = (url: string) =>
    runCommand(['migrate', 'to-postgres', '--json'], { env: { ...env, STROWGER_DATABASE_URL: url } })
  const refused = async (why: RegExp, url = target): Promise<void> => {
    t.match(await move(url), { code: 1, stdout: '', stderr: why })
  }

  const [ended_at] = source.prepare('select ended_at from call where sid = ?').pluck().all(sid)
  const endsAt = (at: unknown) => source.prepare('update call set ended_at = ? where sid = ?').run(at, sid)
  endsAt(null)
  await refused(/calls are in progress \(1\)/)
  endsAt(ended_at)
  source.exec('begin immediate')
  await refused(/is in use: stop what uses it/)
  source.exec('rollback; update configuration set revision = 1.5')
  await refused(/configuration\.revision has a value that is no text and no whole number/)
  source.prepare('update configuration set revision = ?').run(MOST)
  const [used_url, foreign_url] = [await postgresDatabase(), await postgresDatabase()]
  const [used, foreign] = [
    await openPostgres({ database_url: used_url }),
    await openPostgres({ database_url: foreign_url }),
  ]
  t.teardown(() => Promise.all([used.close(), foreign.close()]))
  await used.db.insertInto('key_proof').values({ id: 1, proof: '', created_at: '' }).execute()
  await refused(/the database is not empty/, used_url)
  await sql`drop table kysely_migration`.execute(foreign.db)
  await refused(/it lacks 0001-initial/, foreign_url)

  t.match(await runCommand(['calls', 'list'], { env }), { code: 0 }, 'the state is where it was')

  const moved = await move(target)
  t.equal(moved.code, 0, moved.stderr)
  const { machine_id } = machineOf(data_dir)
  const told: { name: string; rows: number }[] = JSON.parse(moved.stdout).tables
  const [before, after] = [await openState({ data_dir, here: true }), await openPostgres({ database_url: target })]
  t.teardown(() => Promise.all([before.close(), after.close()]))
  for (const { name, rows } of told) {
    const columns = source.prepare('select name from pragma_table_info(?) order by pk = 0, pk').pluck().all(name)
    const order = columns.map(column => `"${column}"`).join(', ')
    const there = await rowsOf(after, name, order)
    const here = await rowsOf(before, name, order)
    t.same(there, withoutNul(name === 'recording' ? here.map(row => ({ ...(row as object), machine_id })) : here), name)
    t.equal(there.length, rows, name)
  }
  t.ok(
    told.find(({ name }) => name === 'call')?.rows === 2 &&
      told.find(({ name }) => name === 'recording')?.rows === 1 &&
      told.find(({ name }) => name === 'ledger'),
  )
  const { organization_id } = await after.db
    .selectFrom('audit_event')
    .select('organization_id')
    .executeTakeFirstOrThrow()
  t.match(await verifyChain(after.db, organization_id), { intact: true })

  const last = Math.max(...(await after.db.selectFrom('call').select('position').execute()).map(row => row.position))
  const now_ms = Date.now()
  const next = await insertCall(after.db, queuedCall(w, 'CAnext', new Date(now_ms).toISOString()), now_ms)
  t.ok(next.position > last, 'numbers go on')
  const with_url = { ...env, STROWGER_DATABASE_URL: target }
  t.match(await runCommand(['calls', 'list', '--json'], { env: with_url }), { code: 0, stdout: /CAnext/ })
  t.match(await runCommand(['calls', 'list'], { env }), {
    code: 1,
    stderr: /is in PostgreSQL: set STROWGER_DATABASE_URL/,
  })
  t.match(await move(target), { code: 1, stderr: /is in PostgreSQL/ }, 'once')
  t.equal(existsSync(file), true, 'SQLite stays')
})

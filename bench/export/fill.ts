import { closeSync, fsyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { DATABASE_FILE } from '../../core/state/index.ts'

const DAY_S = 86_400
/** The calls ended in this many days, the last of them so many days ago. */
const SPAN = { days: 60, ago: 10 } as const
const CACHE_KIB = 2_000_000

/**
 * Writes ended calls with their records into the data folder of a platform that does not run; every second one has a
 * price. Ids are random, as the platform's own are, so that records are found where they would be found. One
 * transaction without a journal, and indexes that are made afterwards, take a hundredth of the time of plain inserts.
 */
export function fillWithCalls(folder: string, project_id: string, rows: number): void {
  const db = new Database(join(folder, DATABASE_FILE))
  try {
    // Otherwise the library refuses a database without a journal, and all is written twice.
    db.unsafeMode()
    for (const pragma of ['journal_mode = off', 'synchronous = off', `cache_size = -${CACHE_KIB}`, 'threads = 2'])
      db.pragma(pragma)
    const first_s = Math.floor(Date.now() / 1000) - (SPAN.days + SPAN.ago) * DAY_S
    db.transaction(() => {
      const remade = dropIndexes(db)
      insertAll(db, project_id, { rows, first_s })
      for (const sql of remade) db.exec(sql)
      // What watches calls has seen these: no platform gets so many at once.
      db.prepare(`insert into alert_cursor (name, position) values ('sources', ?)`).run(rows)
    })()
    db.pragma('journal_mode = wal')
  } finally {
    db.close()
  }
  // What is measured next does not share the disk with this.
  const file = openSync(join(folder, DATABASE_FILE), 'r+')
  fsyncSync(file)
  closeSync(file)
}

const FILLED = `('call', 'cdr', 'reservation')`

/** Drops the indexes that can be dropped. Returns the statements that make them again. */
function dropIndexes(db: Database.Database): readonly string[] {
  const of = `from sqlite_schema where type = 'index' and sql is not null and tbl_name in ${FILLED}`
  const indexes = db.prepare(`select name, sql ${of}`).all() as { readonly name: string; readonly sql: string }[]
  for (const { name } of indexes) db.exec(`drop index ${name}`)
  return indexes.map(({ sql }) => sql)
}

function insertAll(
  db: Database.Database,
  project_id: string,
  { rows, first_s }: { readonly rows: number; readonly first_s: number },
): void {
  const at = `strftime('%Y-%m-%dT%H:%M:%fZ', ${first_s} + i * ${(SPAN.days * DAY_S) / rows}, 'unixepoch')`
  const ends = `'+2342010000001', '+23480' || printf('%08d', i), 'completed'`
  const run = (sql: string, ...values: unknown[]): void => void db.prepare(sql).run(...values)
  run(
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < ?)
      insert into call (position, sid, project_id, origin, direction, from_number, to_number, status, queued_at,
        updated_at, answered_at, ended_at, ended_by, duration_seconds, pdd_ms, sip_code, request, decision_trace)
      select i, 'CA' || lower(hex(randomblob(16))), ?, 'trunk', 'outbound', ${ends}, t, t, t, t, 'caller', i % 600,
        200 + i % 900, 200, '{}', '{"admitted":true}' from (select i, ${at} as t from n)`,
    rows,
    project_id,
  )
  const same = 'sid, project_id, origin, direction, from_number, to_number, status, queued_at, answered_at, ended_at'
  run(
    `insert into cdr (call_sid, project_id, origin, direction, from_number, to_number, status, started_at, answered_at,
        ended_at, duration_seconds, sip_code, pdd_ms)
      select ${same}, duration_seconds, 200, pdd_ms from call order by position`,
  )
  run(
    `insert into reservation (call_sid, project_id, billing_account_id, billing, direction, destination, rate_label,
        rate_micro, rate_unit, increment_initial_seconds, increment_additional_seconds, currency, day, held_minute,
        caps, held_minor, begun_at, settled_at, duration_seconds, billed_seconds, charge_minor, call_position)
      select sid, project_id, 'bil_bench', 'rated', 'outbound', '+234', 'Nigeria', 14000000, 'minute', 60, 60, 'NGN',
        substr(queued_at, 1, 10), 0, '[]', 0, queued_at, ended_at, duration_seconds, duration_seconds, duration_seconds,
        position
      from call where position % 2 = 0 order by position`,
  )
}

import type { Insertable, Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { CallExportTable, Db, Trx } from '../db.ts'
import type { State } from '../index.ts'

/** Jobs that write calls into files. */

export type CallExportRow = Selectable<CallExportTable>

/** Whose job it is: a project's, or with null the operator's. A restricted key only sees those of its subaccount. */
export interface ExportOwner {
  readonly project_id: string | null
  readonly subaccount_id: string | null
}

/** How long a finished job and its file are kept. */
const EXPORT_KEPT_DAYS = 7
const DAY_MS = 86_400_000
/** A job whose slices fail this often, with no success between them, fails. */
const MAX_FAILURES = 3

/** The file of a job, below the data folder. */
export const exportFile = ({ id, format }: Pick<CallExportRow, 'id' | 'format'>): string => `exports/${id}.${format}`

const owned = (db: Db | Trx, { project_id, subaccount_id }: ExportOwner) => {
  const query = db
    .selectFrom('call_export')
    .where('state', '!=', 'deleted')
    .where('project_id', project_id === null ? 'is' : '=', project_id)
  return subaccount_id === null ? query : query.where('subaccount_id', '=', subaccount_id)
}

export const insertCallExport = (trx: Trx, row: Insertable<CallExportTable>): Promise<CallExportRow> =>
  trx.insertInto('call_export').values(row).returningAll().executeTakeFirstOrThrow()

export const findCallExport = (db: Db | Trx, owner: ExportOwner, id: string): Promise<CallExportRow | undefined> =>
  owned(db, owner).selectAll().where('id', '=', id).executeTakeFirst()

/** Finds a job of any owner, for what names its id by a signed link. */
export const findAnyCallExport = (db: Db | Trx, id: string): Promise<CallExportRow | undefined> =>
  db.selectFrom('call_export').selectAll().where('id', '=', id).where('state', '!=', 'deleted').executeTakeFirst()

/** Lists jobs, newest first. */
export function listCallExports(
  db: Db | Trx,
  owner: ExportOwner,
  page: { readonly limit: number; readonly before?: number },
): Promise<CallExportRow[]> {
  const query = owned(db, owner).selectAll().orderBy('position', 'desc').limit(page.limit)
  return (page.before === undefined ? query : query.where('position', '<', page.before)).execute()
}

/** Sums up the jobs of an owner: all that are kept, those that are not finished, and the bytes of their files. */
export async function exportUse(
  db: Db | Trx,
  project_id: string | null,
): Promise<{ readonly kept: number; readonly open: number; readonly bytes: number }> {
  const rows = await owned(db, { project_id, subaccount_id: null }).select(['state', 'bytes']).execute()
  return {
    kept: rows.length,
    open: rows.filter(({ state }) => state === 'queued' || state === 'running').length,
    bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0),
  }
}

/** Gives a job up; the background task removes its file, and then the row. */
export const dropCallExport = (db: Db | Trx, id: string): Promise<unknown> =>
  db.updateTable('call_export').set({ state: 'deleted' }).where('id', '=', id).execute()

/** Gives up the jobs whose time is over. */
export const expireCallExports = (db: Db | Trx, now_ms: number): Promise<unknown> =>
  db
    .updateTable('call_export')
    .set({ state: 'deleted' })
    .where('state', 'in', ['completed', 'failed'])
    .where('expires_at', '<=', iso(now_ms))
    .execute()

const inState = (db: Db, machine_id: string, ...states: CallExportRow['state'][]): Promise<CallExportRow[]> =>
  db
    .selectFrom('call_export')
    .selectAll()
    .where('state', 'in', states)
    .where('machine_id', 'in', ['', machine_id])
    .orderBy('position')
    .limit(100)
    .execute()

/** The jobs of a machine that are not finished. */
export const openCallExports = (db: Db, machine_id: string): Promise<CallExportRow[]> =>
  inState(db, machine_id, 'queued', 'running')

/** The jobs of a machine that are given up, and may still have files there. */
export const droppedCallExports = (db: Db, machine_id: string): Promise<CallExportRow[]> =>
  inState(db, machine_id, 'deleted')

export const forgetCallExport = (db: Db, id: string): Promise<unknown> =>
  db.deleteFrom('call_export').where('id', '=', id).where('state', '=', 'deleted').execute()

/** What a slice added to a job. */
interface ExportProgress {
  readonly after_position: number
  readonly rows: number
  readonly bytes: number
  readonly done: boolean
}

const ended = (now_ms: number) => ({ finished_at: iso(now_ms), expires_at: iso(now_ms + EXPORT_KEPT_DAYS * DAY_MS) })

/** Stores how far a job is, unless it was given up meanwhile. */
export const advanceCallExport = (
  state: State,
  id: string,
  { after_position, rows, bytes, done }: ExportProgress,
  now_ms: number,
): Promise<unknown> =>
  state.db
    .updateTable('call_export')
    .set({
      after_position,
      rows,
      bytes,
      failures: 0,
      ...(done ? { state: 'completed' as const, ...ended(now_ms) } : { state: 'running' as const }),
    })
    .where('id', '=', id)
    .where('state', 'in', ['queued', 'running'])
    .execute()

/** Ends a job that cannot go on. Its file goes with it. */
export const failCallExport = (state: State, id: string, error: string, now_ms: number): Promise<unknown> =>
  state.db
    .updateTable('call_export')
    .set({ state: 'failed', error, rows: 0, bytes: 0, ...ended(now_ms) })
    .where('id', '=', id)
    .where('state', 'in', ['queued', 'running'])
    .execute()

/** Counts a slice that failed unexpectedly. Returns true when the job is to be given up. */
export async function countExportFailure(state: State, { id, failures }: CallExportRow): Promise<boolean> {
  await state.db
    .updateTable('call_export')
    .set({ failures: failures + 1 })
    .where('id', '=', id)
    .execute()
  return failures + 1 >= MAX_FAILURES
}

import type { Selectable } from 'kysely'
import type { ImportedNumber } from '../../domain/numbers/import.ts'
import { iso } from '../../runtime/clock.ts'
import { newId } from '../../runtime/ids.ts'
import type { Db, NumberImportTable, Trx } from '../db.ts'
import type { State } from '../index.ts'
import { writeInParts, writePart } from '../maintenance/parts.ts'
import { insertStock } from './numbers.ts'

/**
 * Imports of numbers into the inventory. Lines are written and taken some in each transaction, so that calls and
 * requests wait for no import, and a killed process loses and repeats nothing.
 */

export type NumberImportRow = Selectable<NumberImportTable>

const HOUR_MS = 3_600_000
/** How long an import is kept in each state. */
const KEPT_MS = { reading: 6 * HOUR_MS, preview: 24 * HOUR_MS, completed: 30 * 24 * HOUR_MS } as const

/** Writes the lines of an import that nobody sees yet. Returns its id and how many of its numbers are known. */
export async function draftImport(
  state: State,
  facts: { readonly name: string; readonly begun_by: string; readonly now_ms: number },
  numbers: readonly ImportedNumber[],
): Promise<{ readonly id: string; readonly known: number }> {
  const id = `nim_${newId.uuid()}`
  const now = iso(facts.now_ms)
  const row = {
    id,
    name: facts.name,
    begun_by: facts.begun_by,
    state: 'reading' as const,
    total: numbers.length,
    known: 0,
    done: 0,
    added: 0,
    priced: numbers.filter(({ monthly_minor }) => monthly_minor > 0).length,
    created_at: now,
    updated_at: now,
    finished_at: null,
  }
  await state.shortTransaction(trx => trx.insertInto('number_import').values(row).execute())
  let known = 0
  let at = 0
  await writeInParts(state, async (trx, rows) => {
    const part = numbers.slice(at, at + rows)
    const lines = part.map(line => ({ import_id: id, ...line }))
    if (lines.length > 0) await trx.insertInto('number_import_line').values(lines).execute()
    known += (await knownOf(trx, part)).size
    at += part.length
    return at < numbers.length
  })
  return { id, known }
}

async function knownOf(db: Db | Trx, numbers: readonly Pick<ImportedNumber, 'e164'>[]): Promise<ReadonlySet<string>> {
  const wanted = numbers.map(({ e164 }) => e164)
  const rows = await db.selectFrom('number').select('e164').where('e164', 'in', wanted).execute()
  return new Set(rows.map(({ e164 }) => e164))
}

/** Moves an import from one state to the next; undefined when it is not in the first one. */
const moved = (
  trx: Trx,
  id: string,
  from: NumberImportRow['state'],
  changes: Partial<Pick<NumberImportRow, 'state' | 'known' | 'updated_at' | 'finished_at'>>,
): Promise<NumberImportRow | undefined> =>
  trx
    .updateTable('number_import')
    .set(changes)
    .where('id', '=', id)
    .where('state', '=', from)
    .returningAll()
    .executeTakeFirst()

/** Makes a drafted import visible, as a preview; undefined when the draft is gone. */
export const showImport = (trx: Trx, id: string, known: number, now: string) =>
  moved(trx, id, 'reading', { state: 'preview', known, updated_at: now })

/** Lets the job begin; undefined when the import is no preview. */
export const confirmImport = (trx: Trx, id: string, now: string) =>
  moved(trx, id, 'preview', { state: 'running', updated_at: now })

/** Drops a preview; undefined when the import is none. A background task deletes its lines. */
export const dropImport = (trx: Trx, id: string, now: string) =>
  moved(trx, id, 'preview', { state: 'reading', updated_at: iso(Date.parse(now) - KEPT_MS.reading - 1) })

export const findImport = (db: Db | Trx, id: string): Promise<NumberImportRow | undefined> =>
  db.selectFrom('number_import').selectAll().where('id', '=', id).where('state', '!=', 'reading').executeTakeFirst()

/** Lists imports before a position, newest first. */
export function listImports(db: Db, page: { readonly limit: number; readonly before?: number }) {
  const query = db
    .selectFrom('number_import')
    .selectAll()
    .where('state', '!=', 'reading')
    .orderBy('position', 'desc')
    .limit(page.limit)
  return (page.before === undefined ? query : query.where('position', '<', page.before)).execute()
}

/** Lists the first lines of an import that have not been taken yet. */
export const firstLines = (db: Db | Trx, import_id: string, limit: number): Promise<ImportedNumber[]> =>
  db
    .selectFrom('number_import_line')
    .select(['e164', 'monthly_minor', 'offered_to', 'offered_project_id'])
    .where('import_id', '=', import_id)
    .orderBy('e164')
    .limit(limit)
    .execute()

/** Takes some lines of each running import. Returns how many imports go on. */
export async function stepImports(state: State, now_ms: number): Promise<number> {
  const running = await state.db
    .selectFrom('number_import')
    .select('id')
    .where('state', '=', 'running')
    .orderBy('position')
    .execute()
  let open = 0
  for (const { id } of running)
    if (await writePart(state, (trx, rows) => step(trx, { id, rows, now: iso(now_ms) }))) open += 1
  return open
}

async function step(
  trx: Trx,
  { id, rows, now }: { readonly id: string; readonly rows: number; readonly now: string },
): Promise<boolean> {
  const lines = await firstLines(trx, id, rows)
  const known = lines.length === 0 ? new Set<string>() : await knownOf(trx, lines)
  const added = lines.filter(({ e164 }) => !known.has(e164))
  if (added.length > 0) await insertStock(trx, added, now)
  const last = lines.at(-1)
  if (last)
    await trx.deleteFrom('number_import_line').where('import_id', '=', id).where('e164', '<=', last.e164).execute()
  const over = lines.length < rows
  await trx
    .updateTable('number_import')
    .set(eb => ({
      done: eb('done', '+', lines.length),
      added: eb('added', '+', added.length),
      updated_at: now,
      ...(over ? { state: 'completed' as const, finished_at: now } : {}),
    }))
    .where('id', '=', id)
    .execute()
  return !over
}

/** Deletes old imports, unconfirmed previews, and drafts whose request has ended. */
export async function dropOldImports(state: State, now_ms: number): Promise<void> {
  for (const [kept, ms] of Object.entries(KEPT_MS)) {
    const old = await state.db
      .selectFrom('number_import')
      .select('id')
      .where('state', '=', kept as keyof typeof KEPT_MS)
      .where('updated_at', '<', iso(now_ms - ms))
      .limit(100)
      .execute()
    for (const { id } of old) await dropWhole(state, id)
  }
}

async function dropWhole(state: State, id: string): Promise<void> {
  await writeInParts(state, async (trx, rows) => {
    const last = (await firstLines(trx, id, rows)).at(-1)
    if (!last) return false
    await trx.deleteFrom('number_import_line').where('import_id', '=', id).where('e164', '<=', last.e164).execute()
    return true
  })
  await state.shortTransaction(trx => trx.deleteFrom('number_import').where('id', '=', id).execute())
}

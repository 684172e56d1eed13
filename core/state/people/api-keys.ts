import type { Selectable } from 'kysely'
import type { ApiKeyTable, Db, Trx } from '../db.ts'
import { cachedQuery, statement } from '../port.ts'
import type { ProjectRow } from './organizations.ts'

export type ApiKeyRow = Selectable<ApiKeyTable>

const KEY = statement((db, { public_id }: { public_id: string }) =>
  db
    .selectFrom('api_key')
    .innerJoin('project', 'project.id', 'api_key.project_id')
    .selectAll('api_key')
    .select('project.organization_id')
    .where('api_key.public_id', '=', public_id),
)

const PROJECTS = statement((db, { public_id }: { public_id: string }) =>
  db
    .selectFrom('project')
    .selectAll()
    .where('organization_id', '=', eb =>
      eb
        .selectFrom('api_key')
        .innerJoin('project as own', 'own.id', 'api_key.project_id')
        .select('own.organization_id')
        .where('api_key.public_id', '=', public_id),
    )
    .orderBy('created_at')
    .orderBy('id'),
)

export interface FoundKey {
  readonly key: ApiKeyRow & { readonly organization_id: string }
  /** Projects of its organization. Every request needs them, so they come in the same message. */
  readonly projects: readonly ProjectRow[]
}

const FOUND = cachedQuery(
  ({ public_id }: { readonly public_id: string }) => public_id,
  values => [KEY(values), PROJECTS(values)],
  ([[key], projects]): FoundKey | undefined => key && { key, projects },
)

/** Finds a key with its organization; undefined for an unknown public id. Callers must not modify the shared result. */
export const findKeyByPublicId = (db: Db, public_id: string): Promise<FoundKey | undefined> =>
  FOUND.read(db, { public_id })

/** Notes a key's last use, to the minute. */
export async function touchKey(db: Db, id: string, minute: string): Promise<void> {
  await db.updateTable('api_key').set({ last_used_at: minute }).where('id', '=', id).execute()
}

export const listKeys = (db: Db, organization_id: string): Promise<ApiKeyRow[]> =>
  db
    .selectFrom('api_key')
    .innerJoin('project', 'project.id', 'api_key.project_id')
    .selectAll('api_key')
    .where('project.organization_id', '=', organization_id)
    .orderBy('api_key.created_at', 'desc')
    .orderBy('api_key.id')
    .execute()

export const findKey = (db: Db, organization_id: string, id: string): Promise<ApiKeyRow | undefined> =>
  db
    .selectFrom('api_key')
    .innerJoin('project', 'project.id', 'api_key.project_id')
    .selectAll('api_key')
    .where('project.organization_id', '=', organization_id)
    .where('api_key.id', '=', id)
    .executeTakeFirst()

/** Finds a key of any organization by its id. */
export const findAnyKey = (db: Db, id: string): Promise<ApiKeyRow | undefined> =>
  db.selectFrom('api_key').selectAll().where('id', '=', id).executeTakeFirst()

export async function insertKey(trx: Trx, row: ApiKeyRow): Promise<void> {
  await trx.insertInto('api_key').values(row).execute()
}

/** Keeps the old key of a rotation valid until `retires_at`. */
export async function retireKey(trx: Trx, id: string, retires_at: string): Promise<void> {
  await trx.updateTable('api_key').set({ retires_at }).where('id', '=', id).execute()
}

export async function revokeKey(trx: Trx, id: string, revoked_at: string): Promise<void> {
  await trx.updateTable('api_key').set({ revoked_at }).where('id', '=', id).execute()
}

/** When a key stops by itself, expired or rotated out; null for never. ISO 8601. */
export const endOfKey = ({ retires_at, expires_at }: ApiKeyRow): string | null =>
  [retires_at, expires_at].filter(at => at !== null).sort()[0] ?? null

/** Reports whether a key is revoked, rotated out or expired. `now` is ISO 8601. */
export function keyIsOver(key: ApiKeyRow, now: string): boolean {
  const end = endOfKey(key)
  return key.revoked_at !== null || (end !== null && end <= now)
}

import { invalid, type Refusal } from './reply.ts'
import { optional, Type } from './schema.ts'

/** Query of lists that can be read page by page. */
export const pageQuery = (max: number) => ({
  limit: optional(Type.Integer({ minimum: 1, maximum: max, format: 'int32' })),
  cursor: optional(Type.String({ minLength: 1, maxLength: 512 })),
})

/** A cursor is opaque to clients: where the last page ended, as base64url JSON. */
export const cursorOf = (position: readonly (string | number)[]): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url')

/** The position in a cursor: as many texts or numbers as `kinds` names. */
export function readCursor<const K extends readonly ('string' | 'number')[]>(
  cursor: string | undefined,
  kinds: K,
): Position<K> | undefined | Refusal<'validation_failed'> {
  if (cursor === undefined) return undefined
  let position: unknown
  try {
    position = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {
    return invalid('cursor', 'is not a cursor of this list')
  }
  const fits =
    Array.isArray(position) &&
    position.length === kinds.length &&
    position.every((item, at) => typeof item === kinds[at])
  return fits ? (position as Position<K>) : invalid('cursor', 'is not a cursor of this list')
}

type Position<K extends readonly ('string' | 'number')[]> = {
  readonly [N in keyof K]: K[N] extends 'string' ? string : number
}

/** The position of a list whose cursor is one number, the newest first: where the next page goes on. */
export function positionOf(cursor: string | undefined): { readonly before?: number } | Refusal<'validation_failed'> {
  const position = readCursor(cursor, ['number'])
  if (position === undefined) return {}
  return 'refused' in position ? position : { before: position[0] }
}

/** What is shown of rows of which one more than `limit` was read, and the cursor when that one was there. */
export function pageOf<Row>(
  rows: readonly Row[],
  limit: number,
  position: (row: Row) => readonly (string | number)[],
): { readonly shown: readonly Row[]; readonly more: { readonly next_cursor?: string } } {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { shown, more: last !== undefined && rows.length > limit ? { next_cursor: cursorOf(position(last)) } : {} }
}

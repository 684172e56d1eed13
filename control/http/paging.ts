import { invalid, type Refusal } from './reply.ts'
import { optional, Type } from './schema.ts'

/** How many rows a page holds when the query does not say. */
const DEFAULT_PAGE = 50

/** Returns the query schema of a paginated list. */
export const pageQuery = (max: number) => ({
  limit: optional(Type.Integer({ minimum: 1, maximum: max, format: 'int32' })),
  cursor: optional(Type.String({ minLength: 1, maxLength: 512 })),
})

/** Encodes where a page ended as base64url JSON. The cursor is opaque to clients. */
export const cursorOf = (position: readonly (string | number)[]): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url')

/** Decodes the position in a cursor. Its values must have the types in `kinds`. */
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

/** Decodes the cursor of a list that is sorted by one number, newest first. */
export function positionOf(cursor: string | undefined): { readonly before?: number } | Refusal<'validation_failed'> {
  const position = readCursor(cursor, ['number'])
  if (position === undefined) return {}
  return 'refused' in position ? position : { before: position[0] }
}

/** Cuts `rows` to a page. Callers read one row more than `limit`; that row means that there is a next page. */
export function pageOf<Row>(
  rows: readonly Row[],
  limit: number,
  position: (row: Row) => readonly (string | number)[],
): { readonly shown: readonly Row[]; readonly more: { readonly next_cursor?: string } } {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { shown, more: last !== undefined && rows.length > limit ? { next_cursor: cursorOf(position(last)) } : {} }
}

interface PageAsked {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

interface PageAnswer<Item> {
  readonly status: 200
  readonly body: { data: Item[]; next_cursor?: string }
}

/** What a list reads and shows. `read` gets one row more than the page holds. */
interface Listing<Row, Window, Item> {
  readonly read: (window: Window & { readonly limit: number }) => Promise<readonly Row[]>
  readonly key: (row: Row) => string | number
  readonly present: (row: Row) => Item | Promise<Item>
}

/** Answers a page of a list in the order of a text, such as an id. */
export async function pageAfter<Row, Item>(
  { cursor, limit = DEFAULT_PAGE }: PageAsked,
  listing: Listing<Row, { readonly after?: string }, Item>,
): Promise<PageAnswer<Item> | Refusal<'validation_failed'>> {
  const after = readCursor(cursor, ['string'])
  if (after !== undefined && 'refused' in after) return after
  return answered(limit, after === undefined ? {} : { after: after[0] }, listing)
}

/** Answers a page of a list in the order of positions, newest first. */
export async function pageBefore<Row extends { readonly position: number }, Item>(
  { cursor, limit = DEFAULT_PAGE }: PageAsked,
  listing: Omit<Listing<Row, { readonly before?: number }, Item>, 'key'>,
): Promise<PageAnswer<Item> | Refusal<'validation_failed'>> {
  const before = positionOf(cursor)
  if ('refused' in before) return before
  return answered(limit, before, { ...listing, key: row => row.position })
}

async function answered<Row, Window, Item>(
  limit: number,
  window: Window,
  { read, key, present }: Listing<Row, Window, Item>,
): Promise<PageAnswer<Item>> {
  const { shown, more } = pageOf(await read({ ...window, limit: limit + 1 }), limit, row => [key(row)])
  const data: Item[] = []
  for (const row of shown) data.push(await present(row))
  return { status: 200, body: { data, ...more } }
}

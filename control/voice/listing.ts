import type { CallFilter } from '../../core/state/calls/calls.ts'
import { type CallStatus, FINAL_STATUSES } from '../../core/state/index.ts'
import { list, optional, resource, type TSchema, Type } from '../http/schema.ts'
import { isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'

/** Paging and filters of the list of calls (voice-compat.md section 5). */

const MAX_PAGE_SIZE = 100
const DEFAULT_PAGE_SIZE = 50
const MAX_PAGE = 1_000_000

/** A window of a list: at an offset, or next to a row. `older_than` is what follows it in the list. */
type Window<At> = { readonly offset: number } | { readonly older_than: At } | { readonly newer_than: At }

/** How the page tokens of a list name its rows. */
interface Places<Row, At> {
  textOf(row: Row): string
  /** Returns undefined when no row has such a text. */
  read(text: string): At | undefined
}

/** A row of a list whose sort key is its position. */
interface Positioned {
  readonly position: number
}

const BY_POSITION: Places<Positioned, number> = {
  textOf: ({ position }) => String(position),
  read: text => (/^[0-9]{1,15}$/.test(text) ? Number(text) : undefined),
}

interface PageAsked<At> {
  readonly page: number
  readonly page_size: number
  readonly window: Window<At>
}

/** Reads the page parameters. Values out of range are clamped, because the stock library requests pages of 1000. */
function readPage<At>(query: URLSearchParams, read: Places<never, At>['read']): PageAsked<At> | VoiceRefusal {
  const page = integerOf(query.get('Page') || query.get('page') || '0')
  if (page === null) return numbered(20001, 'Page is not an integer.')
  const size = integerOf(query.get('PageSize') || query.get('page_size') || String(DEFAULT_PAGE_SIZE))
  if (size === null) return numbered(20001, 'PageSize is not an integer.')
  const page_size = Math.min(MAX_PAGE_SIZE, Math.max(1, size))
  const asked = Math.min(MAX_PAGE, Math.max(0, page))
  const token = query.get('PageToken')
  if (!token) return { page: asked, page_size, window: { offset: asked * page_size } }
  const [, side, text = ''] = /^P([AB])(.+)$/s.exec(token) ?? []
  const at = read(text)
  if (at === undefined) return numbered(21481, 'PageToken is not one of this list.')
  const window = side === 'A' ? { older_than: at } : { newer_than: at }
  return { page: asked, page_size, window }
}

const integerOf = (text: string): number | null => (/^-?[0-9]{1,15}$/.test(text) ? Number(text) : null)

const PAGING = new Set(['Page', 'page', 'PageSize', 'page_size', 'PageToken'])

/** A page of a list as the stock library reads it. `key` holds the items. */
export const voicePageSchema = <K extends string, T extends TSchema>(name: string, key: K, item: T) =>
  resource(name, {
    ...({ [key]: list(item) } as Record<K, ReturnType<typeof list<T>>>),
    uri: Type.String(),
    page: Type.Integer(),
    page_size: Type.Integer(),
    first_page_uri: Type.String(),
    next_page_uri: optional(Type.String()),
    previous_page_uri: optional(Type.String()),
  })

/** The page of a list, and what every page says about itself. */
interface PageOf<Row> {
  readonly rows: readonly Row[]
  readonly about: Readonly<{ uri: string; page: number; page_size: number }> & ReturnType<typeof pageLinks>
}

interface Listed {
  readonly query: URLSearchParams
  readonly path: string
}

/** Reads the page that was asked for. `read` gets one row more than the page holds. */
export const voicePageOf = <Row extends Positioned>(
  asked: Listed,
  read: (window: Window<number>, limit: number) => Promise<readonly Row[]>,
): Promise<PageOf<Row> | VoiceRefusal> => voicePageBy(BY_POSITION, asked, read)

/** The same, of a list with another sort key. */
export async function voicePageBy<Placed, Row extends Placed, At>(
  places: Places<Placed, At>,
  { query, path }: Listed,
  read: (window: Window<At>, limit: number) => Promise<readonly Row[]>,
): Promise<PageOf<Row> | VoiceRefusal> {
  const page = readPage(query, places.read)
  if (isVoiceRefusal(page)) return page
  const { window, page_size } = page
  // The one extra row shows whether there is a next page.
  const found = await read(window, page_size + 1)
  const rows = 'newer_than' in window ? found.slice(-page_size) : found.slice(0, page_size)
  const more = 'newer_than' in window ? rows.length > 0 : found.length > page_size
  const [first, last] = [rows.at(0), rows.at(-1)].map(row => row && places.textOf(row))
  const links = pageLinks({ path, query, page, more, first, last })
  return { rows, about: { uri: path, page: page.page, page_size, ...links } }
}

/**
 * Returns a page of a list that is read as a whole, such as the participants of a conference. Its order is that of the
 * texts that name its rows.
 */
export function pageByText<Placed, Row extends Placed>(
  places: Places<Placed, string>,
  asked: Listed,
  all: readonly Row[],
): Promise<PageOf<Row> | VoiceRefusal> {
  const { textOf } = places
  const sorted = all.toSorted((one, other) => (textOf(one) < textOf(other) ? -1 : 1))
  return voicePageBy(places, asked, async (window, limit) => {
    if ('offset' in window) return sorted.slice(window.offset, window.offset + limit)
    if ('older_than' in window) return sorted.filter(row => textOf(row) > window.older_than).slice(0, limit)
    return sorted.filter(row => textOf(row) < window.newer_than).slice(-limit)
  })
}

/** Returns a page of a list that is read as a whole and of which nobody deletes rows. */
export async function pageOfAll<Row>(
  { query, path }: Listed,
  all: readonly Row[],
): Promise<PageOf<Row> | VoiceRefusal> {
  const page = readPage(query, BY_POSITION.read)
  if (isVoiceRefusal(page)) return page
  const { page_size } = page
  const found = all.slice(page.page * page_size, (page.page + 1) * page_size + 1)
  const rows = found.slice(0, page_size)
  const more = found.length > page_size
  const links = pageLinks({ path, query, page, more, first: undefined, last: undefined })
  const next = more ? { next_page_uri: links.first_page_uri.replace('Page=0', `Page=${page.page + 1}`) } : {}
  return { rows, about: { uri: path, page: page.page, page_size, ...links, ...next } }
}

/**
 * Returns links to the neighbouring pages. They contain the filters and a token with the last (`PA`) or first (`PB`)
 * row shown, so that new calls do not shift the pages of a client that follows the links.
 */
function pageLinks(facts: {
  readonly path: string
  readonly query: URLSearchParams
  readonly page: Pick<PageAsked<unknown>, 'page' | 'page_size'>
  readonly more: boolean
  readonly first: string | undefined
  readonly last: string | undefined
}): { first_page_uri: string; next_page_uri?: string; previous_page_uri?: string } {
  const { page, page_size } = facts.page
  const link = (number: number, token: string | null): string => {
    const query = new URLSearchParams([...facts.query].filter(([name]) => !PAGING.has(name)))
    query.set('PageSize', String(page_size))
    query.set('Page', String(number))
    if (token !== null) query.set('PageToken', token)
    return `${facts.path}?${query}`
  }
  const before = facts.first ? `PB${facts.first}` : null
  return {
    first_page_uri: link(0, null),
    ...(facts.more && facts.last ? { next_page_uri: link(page + 1, `PA${facts.last}`) } : {}),
    ...(page > 0 ? { previous_page_uri: link(page - 1, before) } : {}),
  }
}

const STATUSES: readonly CallStatus[] = ['queued', 'ringing', 'in-progress', ...FINAL_STATUSES]

export function readFilter(query: URLSearchParams): CallFilter | VoiceRefusal {
  const status = query.get('Status') || undefined
  const known = STATUSES.find(one => one === status)
  if (status !== undefined && known === undefined)
    return numbered(20001, `Status ${shown(status)} is not a call status.`)
  const answered = readRange(query, 'StartTime')
  if ('kind' in answered) return answered
  const ended = readRange(query, 'EndTime')
  if ('kind' in ended) return ended
  const to_number = plusKept(query.get('To') ?? '')
  const from_number = plusKept(query.get('From') ?? '')
  const parent_call_sid = query.get('ParentCallSid')
  return {
    ...(to_number ? { to_number } : {}),
    ...(from_number ? { from_number } : {}),
    ...(parent_call_sid ? { parent_call_sid } : {}),
    ...(known ? { status: known } : {}),
    ...(Object.keys(answered).length > 0 ? { answered } : {}),
    ...(Object.keys(ended).length > 0 ? { ended } : {}),
  }
}

/**
 * A plus sign that was not written as %2B arrives as a blank. In a filter it can mean nothing else, before a number as
 * before the hours of a time zone; taken as it is, it would match nothing and show an empty list.
 */
export const plusKept = (text: string): string => text.replace(/(^|:[0-9.]+) (?=[0-9:]+$)/, '$1+')

interface Range {
  readonly from?: string
  readonly before?: string
}

/**
 * Reads a time filter. `Name` selects that day or second, `Name<` on or before it, `Name>` on or after it: the operator
 * is part of the parameter's name.
 */
export function readRange(query: URLSearchParams, name: string): Range | VoiceRefusal {
  let from: string | undefined
  let before: string | undefined
  for (const operator of ['', '<', '>']) {
    const text = query.get(`${name}${operator}`)
    if (!text) continue
    const span = spanOf(plusKept(text))
    if (!span) return numbered(20001, `${name}${operator} ${shown(text)} is neither YYYY-MM-DD nor an ISO 8601 time.`)
    if (operator !== '<') from = from === undefined || span.from > from ? span.from : from
    if (operator !== '>') before = before === undefined || span.before < before ? span.before : before
  }
  return { ...(from === undefined ? {} : { from }), ...(before === undefined ? {} : { before }) }
}

/** Returns the interval that a date (a whole day) or a time (a whole second) covers. */
function spanOf(text: string): { readonly from: string; readonly before: string } | null {
  const day = /^\d{4}-\d{2}-\d{2}$/.test(text)
  if (!day && !/^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?$/.test(text)) return null
  const zoned = day || /(Z|[+-]\d{2}:?\d{2})$/.test(text) ? text : `${text}Z`
  const at = Date.parse(zoned)
  if (Number.isNaN(at)) return null
  const begin = day ? at : Math.floor(at / 1000) * 1000
  const until = begin + (day ? 86_400_000 : 1000)
  return { from: new Date(begin).toISOString(), before: new Date(until).toISOString() }
}

const shown = (text: string): string => text.slice(0, 60)

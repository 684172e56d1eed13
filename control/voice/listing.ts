import type { CallFilter, CallRow, CallWindow } from '../../core/state/calls/calls.ts'
import { type CallStatus, FINAL_STATUSES } from '../../core/state/index.ts'
import { numbered, type VoiceRefusal } from './errors.ts'

/** Paging and filters of the list of calls (voice-compat.md section 5). */

const MAX_PAGE_SIZE = 100
const DEFAULT_PAGE_SIZE = 50
const MAX_PAGE = 1_000_000

interface PageAsked {
  readonly page: number
  readonly page_size: number
  readonly window: CallWindow
}

/** Reads the page parameters. Values out of range are clamped, because the stock library requests pages of 1000. */
export function readPage(query: URLSearchParams): PageAsked | VoiceRefusal {
  const page = integerOf(query.get('Page') || query.get('page') || '0')
  if (page === null) return numbered(20001, 'Page is not an integer.')
  const size = integerOf(query.get('PageSize') || query.get('page_size') || String(DEFAULT_PAGE_SIZE))
  if (size === null) return numbered(20001, 'PageSize is not an integer.')
  const page_size = Math.min(MAX_PAGE_SIZE, Math.max(1, size))
  const asked = Math.min(MAX_PAGE, Math.max(0, page))
  const token = query.get('PageToken')
  if (!token) return { page: asked, page_size, window: { offset: asked * page_size } }
  const [, side, position] = /^P([AB])([0-9]{1,15})$/.exec(token) ?? []
  if (position === undefined) return numbered(21481, 'PageToken is not one of this list.')
  const window = side === 'A' ? { older_than: Number(position) } : { newer_than: Number(position) }
  return { page: asked, page_size, window }
}

const integerOf = (text: string): number | null => (/^-?[0-9]{1,15}$/.test(text) ? Number(text) : null)

const PAGING = new Set(['Page', 'page', 'PageSize', 'page_size', 'PageToken'])

/**
 * Returns links to the neighbouring pages. They contain the filters and a token with the last (`PA`) or first (`PB`)
 * row shown, so that new calls do not shift the pages of a client that follows the links.
 */
export function pageLinks(facts: {
  readonly path: string
  readonly query: URLSearchParams
  readonly page: PageAsked
  readonly more: boolean
  readonly first: CallRow | undefined
  readonly last: CallRow | undefined
}): { first_page_uri: string; next_page_uri?: string; previous_page_uri?: string } {
  const { page, page_size } = facts.page
  const link = (number: number, token: string | null): string => {
    const query = new URLSearchParams([...facts.query].filter(([name]) => !PAGING.has(name)))
    query.set('PageSize', String(page_size))
    query.set('Page', String(number))
    if (token !== null) query.set('PageToken', token)
    return `${facts.path}?${query}`
  }
  const before = facts.first ? `PB${facts.first.position}` : null
  return {
    first_page_uri: link(0, null),
    ...(facts.more && facts.last ? { next_page_uri: link(page + 1, `PA${facts.last.position}`) } : {}),
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
  const to_number = query.get('To')
  const from_number = query.get('From')
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

interface Range {
  readonly from?: string
  readonly before?: string
}

/**
 * Reads a time filter. `Name` selects that day or second, `Name<` on or before it, `Name>` on or after it: the operator
 * is part of the parameter's name.
 */
function readRange(query: URLSearchParams, name: string): Range | VoiceRefusal {
  let from: string | undefined
  let before: string | undefined
  for (const operator of ['', '<', '>']) {
    const text = query.get(`${name}${operator}`)
    if (!text) continue
    const span = spanOf(text)
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

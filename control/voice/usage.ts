import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { dayOf } from '../../core/domain/rating/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { type UsageRow, usageBy } from '../../core/state/money/billing.ts'
import { findOrganization } from '../../core/state/people/organizations.ts'
import { nullable, resource, type Static, Type } from '../http/schema.ts'
import { isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import { decimalOf } from './fields.ts'
import { pageOfAll, voicePageSchema } from './listing.ts'
import { API_VERSION, accountPath } from './present.ts'
import { type VoiceContext, voiceRoute } from './route.ts'

/** What priced calls used and cost: sums of the same days as `GET /v1/billing/usage`. */

const Text = Type.String()

const UsageRecord = resource('VoiceUsageRecord', {
  account_sid: Text,
  api_version: Text,
  as_of: Text,
  category: Text,
  description: Text,
  start_date: Text,
  end_date: Text,
  count: Text,
  count_unit: Text,
  usage: Text,
  usage_unit: Text,
  price: Text,
  price_unit: Text,
  uri: nullable(Text),
  subresource_uris: Type.Record(Type.String(), Text),
})
type Shown = Static<typeof UsageRecord>

const CATEGORIES = {
  calls: 'Calls',
  'calls-inbound': 'Calls from carriers',
  'calls-outbound': 'Calls to carriers',
} as const
type Category = keyof typeof CATEGORIES

/** The first and the last day of a record, in the time zone of the organization. */
interface Span {
  readonly from: string
  readonly to: string
}

const DAY_MS = 86_400_000
const MAX_DAYS = 366

const plusDays = (day: string, days: number): string =>
  new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10)

/** The spans of days that a path asks for, the latest first. `asked` is what StartDate and EndDate select. */
const PERIODS = {
  '': { what: 'all days together', spans: (asked: Span) => [asked] },
  '/Daily': { what: 'day by day', spans: (asked: Span) => parts(asked, day => day) },
  '/Monthly': { what: 'month by month', spans: (asked: Span) => parts(asked, day => day.slice(0, 7)) },
  '/Today': { what: 'of today', spans: (_: Span, today: string) => [{ from: today, to: today }] },
  '/Yesterday': {
    what: 'of yesterday',
    spans: (_: Span, today: string) => [{ from: plusDays(today, -1), to: plusDays(today, -1) }],
  },
  '/ThisMonth': {
    what: 'of this month',
    spans: (_: Span, today: string) => [{ from: `${today.slice(0, 7)}-01`, to: today }],
  },
  '/LastMonth': {
    what: 'of the last month',
    spans(_: Span, today: string) {
      const to = plusDays(`${today.slice(0, 7)}-01`, -1)
      return [{ from: `${to.slice(0, 7)}-01`, to }]
    },
  },
} as const
type Period = keyof typeof PERIODS

/** Divides a span into those of the days that have the same key. */
function parts({ from, to }: Span, keyOf: (day: string) => string): Span[] {
  const found: Span[] = []
  for (let day = to; day >= from; day = plusDays(day, -1)) {
    const last = found.at(-1)
    if (last && keyOf(last.from) === keyOf(day)) found.splice(-1, 1, { from: day, to: last.to })
    else found.push({ from: day, to: day })
  }
  return found
}

/** Reads a day, or days before today such as `-30days`. */
function dayAsked(query: URLSearchParams, name: string, today: string): string | null | VoiceRefusal {
  const text = query.get(name)
  if (!text) return null
  const [, days] = /^-([0-9]{1,4})days?$/.exec(text) ?? []
  if (days !== undefined) return plusDays(today, -Number(days))
  const is_day = /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))
  return is_day ? text : numbered(20001, `${name} ${text.slice(0, 60)} is neither YYYY-MM-DD nor days such as -30days.`)
}

/** Reads StartDate and EndDate. A span has at most the 366 days before its end. */
function spanAsked(query: URLSearchParams, today: string): Span | VoiceRefusal {
  const start = dayAsked(query, 'StartDate', today)
  if (isVoiceRefusal(start)) return start
  const end = dayAsked(query, 'EndDate', today)
  if (isVoiceRefusal(end)) return end
  const to = end === null || end > today ? today : end
  const earliest = plusDays(to, 1 - MAX_DAYS)
  const from = start === null || start < earliest ? earliest : start
  return from > to ? numbered(20001, 'StartDate is after EndDate.') : { from, to }
}

async function records({ account, services, query, path, now_ms }: VoiceContext, period: Period) {
  const { db } = services.state
  const zone = (await findOrganization(db, account.organization_id))?.time_zone ?? 'UTC'
  const today = dayOf(now_ms, zone)
  const asked = spanAsked(query, today)
  if (isVoiceRefusal(asked)) return asked
  const spans = PERIODS[period].spans(asked, today)
  const wanted = query.get('Category')
  const categories = (Object.keys(CATEGORIES) as Category[]).filter(one => !wanted || one === wanted)
  const [from = '', to = ''] = [spans.at(-1)?.from, spans[0]?.to]
  const days = (direction: 'inbound' | 'outbound') =>
    usageBy(db, account.project_id, 'day', { from, to, direction }, MAX_DAYS)
  const inbound = await days('inbound')
  const outbound = await days('outbound')
  const rows = { 'calls-inbound': inbound, 'calls-outbound': outbound, calls: [...inbound, ...outbound] }
  const found = spans.flatMap(span => categories.map(category => present(account, span, category, rows, now_ms)))
  const page = await pageOfAll({ query, path }, found)
  if (isVoiceRefusal(page)) return page
  return { status: 200 as const, body: { usage_records: [...page.rows], ...page.about } }
}

function present(
  { account_sid }: VoiceContext['account'],
  { from, to }: Span,
  category: Category,
  rows: Readonly<Record<Category, readonly UsageRow[]>>,
  now_ms: number,
): Shown {
  const days = rows[category].filter(({ key }) => key !== null && key >= from && key <= to)
  const sum = (of: (row: UsageRow) => number): number => days.reduce((all, row) => all + of(row), 0)
  const below = `${accountPath(account_sid)}/Usage/Records`
  const periods = Object.keys(PERIODS).filter(name => name !== '')
  const named = periods.map(name => {
    const key = name.slice(1).replace(/(?<=[a-z])(?=[A-Z])/g, '_')
    return [key.toLowerCase(), `${below}${name}.json?Category=${category}`] as const
  })
  return {
    account_sid,
    api_version: API_VERSION,
    as_of: iso(now_ms),
    category,
    description: CATEGORIES[category],
    start_date: from,
    end_date: to,
    count: String(sum(row => row.calls)),
    count_unit: 'calls',
    usage: (sum(row => row.billed_seconds) / 60).toFixed(2),
    usage_unit: 'minutes',
    price: decimalOf(sum(row => row.settled_minor)),
    price_unit: CURRENCY.toLowerCase(),
    uri: `${below}.json?Category=${category}&StartDate=${from}&EndDate=${to}`,
    subresource_uris: Object.fromEntries(named),
  }
}

export const usage = (Object.keys(PERIODS) as Period[]).map(period =>
  voiceRoute({
    method: 'GET',
    path: `/Usage/Records${period}`,
    suffix: '.json',
    extended: true,
    summary: `What priced calls used and cost, ${PERIODS[period].what}`,
    fields: {
      Category: Object.keys(CATEGORIES).join(', '),
      'StartDate, EndDate': 'YYYY-MM-DD or -30days, both included; at most 366 days, which is the default',
      'PageSize, Page': 'as in the list of calls',
    },
    replies: { 200: voicePageSchema(`VoiceUsage${period.slice(1)}Page`, 'usage_records', UsageRecord) },
    run: context => records(context, period),
  }),
)

import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { AUDIENCES } from '../../core/domain/numbers/import.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import { iso } from '../../core/runtime/clock.ts'
import { listAllNumbers, type NumberRow, saveNumber, stockNumbers } from '../../core/state/configuration/numbers.ts'
import { QUARANTINE_MS, withdrawNumber } from '../../core/state/configuration/withdrawn-numbers.ts'
import { chargeNumbersOf } from '../../core/state/money/number-charges.ts'
import { findAnyProject } from '../../core/state/people/customers.ts'
import { withoutScope } from '../http/access.ts'
import type { Caller } from '../http/caller.ts'
import { pageAfter, pageQuery } from '../http/paging.ts'
import { type Change, invalid, isRefusal, notFound, refuse } from '../http/reply.ts'
import {
  Count64,
  described,
  E164,
  Instant,
  input,
  Money,
  nullable,
  oneOf,
  optional,
  pageSchema,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { shrunk } from '../v1/numbers.ts'
import { AuditReason } from './audit-reason.ts'
import { route } from './route.ts'

const MAX_PAGE = 1000
const DEFAULT_PAGE = 100
/** Numbers that one request may add. */
const MAX_RANGE = 1000

const Status = oneOf('available', 'held', 'quarantined')

const StockNumber = resource('OperatorNumber', {
  id: Type.String(),
  e164: Type.String(),
  status: Status,
  project_id: nullable(Type.String()),
  quarantined_until: nullable(Instant),
  monthly_minor: Money,
  offered_to: described(oneOf(...AUDIENCES), 'Who may order it while it is in the inventory.'),
  offered_project_id: nullable(Type.String()),
  revision: Count64,
  created_at: Instant,
  updated_at: Instant,
})

const present = (row: NumberRow): Static<typeof StockNumber> => ({
  id: row.id,
  e164: row.e164,
  status: row.status,
  project_id: row.project_id,
  quarantined_until: row.quarantined_until,
  monthly_minor: row.monthly_minor,
  offered_to: row.offered_to,
  offered_project_id: row.offered_project_id,
  revision: row.revision,
  created_at: row.created_at,
  updated_at: row.updated_at,
})

const numberChange = (
  summary: string,
  before: NumberRow,
  after: NumberRow,
  customer: Change['customer'],
  detail: string | null = null,
): Change => ({
  resource: { type: 'number', id: after.id, name: after.e164, href: `/operator/v1/numbers/${after.id}` },
  summary,
  detail,
  before: present(before),
  after: present(after),
  from_revision: before.revision,
  to_revision: after.revision,
  ...(customer ? { customer } : {}),
})

/** Returns the numbers from `first` to `last` in E.164, or null when they are no range of one length. */
function rangeOf(first: string, last: string): string[] | null {
  const [from, to] = [BigInt(first.slice(1)), BigInt(last.slice(1))]
  if (first.length !== last.length || to < from || to - from >= BigInt(MAX_RANGE)) return null
  return Array.from({ length: Number(to - from) + 1 }, (_, index) => `+${from + BigInt(index)}`)
}

export const Monthly = Type.Integer({
  minimum: 0,
  maximum: 100_000_000,
  description: 'What a project pays for each month or part of a month with the number; 0: nothing.',
})

/** What a number costs its project is money: more than the scope of the route. */
export const priceRefused = (caller: Caller, { monthly_minor }: { readonly monthly_minor?: number }) =>
  monthly_minor === undefined ? null : withoutScope(caller, 'operator:money')

export const numbers = [
  route({
    method: 'get',
    path: '/numbers',
    summary: 'List the numbers of the inventory and of all projects',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(
      {
        ...pageQuery(MAX_PAGE),
        project_id: optional(Type.String({ maxLength: 64 })),
        status: optional(Status),
        prefix: optional(Type.String({ pattern: '^\\+?[0-9]{1,15}$' })),
      },
      { additionalProperties: false },
    ),
    replies: { 200: pageSchema(StockNumber) },
    run: ({ db, query: { cursor, limit = DEFAULT_PAGE, ...filter } }) =>
      pageAfter(
        { cursor, limit },
        { read: window => listAllNumbers(db, { ...filter, ...window }), key: row => row.e164, present },
      ),
  }),

  route({
    method: 'post',
    path: '/numbers',
    summary: 'Add a range of numbers to the inventory; all of them or none. A price needs operator:money',
    scope: 'operator:network',
    context: 'organization',
    idempotent: true,
    audit: { kind: 'numbers', action: 'numbers.stocked' },
    body: input('StockNumbersRequest', {
      first: E164,
      last: optional(E164),
      monthly_minor: optional(Monthly),
    }),
    replies: { 201: resource('StockedNumbers', { added: Count64, first: Type.String(), last: Type.String() }) },
    refusals: ['resource_exists', 'scope_required', 'role_forbidden'],
    async prepare({ body: { first, last = first } }) {
      const range = rangeOf(first, last)
      if (range === null) return invalid('/last', `must end a range of at most ${MAX_RANGE} numbers of one length`)
      const wrong = range.find(e164 => parseNumber(e164, DEFAULT_COUNTRY)?.e164 !== e164)
      return wrong === undefined ? range : invalid('/first', `${wrong} is not a number that calls can reach`)
    },
    async run({ db, body, caller, prepared: range, now }) {
      if (isRefusal(range)) return range
      const refusal = priceRefused(caller, body)
      if (refusal) return refusal
      const { first, last = first, monthly_minor = 0 } = body
      const [known, ...others] = await stockNumbers(db, range, monthly_minor, now)
      if (known !== undefined)
        return refuse('resource_exists', { value: others.length === 0 ? known : `${known} and ${others.length} more` })
      const added = range.length
      const change: Change = {
        resource: { type: 'numbers', id: first, name: added === 1 ? first : `${first} to ${last}`, href: null },
        summary:
          added === 1 ? `Added ${first} to the inventory` : `Added ${added} numbers from ${first} to the inventory`,
        before: null,
        after: { first, last, added, monthly_minor },
      }
      return { status: 201, body: { added, first, last }, change }
    },
  }),

  route({
    method: 'get',
    path: '/numbers/{number_id}',
    summary: 'Read a number',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: StockNumber },
    async run({ number }) {
      return { status: 200, revision: number.revision, body: present(number) }
    },
  }),

  route({
    method: 'post',
    path: '/numbers/{number_id}/assign',
    summary: 'Give a number of the inventory to a project. A price needs operator:money',
    description:
      'A price other than that of the inventory is for this project: when the number is in the inventory again, it is ' +
      'offered to nobody until `/operator/v1/number-offers` offers it.',
    scope: 'operator:network',
    context: 'organization',
    if_match: 'number',
    applies: true,
    audit: { kind: 'numbers', action: 'number.assigned' },
    body: input('AssignNumberRequest', {
      project_id: Type.String({ maxLength: 64 }),
      monthly_minor: optional(Monthly),
    }),
    replies: { 200: StockNumber },
    refusals: ['number_in_use', 'scope_required', 'role_forbidden'],
    async run({ db, caller, number, body, now, services }) {
      const refusal = priceRefused(caller, body)
      if (refusal) return refusal
      if (number.status !== 'available') return refuse('number_in_use', { value: number.e164, limit: number.status })
      const { monthly_minor = number.monthly_minor } = body
      // A price that was made for one project is no offer to others when the number is back in the inventory.
      const apart = { offered_to: 'nobody', offered_project_id: null } as const
      const terms = { monthly_minor, ...(monthly_minor === number.monthly_minor ? {} : apart) }
      const project = await findAnyProject(db, body.project_id)
      if (!project) return notFound(`project ${body.project_id}`)
      const saved = await saveNumber(db, number, { project_id: project.id, status: 'held', ...terms }, now)
      await chargeNumbersOf(db, project, services.clock.now())
      const customer = { organization_id: project.organization_id, project_id: project.id }
      const change = numberChange(`Gave ${saved.e164} to ${project.name}`, number, saved, customer)
      return { status: 200, revision: saved.revision, body: present(saved), change }
    },
  }),

  route({
    method: 'post',
    path: '/numbers/{number_id}/take-back',
    summary: 'Take a number from its project; it is quarantined for 30 days',
    scope: 'operator:network',
    context: 'organization',
    if_match: 'number',
    applies: true,
    audit: { kind: 'numbers', action: 'number.taken_back' },
    body: input('TakeNumberBackRequest', { reason: AuditReason }),
    replies: { 200: StockNumber },
    refusals: ['number_in_use'],
    async run({ db, number, body, now, services }) {
      if (number.status !== 'held' || number.project_id === null)
        return refuse('number_in_use', { value: number.e164, limit: number.status })
      const quarantined_until = iso(services.clock.now() + QUARANTINE_MS)
      const { number: saved, block } = await withdrawNumber(db, number, { quarantined_until, now })
      const project = await findAnyProject(db, number.project_id)
      const customer = project && { organization_id: project.organization_id, project_id: project.id }
      const change = [
        numberChange(`Took ${saved.e164} back`, number, saved, customer, body.reason),
        ...shrunk(block, saved).map(other => ({ ...other, ...(customer ? { customer } : {}) })),
      ]
      return { status: 200, revision: saved.revision, body: present(saved), change, wake: ['jobs'] as const }
    },
  }),
]

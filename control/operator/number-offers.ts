import { AUDIENCES } from '../../core/domain/numbers/import.ts'
import { counted } from '../../core/domain/text/counted.ts'
import { listOffers, offerNumbers } from '../../core/state/configuration/number-offers.ts'
import { findAnyProject } from '../../core/state/people/customers.ts'
import { type Change, invalid, notFound } from '../http/reply.ts'
import {
  Count64,
  described,
  E164,
  input,
  listOf,
  Money,
  nullable,
  oneOf,
  optional,
  resource,
  Type,
} from '../http/schema.ts'
import { Monthly, priceRefused } from './numbers.ts'
import { route } from './route.ts'

const MAX_OFFERS = 1000

const OfferedTo = described(
  oneOf(...AUDIENCES),
  'Who may order: every project, the one of `offered_project_id`, or nobody.',
)

export const numberOffers = [
  route({
    method: 'get',
    path: '/number-offers',
    summary: 'Summarize the inventory by price and by who may order',
    description: 'Numbers that a project holds or that are quarantined are left out. At most 1000 lines.',
    scope: 'operator:read',
    context: 'organization',
    replies: {
      200: listOf(
        resource('OperatorNumberOffer', {
          offered_to: OfferedTo,
          offered_project_id: nullable(Type.String()),
          monthly_minor: Money,
          numbers: described(Count64, 'How many numbers are offered so.'),
          first: described(Type.String(), 'The least of them.'),
          last: described(Type.String(), 'The greatest of them.'),
        }),
      ),
    },
    async run({ db }) {
      return { status: 200, body: { data: await listOffers(db, MAX_OFFERS) } }
    },
  }),

  route({
    method: 'post',
    path: '/number-offers',
    summary: 'Offer the numbers of a range that are in the inventory. A price needs operator:money',
    description:
      'Customers see what is offered to them at `/v1/numbers/available` and order it at `/v1/number-orders`. Numbers of ' +
      'the range that a project holds, that are quarantined or that the platform does not have stay as they are.',
    scope: 'operator:network',
    context: 'organization',
    idempotent: true,
    audit: { kind: 'numbers', action: 'numbers.offered' },
    body: input('OfferNumbersRequest', {
      first: described(E164, 'First number, in E.164 form.'),
      last: optional(described(E164, 'Last number, in E.164 form; without it the first alone.')),
      offered_to: OfferedTo,
      offered_project_id: optional(nullable(Type.String({ maxLength: 64 }))),
      monthly_minor: optional(Monthly),
    }),
    replies: {
      200: resource('OfferedNumbers', { offered: described(Count64, 'Numbers that are offered so now.') }),
    },
    refusals: ['scope_required', 'role_forbidden'],
    example: { first: '+2342010000100', last: '+2342010000199', offered_to: 'all', monthly_minor: 50_000 },
    async run({ db, body, caller, now }) {
      const refusal = priceRefused(caller, body)
      if (refusal) return refusal
      const { first, last = first, offered_to, offered_project_id = null, monthly_minor } = body
      if (last.length !== first.length || last < first) return invalid('/last', 'must not be before first')
      if ((offered_to === 'project') !== (offered_project_id !== null))
        return invalid('/offered_project_id', 'is the project of an offer to `project`, and null otherwise')
      const project = offered_project_id === null ? undefined : await findAnyProject(db, offered_project_id)
      if (offered_project_id !== null && !project) return notFound(`project ${offered_project_id}`)
      const terms = { offered_to, offered_project_id, ...(monthly_minor === undefined ? {} : { monthly_minor }) }
      const offered = await offerNumbers(db, { first, last }, terms, now)
      if (offered === 0) return { status: 200, body: { offered }, change: null }
      const change: Change = {
        resource: { type: 'numbers', id: first, name: first === last ? first : `${first} to ${last}`, href: null },
        summary: `Offered ${counted(offered, 'number')} from ${first} to ${project ? project.name : offered_to}`,
        before: null,
        after: { first, last, offered, ...terms },
        ...(project ? { customer: { organization_id: project.organization_id, project_id: project.id } } : {}),
      }
      return { status: 200, body: { offered }, change }
    },
  }),
]

import { iso } from '../../core/runtime/clock.ts'
import {
  listAvailableNumbers,
  listNumbers,
  type NumberRow,
  saveNumber,
} from '../../core/state/configuration/numbers.ts'
import { findSubtrunk, type NumberBlockRow } from '../../core/state/configuration/subtrunks.ts'
import { findTrunk } from '../../core/state/configuration/trunks.ts'
import { findApplication } from '../../core/state/configuration/voice-applications.ts'
import { QUARANTINE_MS, withdrawNumber } from '../../core/state/configuration/withdrawn-numbers.ts'
import type { Db } from '../../core/state/index.ts'
import { pageOf, pageQuery, readCursor } from '../http/paging.ts'
import { type Change, invalid, isRefusal, type Refusal, refuse } from '../http/reply.ts'
import {
  Count64,
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
import { route } from './route.ts'

const RouteKind = oneOf('voice_application', 'trunk', 'subtrunk')
const NumberRoute = resource('NumberRoute', { kind: RouteKind, id: Type.String(), name: Type.String() })

export const PhoneNumber = resource('PhoneNumber', {
  id: Type.String(),
  e164: Type.String(),
  status: oneOf('available', 'held', 'quarantined'),
  route: nullable(NumberRoute),
  fallback: nullable(NumberRoute),
  quarantined_until: nullable(Instant),
  /** What each month that begins with the number costs the project; 0: nothing. */
  monthly_minor: Money,
  revision: Count64,
  created_at: Instant,
  updated_at: Instant,
})
export type ShownNumber = Static<typeof PhoneNumber>
type Shown = ShownNumber

const DEFAULT_PAGE = 100
const MAX_PAGE = 1000

/** Finds the target that a number is routed to; undefined when it no longer exists. */
async function routeTarget(
  db: Db,
  project_id: string,
  kind: Static<typeof RouteKind>,
  id: string,
): Promise<{ readonly name: string; readonly status?: string } | undefined> {
  if (kind === 'trunk') return findTrunk(db, project_id, id)
  if (kind === 'subtrunk') return findSubtrunk(db, project_id, id)
  return findApplication(db, project_id, id)
}

async function presentFallback(db: Db, row: NumberRow): Promise<Static<typeof NumberRoute> | null> {
  const { fallback_kind: kind, fallback_id: id, project_id } = row
  const found = kind && id && project_id ? await routeTarget(db, project_id, kind, id) : undefined
  // A route to a deleted target takes no call. It does not block the deletion.
  return kind && id && found ? { kind, id, name: found.name } : null
}

export async function presentNumber(db: Db, row: NumberRow): Promise<Shown> {
  const { route_kind: kind, route_id: id, project_id } = row
  const routed = kind && id && project_id ? await routeTarget(db, project_id, kind, id) : undefined
  return {
    id: row.id,
    e164: row.e164,
    status: row.status,
    route: kind && id ? { kind, id, name: routed?.name ?? id } : null,
    fallback: await presentFallback(db, row),
    quarantined_until: row.quarantined_until,
    monthly_minor: row.monthly_minor,
    revision: row.revision,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

export const numberChange = (summary: string, row: NumberRow, before: Shown | null, after: Shown | null): Change => ({
  resource: { type: 'number', id: row.id, name: row.e164, href: `/v1/numbers/${row.id}` },
  summary,
  before,
  after,
  from_revision: before?.revision ?? null,
  to_revision: row.revision,
  trunk_id: row.route_kind === 'trunk' ? row.route_id : null,
})

/** The change of the block that a withdrawn number belonged to. */
export const shrunk = (block: NumberBlockRow | null, { e164 }: NumberRow): Change[] =>
  block
    ? [
        {
          resource: { type: 'number_block', id: block.id, name: `${block.start} to ${block.end}`, href: null },
          summary: `Took ${e164} out of number block ${block.start} to ${block.end}`,
          before: null,
          after: null,
          action: 'number_block.shrunk',
        },
      ]
    : []

const query = Type.Object(
  { ...pageQuery(MAX_PAGE), prefix: optional(Type.String({ pattern: '^\\+?[0-9]{1,15}$' })) },
  { additionalProperties: false },
)

const NumberPage = pageSchema(PhoneNumber)

/** Returns a page of a list of numbers, read by `read`. */
async function numberPage(
  db: Db,
  asked: Static<typeof query>,
  read: (page: Parameters<typeof listNumbers>[2]) => Promise<NumberRow[]>,
): Promise<Static<typeof NumberPage> | Refusal<'validation_failed'>> {
  const position = readCursor(asked.cursor, ['string'])
  if (isRefusal(position)) return position
  const limit = asked.limit ?? DEFAULT_PAGE
  const rows = await read({
    limit: limit + 1,
    ...(position ? { after: position[0] } : {}),
    ...(asked.prefix === undefined ? {} : { prefix: asked.prefix }),
  })
  const { shown, more } = pageOf(rows, limit, row => [row.e164])
  const data: Shown[] = []
  for (const row of shown) data.push(await presentNumber(db, row))
  return { data, ...more }
}

const listRoute = route({
  method: 'get',
  path: '/numbers',
  summary: 'List the numbers of the project, by digits',
  scope: 'service_configuration:read',
  query,
  replies: { 200: NumberPage },
  async run({ db, project, query: asked }) {
    const page = await numberPage(db, asked, wanted => listNumbers(db, project.id, wanted))
    return isRefusal(page) ? page : { status: 200, body: page }
  },
})

const availableRoute = route({
  method: 'get',
  path: '/numbers/available',
  summary: "List the operator's numbers that the project can order",
  scope: 'service_configuration:read',
  query,
  replies: { 200: NumberPage },
  async run({ db, project, query: asked }) {
    const page = await numberPage(db, asked, wanted => listAvailableNumbers(db, project.id, wanted))
    return isRefusal(page) ? page : { status: 200, body: page }
  },
})

const readRoute = route({
  method: 'get',
  path: '/numbers/{number_id}',
  summary: 'Read a number',
  scope: 'service_configuration:read',
  replies: { 200: PhoneNumber },
  async run({ db, number }) {
    return { status: 200, revision: number.revision, body: await presentNumber(db, number) }
  },
})

/** Why a number cannot be routed to this target; null when it can. `at`: where the body names it. */
async function unfit(db: Db, project_id: string, to: Target, at: string) {
  const target = await routeTarget(db, project_id, to.kind, to.id)
  if (!target) return invalid(`${at}/id`, `is not a ${to.kind} of the project`)
  return target.status === 'releasing' ? refuse('trunk_releasing', { name: target.name, value: target.status }) : null
}

const MAX_ID = 128
const Fallback = input('NumberFallbackRequest', { kind: RouteKind, id: Type.String({ maxLength: MAX_ID }) })
type Target = Static<typeof Fallback>

const routeRoute = route({
  method: 'put',
  path: '/numbers/{number_id}/route',
  summary: 'Route a number to a voice application, trunk or subtrunk; kind and id of null leave it unrouted',
  scope: 'numbers:manage',
  if_match: 'number',
  applies: true,
  audit: { kind: 'numbers', action: 'number.routed' },
  body: input('NumberRouteRequest', {
    kind: nullable(RouteKind),
    id: nullable(Type.String({ maxLength: MAX_ID })),
    fallback: optional(nullable(Fallback)),
  }),
  replies: { 200: PhoneNumber },
  refusals: ['number_in_use', 'trunk_releasing'],
  async run({ db, project, number, body, now }) {
    if (number.status !== 'held') return refuse('number_in_use', { value: number.e164, limit: number.status })
    const { kind, id, fallback } = body
    if ((kind === null) !== (id === null)) return invalid('/id', 'and kind are both given or both null')
    const refused =
      (kind !== null && id !== null ? await unfit(db, project.id, { kind, id }, '') : null) ??
      (fallback ? await unfit(db, project.id, fallback, '/fallback') : null)
    if (refused) return refused
    if (fallback && kind !== 'trunk' && kind !== 'subtrunk')
      return invalid('/fallback', 'is of a number that is routed to a trunk or subtrunk')
    if (fallback && fallback.id === id) return invalid('/fallback/id', 'is the route itself')
    const before = await presentNumber(db, number)
    const second =
      fallback === undefined && (kind === 'trunk' || kind === 'subtrunk')
        ? {}
        : { fallback_kind: fallback?.kind ?? null, fallback_id: fallback?.id ?? null }
    const saved = await saveNumber(db, number, { route_kind: kind, route_id: id, ...second }, now)
    const after = await presentNumber(db, saved)
    const to = after.fallback ? `${after.route?.name}, else to ${after.fallback.name}` : after.route?.name
    const summary = to === undefined ? `Unrouted ${saved.e164}` : `Routed ${saved.e164} to ${to}`
    return { status: 200, revision: saved.revision, body: after, change: numberChange(summary, saved, before, after) }
  },
})

const releaseRoute = route({
  method: 'post',
  path: '/numbers/{number_id}/release',
  summary: 'Give a number back; it is quarantined for 30 days, and its block and delegation lose it',
  scope: 'numbers:manage',
  if_match: 'number',
  idempotent: true,
  applies: true,
  audit: { kind: 'numbers', action: 'number.released' },
  replies: { 200: PhoneNumber },
  refusals: ['number_in_use'],
  async run({ db, number, now, services }) {
    if (number.status !== 'held') return refuse('number_in_use', { value: number.e164, limit: number.status })
    const before = await presentNumber(db, number)
    const quarantined_until = iso(services.clock.now() + QUARANTINE_MS)
    const { number: saved, block } = await withdrawNumber(db, number, { quarantined_until, now })
    const after = await presentNumber(db, saved)
    return {
      status: 200,
      revision: saved.revision,
      body: after,
      change: [numberChange(`Released ${saved.e164}`, saved, before, after), ...shrunk(block, saved)],
      wake: ['jobs'] as const,
    }
  },
})

export const numbers = [listRoute, availableRoute, readRoute, routeRoute, releaseRoute]

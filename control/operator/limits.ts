import { findCountry } from '../../core/domain/numbers/countries.ts'
import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import { counted } from '../../core/domain/text/counted.ts'
import { correctCounters } from '../../core/state/calls/counters.ts'
import { holdersOf, isOfLevel } from '../../core/state/calls/leases.ts'
import { findOwnedNumber } from '../../core/state/configuration/numbers.ts'
import {
  findTrunkSetting,
  listShortCodes,
  putShortCode,
  putTrunkSetting,
} from '../../core/state/configuration/settings.ts'
import { saveTrunk } from '../../core/state/configuration/trunks.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { type Change, invalid, notFound } from '../http/reply.ts'
import {
  Count64,
  E164,
  Instant,
  input,
  listOf,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { customerOf } from './customer-of.ts'
import { route } from './route.ts'

/** Number formats, short codes, and what the ceilings count. */

const NumberFormat = resource('OperatorNumberFormat', {
  trunk_id: Type.String(),
  country: Type.String({ description: 'ISO code of the country whose national formats are understood.' }),
  default_caller: nullable(Type.String(), { description: 'Presented when the peer presents nobody.' }),
})

async function formatOf(db: Db | Trx, trunk_id: string): Promise<Static<typeof NumberFormat>> {
  const known = await findTrunkSetting(db, trunk_id)
  return { trunk_id, country: known?.country ?? DEFAULT_COUNTRY, default_caller: known?.default_caller ?? null }
}

const Code = Type.String({ pattern: '^[0-9]{2,6}$' })

const ShortCode = resource('OperatorShortCode', {
  code: Code,
  project_id: nullable(Type.String(), { description: 'Null: for every project without a route of its own.' }),
  sends_to: nullable(Type.String()),
})

const Level = oneOf('project', 'subaccount', 'trunk', 'subtrunk', 'policy')

const Holder = resource('OperatorSlotHolder', {
  call_sid: Type.String(),
  part: Type.String(),
  node_id: Type.String(),
  begun_at: Instant,
  ended_at: nullable(Instant),
})

const Correction = resource('OperatorSlotCorrection', {
  level: Level,
  subject_id: Type.String(),
  said: Count64,
  holds: Count64,
})

export const limits = [
  route({
    method: 'get',
    path: '/trunks/{trunk_id}/number-format',
    summary: 'Read the number format of a trunk and its default caller',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: NumberFormat },
    async run({ db, trunk }) {
      return { status: 200, revision: trunk.revision, body: await formatOf(db, trunk.id) }
    },
  }),

  route({
    method: 'patch',
    path: '/trunks/{trunk_id}/number-format',
    summary: 'Set the number format of a trunk and its default caller',
    scope: 'operator:network',
    context: 'organization',
    if_match: 'trunk',
    applies: true,
    audit: { kind: 'trunks', action: 'trunk.number_format_changed' },
    body: input('NumberFormatRequest', {
      country: optional(Type.String({ pattern: '^[A-Za-z]{2}$' })),
      default_caller: optional(nullable(Type.String({ minLength: 1, maxLength: 40 }))),
    }),
    replies: { 200: NumberFormat },
    async run({ db, trunk, body, now }) {
      const before = await formatOf(db, trunk.id)
      const country = body.country === undefined ? before.country : findCountry(body.country)?.iso_code
      if (country === undefined) return invalid('/country', 'is no ISO code of a country, such as NG')
      let { default_caller } = before
      if (body.default_caller !== undefined) {
        const number = body.default_caller === null ? null : (parseNumber(body.default_caller, country)?.e164 ?? '')
        if (number !== null && !(await findOwnedNumber(db, trunk.project_id, number)))
          return invalid('/default_caller', 'is no number of the trunk’s project')
        default_caller = number
      }
      const after = { trunk_id: trunk.id, country, default_caller }
      await putTrunkSetting(db, after)
      const saved = await saveTrunk(db, trunk, {}, now)
      const change: Change = {
        resource: { type: 'trunk', id: trunk.id, name: trunk.name, href: `/v1/trunks/${trunk.id}` },
        summary: `Set how the numbers of trunk ${trunk.name} are read`,
        before,
        after,
        trunk_id: trunk.id,
        from_revision: trunk.revision,
        to_revision: saved.revision,
        ...(await customerOf(db, trunk.project_id)),
      }
      return { status: 200, revision: saved.revision, body: after, change }
    },
  }),

  route({
    method: 'get',
    path: '/short-codes',
    summary: 'List the routes of emergency and short codes',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: listOf(ShortCode) },
    async run({ db }) {
      const rows = await listShortCodes(db)
      return {
        status: 200,
        body: { data: rows.map(({ code, project_id, sends_to }) => ({ code, project_id, sends_to })) },
      }
    },
  }),

  route({
    method: 'put',
    path: '/short-codes',
    summary: 'Route an emergency or short code to a number, for one project or for all others; null removes the route',
    scope: 'operator:network',
    context: 'organization',
    audit: { kind: 'numbers', action: 'short_code.changed', category: 'security' },
    body: input('ShortCodeRequest', {
      code: Code,
      sends_to: nullable(E164),
      project_id: optional(nullable(Type.String({ minLength: 1, maxLength: 64 }))),
    }),
    replies: { 200: ShortCode },
    async run({ db, body }) {
      const { code, sends_to, project_id = null } = body
      const of = await customerOf(db, project_id)
      if (project_id !== null && !of.customer) return invalid('/project_id', 'is no project')
      const known = (await listShortCodes(db)).find(row => row.code === code && row.project_id === project_id)
      await putShortCode(db, { project_id, code, sends_to })
      const change: Change = {
        resource: { type: 'short_code', id: code, name: code, href: null },
        summary: sends_to === null ? `Short code ${code} leads nowhere` : `Short code ${code} leads to ${sends_to}`,
        before: { sends_to: known?.sends_to ?? null },
        after: { sends_to },
        ...of,
      }
      return { status: 200, body: { code, project_id, sends_to }, change }
    },
  }),

  route({
    method: 'get',
    path: '/slots',
    summary: 'Read which calls held the slots of a ceiling at a second of the last 30 days',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(
      { level: Level, id: Type.String({ minLength: 1, maxLength: 128 }), at: optional(Instant) },
      { additionalProperties: false },
    ),
    replies: { 200: listOf(Holder) },
    refusals: ['not_found'],
    async run({ db, query: { level, id, at } }) {
      const data = await holdersOf(db, level, id, at)
      // Calls of what is gone meanwhile can still be read.
      if (data.length === 0 && !(await isOfLevel(db, level, id))) return notFound(`${level} ${id.slice(0, 60)}`)
      return { status: 200, body: { data } }
    },
  }),

  route({
    method: 'post',
    path: '/slots/recount',
    summary: 'Correct the counters of ceilings to the slots that are held; calls may begin and end meanwhile',
    scope: 'operator:network',
    context: 'organization',
    audit: { kind: 'trunks', action: 'slots.recounted' },
    replies: { 200: listOf(Correction) },
    async run({ db }) {
      const wrong = await correctCounters(db)
      const data = wrong.map(({ level, subject_id, live, leases }) => ({
        level,
        subject_id,
        said: live,
        holds: leases,
      }))
      const change: Change = {
        resource: { type: 'slots', id: 'slots', name: 'Slots of ceilings', href: null },
        summary: `Recounted the slots of ceilings: ${counted(data.length, 'counter was', 'counters were')} wrong`,
        before: null,
        after: null,
      }
      return { status: 200, body: { data }, change }
    },
  }),
]

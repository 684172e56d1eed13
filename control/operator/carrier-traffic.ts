import { type CarrierMedia, hasCarrierMedia, presentCarrierMedia } from '../../core/domain/metrics/index.ts'
import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { type CarrierDay, carrierDays } from '../../core/state/calls/carrier-figures.ts'
import { carrierMediaDays } from '../../core/state/calls/carrier-media.ts'
import { type Carrier, setCarrierEnabled } from '../../core/state/configuration/carriers.ts'
import { withoutScope } from '../http/access.ts'
import { invalid } from '../http/reply.ts'
import {
  Count64,
  Currency,
  Day,
  described,
  Int64,
  input,
  lines,
  list,
  nullable,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { CarrierAnswer, presentCarrier } from './carrier-fields.ts'
import { carrierChange, isSandbox, known } from './carriers.ts'
import { route } from './route.ts'

const MAX_DAYS = 92
const DAY_MS = 86_400_000

/** The routes that stop and start the calls of a carrier. */
const flow = (of: {
  readonly verb: 'drain' | 'resume'
  readonly enabled: boolean
  readonly summary: string
  readonly description: string
  readonly action: string
  readonly done: string
}) =>
  route({
    method: 'post',
    path: `/carriers/{carrier_id}/${of.verb}`,
    summary: of.summary,
    description: of.description,
    scope: 'operator:network',
    context: 'organization',
    if_match: 'carrier',
    applies: true,
    audit: { kind: 'trunks', action: of.action },
    body: input('CarrierFlowRequest', {
      reason: optional(described(lines(500), 'Why, for the audit trail of the installation.')),
    }),
    replies: { 200: CarrierAnswer },
    refusals: ['state_conflict'],
    example: { reason: 'Maintenance of the carrier, ticket 4711' },
    async run({ db, carrier, body }) {
      const refused = isSandbox(carrier)
      if (refused) return refused
      const answer = (row: Carrier) => ({ status: 200 as const, revision: row.revision, body: presentCarrier(row) })
      if ((carrier.enabled === 1) === of.enabled) return { ...answer(carrier), change: null }
      await setCarrierEnabled(db, carrier.id, of.enabled)
      const saved = await known(db, carrier.id)
      const change = { ...carrierChange(`${of.done} ${saved.name}`, carrier, saved), detail: body.reason ?? null }
      return { ...answer(saved), change }
    },
  })

const Percent = nullable(Type.Number(), { description: 'With one decimal; null without attempts.' })

const media = nullable(
  resource('OperatorCarrierMedia', {
    legs: described(Count64, 'Legs to and from the carrier that ended on the day, answered or not.'),
    packets_received: described(Count64, 'RTP packets from the carrier.'),
    packets_sent: described(Count64, 'RTP packets to the carrier.'),
    octets_received: described(Count64, 'Octets of the payloads of packets from the carrier.'),
    octets_sent: described(Count64, 'Octets of the payloads of packets to the carrier.'),
    packets_lost: described(Count64, 'Packets from the carrier that never came (RFC 3550 §A.3).'),
    packets_late: described(Count64, 'Packets that came after their turn to be played.'),
    packets_discarded: described(Count64, 'Packets that came and were not used.'),
    packets_unsent: described(Count64, 'Packets that the machine did not take.'),
    jitter_ms: nullable(Type.Number(), { description: 'Mean interarrival jitter of the legs; null without media.' }),
    mos: nullable(Type.Number(), { description: 'Mean opinion score of the legs, 1 to 5; null without media.' }),
  }),
  { description: 'Final media figures of both directions of calls; null for days more than 30 days ago.' },
)

const figures = {
  attempts: described(Count64, 'INVITEs to the carrier’s targets, also those after which another target was tried.'),
  answered: described(Count64, 'Attempts that were answered.'),
  asr_pct: described(Percent, 'Answer-seizure ratio: answered of all attempts; null without attempts.'),
  acd_seconds: nullable(Count64, { description: 'Mean duration of answered calls; null without one.' }),
  pdd_ms: nullable(Count64, { description: 'Mean post-dial delay of answered calls; null without one.' }),
  answered_seconds: described(Count64, 'Seconds of answered calls.'),
  charge_minor: nullable(Int64, { description: 'What customers paid for the calls; null without operator:money.' }),
  cost_minor: nullable(Int64, { description: 'What the carrier takes for them; null without operator:money.' }),
  margin_minor: nullable(Int64, { description: 'The difference; null without operator:money.' }),
  media,
}

const Metrics = resource('OperatorCarrierMetrics', {
  carrier_id: Type.String(),
  currency: Currency,
  from: Day,
  to: Day,
  days: list(resource('OperatorCarrierDay', { day: described(Day, 'In UTC.'), ...figures })),
  total: resource('OperatorCarrierTotal', figures),
})

type Sums = Omit<CarrierDay, 'day'>
const NONE: Sums = {
  attempts: 0,
  answered: 0,
  answered_seconds: 0,
  pdd_calls: 0,
  pdd_ms: 0,
  charge_minor: 0,
  cost_minor: 0,
}

const added = (sum: Sums, day: Sums): Sums => ({
  attempts: sum.attempts + day.attempts,
  answered: sum.answered + day.answered,
  answered_seconds: sum.answered_seconds + day.answered_seconds,
  pdd_calls: sum.pdd_calls + day.pdd_calls,
  pdd_ms: sum.pdd_ms + day.pdd_ms,
  charge_minor: sum.charge_minor + day.charge_minor,
  cost_minor: sum.cost_minor + day.cost_minor,
})

const mean = (sum: number, count: number): number | null => (count === 0 ? null : Math.round(sum / count))

const figuresOf = (sums: Sums, media: readonly CarrierMedia[] | null, money: boolean) => ({
  attempts: sums.attempts,
  answered: sums.answered,
  asr_pct: sums.attempts === 0 ? null : Math.round((sums.answered / sums.attempts) * 1000) / 10,
  acd_seconds: mean(sums.answered_seconds, sums.answered),
  pdd_ms: mean(sums.pdd_ms, sums.pdd_calls),
  answered_seconds: sums.answered_seconds,
  charge_minor: money ? sums.charge_minor : null,
  cost_minor: money ? sums.cost_minor : null,
  margin_minor: money ? sums.charge_minor - sums.cost_minor : null,
  media: media && presentCarrierMedia(media),
})

export const carrierTraffic = [
  flow({
    verb: 'drain',
    enabled: false,
    summary: 'Drain a carrier: it gets and brings no new calls, and running ones continue',
    description:
      'Its registration ends, new calls from it are refused with 503, and `live_calls` tells how many are left. ' +
      'A carrier that is drained already stays as it is.',
    action: 'carrier.drained',
    done: 'Drained the carrier',
  }),
  flow({
    verb: 'resume',
    enabled: true,
    summary: 'Resume a drained carrier',
    description: 'It registers again and gets calls by its routes.',
    action: 'carrier.resumed',
    done: 'Resumed the carrier',
  }),
  route({
    method: 'get',
    path: '/carriers/{carrier_id}/metrics',
    summary: 'Figures of the calls that were sent to a carrier, by day',
    description:
      'An attempt counts on the day (UTC) on which it began, media on the day on which its leg ended. Both ends ' +
      'are included, at most 92 days; days with neither are left out.',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object({ from: Day, to: Day }, { additionalProperties: false }),
    replies: { 200: Metrics },
    async run({ db, carrier, caller, now, query: { from, to } }) {
      if (from > to) return invalid('from', 'is after to')
      if (Date.parse(to) - Date.parse(from) >= MAX_DAYS * DAY_MS)
        return invalid('from', `must be less than ${MAX_DAYS} days before to`)
      const attempts = new Map((await carrierDays(db, carrier.id, { from, to })).map(day => [day.day, day]))
      const kept = (day: string): boolean => hasCarrierMedia(day, Date.parse(now))
      const legs = await carrierMediaDays(db, carrier.id, { from, to })
      const measured = new Map([...legs].filter(([day]) => kept(day)))
      const mediaOf = (day: string) => (kept(day) ? [measured.get(day) ?? []].flat() : null)
      const money = withoutScope(caller, 'operator:money') === null
      const body: Static<typeof Metrics> = {
        carrier_id: carrier.id,
        currency: CURRENCY,
        from,
        to,
        days: [...new Set([...attempts.keys(), ...measured.keys()])].sort().map(day => ({
          day,
          ...figuresOf(attempts.get(day) ?? NONE, mediaOf(day), money),
        })),
        total: figuresOf([...attempts.values()].reduce(added, NONE), kept(to) ? [...measured.values()] : null, money),
      }
      return { status: 200, body }
    },
  }),
]

import { shownCallId } from '../../core/domain/calls/foreign.ts'
import { sumOfLegs } from '../../core/domain/calls/leg-figures.ts'
import { readCallRequest } from '../../core/domain/calls/request.ts'
import { renderLadder } from '../../core/domain/ladder/render.ts'
import { ladderUnavailable } from '../../core/domain/ladder/unavailable.ts'
import { iso } from '../../core/runtime/clock.ts'
import { attemptsOf, cdrOf, eventsOf, type HistoryRow } from '../../core/state/calls/call-history.ts'
import { listCallRecordings } from '../../core/state/calls/calls.ts'
import { LADDER_DAYS, ladderOf } from '../../core/state/calls/ladder.ts'
import { legFiguresOf, mediaQualityOf } from '../../core/state/calls/media-quality.ts'
import type { Db } from '../../core/state/index.ts'
import { type Caps, costOfCall, findReservation, type ReservationRow } from '../../core/state/money/reservations.ts'
import { mayUse } from '../http/access.ts'
import { Count64, Flag, Instant, Int32, list, nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'
import type { Services } from '../http/services.ts'
import { callFields, presentCall } from './call-present.ts'
import { type Decision, inWords, seriesOf } from './call-words.ts'
import { presentRecording, Recording } from './recording-present.ts'
import { route } from './route.ts'
import { type RunLogs, readSteps } from './script-steps.ts'

const Text = Type.String()
const TextOrNull = nullable(Text)
const InstantOrNull = nullable(Instant)
/** The details of an event, reported by a script, a peer or the media worker. Their members depend on its kind. */
const Facts = Type.Record(Text, Type.Unknown())

const LegCodec = resource('LegCodec', { codec: Text, from: Instant })
const Milliseconds = nullable(Type.Number())
/** The final figures of a leg, from the counters of its whole life. */
const LegFigures = resource('LegFigures', {
  answered_at: InstantOrNull,
  codec: TextOrNull,
  codecs: list(LegCodec),
  complete: Flag,
  ended_at: Instant,
  jitter_max_ms: Milliseconds,
  jitter_ms: Milliseconds,
  leg_id: Text,
  mos: nullable(Type.Number()),
  octets_received: Count64,
  octets_sent: Count64,
  packets_discarded: Count64,
  packets_late: Count64,
  packets_lost: Count64,
  packets_received: Count64,
  packets_sent: Count64,
  packets_unsent: Count64,
  remote_address: TextOrNull,
  remote_jitter_ms: Milliseconds,
  remote_mos: nullable(Type.Number()),
  remote_packets_lost: nullable(Type.Integer()),
  remote_port: nullable(Int32),
  rtt_ms: Milliseconds,
  seconds_without_media: Count64,
  secured: Flag,
  side: oneOf('caller', 'called', 'application'),
  signalled_address: TextOrNull,
  signalled_port: nullable(Int32),
  strangers_dropped: Count64,
})
/** Sums over the legs that have ended. */
const MediaTotals = resource('MediaTotals', {
  octets_received: Count64,
  octets_sent: Count64,
  packets_discarded: Count64,
  packets_late: Count64,
  packets_lost: Count64,
  packets_received: Count64,
  packets_sent: Count64,
  packets_unsent: Count64,
})

const Attempt = resource('CallAttempt', {
  sequence: Type.Integer(),
  target: Text,
  sip_call_id: TextOrNull,
  address: TextOrNull,
  transport: Text,
  started_at: Instant,
  provisional_at: InstantOrNull,
  ended_at: InstantOrNull,
  sip_code: nullable(Int32),
  result: nullable(oneOf('answered', 'refused', 'failed', 'canceled', 'no_answer')),
  reason: TextOrNull,
})

const CallDetail = resource('CallDetail', {
  ...callFields,
  attempts: list(Attempt),
  carrier_id: TextOrNull,
  /** Who diverted the call to us, the last one first (RFC 5806, RFC 7044). */
  diverters: list(
    resource('CallDiverter', {
      counter: Count64,
      number: Text,
      /** The number asked not to be shown to the called party. */
      private: Flag,
      reason: Text,
    }),
  ),
  events: list(
    resource('CallEvent', {
      at: Instant,
      detail: Facts,
      kind: oneOf('http', 'warning', 'error', 'state', 'script'),
      number: nullable(Type.Integer()),
    }),
  ),
  first_diverter: TextOrNull,
  initiated_at: InstantOrNull,
  last_diverter: TextOrNull,
  /** Final figures; null while no leg has ended. */
  media: nullable(resource('CallFigures', { legs: list(LegFigures), totals: MediaTotals })),
  price: nullable(
    resource('CallPrice', {
      amount_minor: Count64,
      billed_seconds: Count64,
      currency: Text,
      direction: oneOf('outbound', 'inbound'),
      /** How the price comes about, such as `4 s × ₦0.14/min = ₦0.01`. */
      sentence: Text,
    }),
    { description: 'What the call cost its project; null while it runs, and for a call without a price.' },
  ),
  price_explanation: nullable(list(Text)),
  record: nullable(
    resource('CallRecord', {
      duration_seconds: Count64,
      ended_at: Instant,
      media: nullable(Facts),
      pdd_ms: nullable(Count64),
      started_at: Instant,
    }),
  ),
  recordings: list(Recording),
  ringing_at: InstantOrNull,
  sip_call_id: TextOrNull,
})

const CallLadder = resource('CallLadder', {
  messages: list(
    resource('SipMessage', {
      at: Instant,
      direction: oneOf('in', 'out'),
      local: Text,
      protocol: Text,
      remote: Text,
      retransmission: Flag,
      sip_call_id: Text,
      text: Text,
    }),
  ),
  retention_days: Int32,
  text: Text,
  /** Why no messages are available; null when they are stored. */
  unavailable: TextOrNull,
})

const CallDecision = resource('CallDecision', {
  attempts: list(Attempt),
  /** The stored admission trace: checks with limits and used values, revisions. Null when no admission was needed. */
  decision: nullable(Facts),
  price: nullable(Facts),
  words: list(Text),
})

const CallMedia = resource('CallMedia', {
  legs: list(
    resource('LegQuality', {
      /** Null until the leg has ended. */
      figures: nullable(LegFigures),
      leg_id: Text,
      samples: list(resource('QualitySample', { at: Instant, stats: Facts })),
      samples_kept: Count64,
    }),
  ),
  totals: MediaTotals,
  unavailable_reason: TextOrNull,
})

/** What happened in a call, in order. `logs` are those of its scripts; null leaves out what they did and asked. */
async function presentEvents(
  db: Db,
  call: HistoryRow,
  logs: RunLogs | null,
): Promise<Static<typeof CallDetail>['events']> {
  const kept = (await eventsOf(db, call.sid))
    .filter(({ kind }) => logs !== null || kind !== 'http')
    .map(({ at, kind, number, detail }) => ({ at, kind, number, detail: JSON.parse(detail) }))
  const steps = logs === null ? [] : await readSteps(db, logs, call)
  const scripted = steps.map(({ at, detail }) => ({ at, kind: 'script' as const, number: null, detail }))
  return [...kept, ...scripted].sort((a, b) => a.at.localeCompare(b.at))
}

export const explainedCalls = [
  route({
    method: 'get',
    path: '/calls/{call_id}',
    summary: 'Read a call with its record, attempts, events, recordings and what its price is made of',
    description:
      'What scripts were asked and answered (events of kind `http`) and did (`script`) is shown to keys that also have `call_diagnostics:read`.',
    scope: 'call_history:read',
    replies: { 200: CallDetail },
    async run({ db, caller, call, services }) {
      const diagnoses = mayUse(caller, 'call_diagnostics:read')
      return { status: 200, body: await callDetail(db, call, diagnoses ? runLogs(services) : null) }
    },
  }),

  route({
    method: 'get',
    path: '/calls/{call_id}/ladder',
    summary: 'The SIP messages of all legs of a call, and drawn as text',
    description: 'Secrets are taken out before messages are kept. Messages appear within some seconds.',
    scope: 'call_diagnostics:read',
    replies: { 200: CallLadder },
    async run({ db, call, services }) {
      return { status: 200, body: await callLadder(db, call, services) }
    },
  }),

  route({
    method: 'get',
    path: '/calls/{call_id}/decision',
    summary: 'Why a call was admitted or refused, what was tried, and what it cost: check by check and in words',
    scope: 'call_diagnostics:read',
    replies: { 200: CallDecision },
    async run({ db, call }) {
      return { status: 200, body: await callDecision(db, call) }
    },
  }),

  route({
    method: 'get',
    path: '/calls/{call_id}/media',
    summary: 'Media quality of each leg of a call over its time',
    description:
      'Final figures of each leg that has ended, and a sample each ten seconds; of a very long call evenly thinned out to 720 a leg.',
    scope: 'call_diagnostics:read',
    replies: { 200: CallMedia },
    async run({ db, call }) {
      return { status: 200, body: await callMedia(db, call) }
    },
  }),
]

export const runLogs = ({ settings, machines }: Services): RunLogs => ({ data_dir: settings.data_dir, machines })

/** What is known of a call. `logs` are those of its scripts; null leaves out what they did and asked. */
export async function callDetail(db: Db, call: HistoryRow, logs: RunLogs | null): Promise<Static<typeof CallDetail>> {
  const record = await cdrOf(db, call.sid)
  const cost = await costOfCall(db, call.sid)
  return {
    ...presentCall(call),
    attempts: await presentAttempts(attemptsOf(db, call.sid)),
    carrier_id: call.carrier_id,
    events: await presentEvents(db, call, logs),
    ...presentDiverters(call.request),
    initiated_at: call.initiated_at,
    media: await presentFigures(db, call.sid),
    price: cost?.price ?? null,
    price_explanation: cost?.explanation ?? null,
    record: record
      ? {
          duration_seconds: record.duration_seconds,
          ended_at: record.ended_at,
          media: record.media === null ? null : JSON.parse(record.media),
          pdd_ms: record.pdd_ms,
          started_at: record.started_at,
        }
      : null,
    recordings: (await listCallRecordings(db, call.sid)).map(row => presentRecording(row, call)),
    ringing_at: call.ringing_at,
    sip_call_id: shownCallId(call),
  }
}

/** The SIP messages of a call, as its project may see them. */
export async function callLadder(
  db: Db,
  call: HistoryRow,
  { settings }: Pick<Services, 'settings'>,
): Promise<Static<typeof CallLadder>> {
  const kept = (await ladderOf(db, call.sid, 'customer')) ?? []
  const messages = kept.map(({ id: _id, at_ms, ...message }) => ({ ...message, at: iso(at_ms) }))
  const unavailable = ladderUnavailable(settings.drachtio !== null, kept)
  return { messages, retention_days: LADDER_DAYS, text: unavailable ?? renderLadder(kept), unavailable }
}

/** Why a call was admitted or refused, and what its price is made of. */
export async function callDecision(db: Db, call: HistoryRow): Promise<Static<typeof CallDecision>> {
  const decision = call.decision_trace === null ? null : (JSON.parse(call.decision_trace) as Decision)
  const attempts = await presentAttempts(attemptsOf(db, call.sid))
  const reservation = await findReservation(db, call.sid)
  const price = (await costOfCall(db, call.sid))?.explanation ?? null
  const events = await eventsOf(db, call.sid)
  const words = inWords({ call, decision, attempts, events, price })
  return { attempts, decision, price: reservation ? pricedBy(reservation) : null, words }
}

/** The media quality of a call over its time. */
export async function callMedia(db: Db, call: HistoryRow): Promise<Static<typeof CallMedia>> {
  const figures = await legFiguresOf(db, call.sid)
  const legs = seriesOf(await mediaQualityOf(db, call.sid), figures)
  const unavailable_reason = legs.length > 0 ? null : 'No media of this call was measured.'
  return { legs, totals: sumOfLegs(figures), unavailable_reason }
}

/**
 * Shows the inputs of a price, with the caps of each level at the admission. What the carrier takes for the call is the
 * operator's business.
 */
function pricedBy({ caps, carrier_id: _, cost_minor: __, ...inputs }: ReservationRow): Static<typeof Facts> {
  const levels = (JSON.parse(caps) as Caps).map(([level, id, daily_spend_cap_minor, velocity_cap_minor]) => ({
    level,
    id,
    daily_spend_cap_minor,
    velocity_cap_minor,
  }))
  return { ...inputs, caps: levels }
}

function presentDiverters(request: string | null) {
  const { diverters = [] } = readCallRequest(request)
  return {
    diverters: diverters.map(({ counter, number, hidden, reason }) => ({ counter, number, private: hidden, reason })),
    first_diverter: diverters.at(-1)?.number ?? null,
    last_diverter: diverters[0]?.number ?? null,
  }
}

async function presentAttempts(rows: ReturnType<typeof attemptsOf>): Promise<Static<typeof Attempt>[]> {
  return (await rows).map(({ id: _id, call_sid: _sid, carrier_id: _carrier, ...attempt }) => attempt)
}

async function presentFigures(db: Db, call_sid: string): Promise<Static<typeof CallDetail>['media']> {
  const figures = await legFiguresOf(db, call_sid)
  return figures.length === 0 ? null : { legs: figures, totals: sumOfLegs(figures) }
}

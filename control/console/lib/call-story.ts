import type { CallDetail, CallEvent, SipMessage } from './api-types.ts'
import { factsOf, headlineOf } from './outcome.ts'
import { isNoise, labelOf } from './sip.ts'
import type { Tone } from './tone.ts'

/** A call on one axis of time: what happened, in lanes, from every source that the API has. Pure. */

export interface Sample {
  readonly codec?: string | null
  readonly jitter_ms?: number | null
  readonly mos?: number | null
  readonly packets_lost?: number
  readonly rtt_ms?: number | null
}

/** The parts of the time between the end of the caller's speech and the first sound of the agent's answer. */
export const TURN_PARTS = ['detector', 'recognizer', 'customer', 'voice', 'playout'] as const
type TurnPart = (typeof TURN_PARTS)[number]

export interface Turn {
  /** When the answer was first heard; null when its session kept no time. */
  readonly at_ms: number | null
  readonly parts: Readonly<Record<TurnPart, number>>
  readonly total_ms: number
}

/** What stands behind an item, for the side panel. */
type Source =
  | { readonly kind: 'sip'; readonly message: SipMessage }
  | { readonly kind: 'event'; readonly event: CallEvent }
  | { readonly kind: 'turn'; readonly turn: Turn }
  | { readonly kind: 'quality'; readonly leg: string; readonly at: string; readonly stats: Sample }
  | { readonly kind: 'phase' }

export interface Item {
  readonly from_ms: number
  /** Equal to `from_ms` for what has no length. */
  readonly to_ms: number
  readonly label: string
  readonly tone: Tone
  readonly source: Source
}

export interface Lane {
  readonly id: string
  readonly name: string
  readonly items: readonly Item[]
}

export interface Story {
  readonly begin_ms: number
  readonly end_ms: number
  readonly lanes: readonly Lane[]
  readonly turns: readonly Turn[]
}

interface Told {
  readonly call: CallDetail
  readonly messages: readonly SipMessage[]
  readonly legs: readonly {
    readonly leg_id: string
    readonly name: string
    readonly samples: readonly { readonly at: string; readonly stats: Sample }[]
  }[]
  readonly now_ms: number
}

/** A sample of media quality stands for the ten seconds before it. */
const SAMPLE_MS = 10_000
/** A call that was refused at once still has an axis. */
const SHORTEST_MS = 400

export function storyOf({ call, messages, legs, now_ms }: Told): Story {
  const queued_ms = Date.parse(call.queued_at)
  const ended_ms = call.ended_at === null ? now_ms : Date.parse(call.ended_at)
  const turns = turnsOf(call.events)
  const signalling = messages.filter(message => !isNoise(message))
  const lanes = [
    { id: 'call', name: 'Call', items: phasesOf(call, ended_ms) },
    ...sipLanes(signalling),
    { id: 'script', name: 'Script', items: verbsOf(call.events, ended_ms) },
    { id: 'keys', name: 'Keys', items: keysOf(call.events) },
    { id: 'webhooks', name: 'Webhooks', items: requestsOf(call.events) },
    { id: 'agent', name: 'Agent turns', items: turns.flatMap(turnItem) },
    { id: 'events', name: 'Events', items: otherEvents(call.events) },
    ...legs.map(({ leg_id, name, samples }) => ({
      id: `quality-${leg_id}`,
      name: `Quality, ${name}`,
      items: samples.map(sample => sampleItem(name, sample, Date.parse(call.start_time ?? call.queued_at))),
    })),
  ].filter(({ items }) => items.length > 0)
  const times = lanes.flatMap(({ items }) => items.flatMap(({ from_ms, to_ms }) => [from_ms, to_ms]))
  const begin_ms = times.reduce((least, at) => Math.min(least, at), queued_ms)
  const last_ms = times.reduce((most, at) => Math.max(most, at), ended_ms)
  return { begin_ms, end_ms: Math.max(last_ms, begin_ms + SHORTEST_MS), lanes, turns }
}

function phasesOf(call: CallDetail, ended_ms: number): Item[] {
  const steps = [
    ['Set up', call.queued_at, 'idle'],
    ['Ringing', call.ringing_at, 'note'],
    ['Talking', call.start_time, 'good'],
  ] as const
  const begun = steps.flatMap(([label, at, tone]) => (at === null ? [] : [{ label, tone, from_ms: Date.parse(at) }]))
  return begun.map(({ label, tone, from_ms }, index) => ({
    label,
    tone,
    from_ms,
    to_ms: Math.max(from_ms, begun[index + 1]?.from_ms ?? ended_ms),
    source: { kind: 'phase' },
  }))
}

/** One lane for each peer, in the order of appearance. */
function sipLanes(messages: readonly SipMessage[]): Lane[] {
  const peers = [...new Set(messages.map(({ remote }) => remote))]
  return peers.map(peer => ({
    id: `sip-${peer}`,
    name: `SIP, ${peer}`,
    items: messages
      .filter(({ remote }) => remote === peer)
      .map(message => {
        const at_ms = Date.parse(message.at)
        const { label, tone } = labelOf(message.text)
        const way = message.direction === 'in' ? '←' : '→'
        const again = message.retransmission ? ' (again)' : ''
        return {
          from_ms: at_ms,
          to_ms: at_ms,
          label: `${way} ${label}${again}`,
          tone: tone === '' ? 'idle' : tone,
          source: { kind: 'sip', message },
        }
      }),
  }))
}

const verbOf = ({ detail }: CallEvent): string => String(detail['verb'] ?? '')
const isKey = (event: CallEvent): boolean => event.kind === 'script' && verbOf(event) === 'Keys'

/** A step of a script lasts until the next one begins. */
function verbsOf(events: readonly CallEvent[], ended_ms: number): Item[] {
  const steps = events.filter(event => event.kind === 'script' && !isKey(event))
  return steps.map((event, index) => {
    const from_ms = Date.parse(event.at)
    const next = steps[index + 1]
    return {
      from_ms,
      to_ms: Math.max(from_ms, next === undefined ? ended_ms : Date.parse(next.at)),
      label: headlineOf(event),
      tone: 'note',
      source: { kind: 'event', event },
    }
  })
}

const keysOf = (events: readonly CallEvent[]): Item[] =>
  events.filter(isKey).map(event => instant(event, 'note', 'Key'))

const instant = (event: CallEvent, tone: Tone, label = headlineOf(event)): Item => {
  const at_ms = Date.parse(event.at)
  return { from_ms: at_ms, to_ms: at_ms, label, tone, source: { kind: 'event', event } }
}

/** A request is noted when its answer has come, with how long that took. */
const requestsOf = (events: readonly CallEvent[]): Item[] =>
  events
    .filter(({ kind }) => kind === 'http')
    .map(event => {
      const { response_code: code, request_duration } = factsOf(event.detail['response'])
      const to_ms = Date.parse(event.at)
      const took_ms = typeof request_duration === 'number' ? request_duration : 0
      const good = typeof code === 'number' && code < 400 && event.number === null
      return {
        from_ms: to_ms - took_ms,
        to_ms,
        label: headlineOf(event),
        tone: good ? 'good' : 'bad',
        source: { kind: 'event', event },
      }
    })

const FAULTS: Readonly<Partial<Record<CallEvent['kind'], Tone>>> = { error: 'bad', warning: 'warn', state: 'idle' }

const otherEvents = (events: readonly CallEvent[]): Item[] =>
  events.flatMap(event => {
    const tone = FAULTS[event.kind]
    return tone === undefined ? [] : [instant(event, tone)]
  })

function turnsOf(events: readonly CallEvent[]): Turn[] {
  return events.flatMap(({ detail: { turns } }) =>
    (Array.isArray(turns) ? turns : []).map(given => {
      const turn = factsOf(given)
      const ms = (name: string): number => (typeof turn[name] === 'number' ? turn[name] : 0)
      const parts = Object.fromEntries(TURN_PARTS.map(part => [part, ms(`${part}_ms`)])) as Record<TurnPart, number>
      const at_ms = typeof turn['at'] === 'string' ? Date.parse(turn['at']) : null
      return { at_ms, parts, total_ms: ms('total_ms') }
    }),
  )
}

/** Above this the pause is heard as one (ITU-T G.114 gives 400 ms for the way of a voice alone). */
const SLOW_TURN_MS = 1500

const turnItem = (turn: Turn): Item[] =>
  turn.at_ms === null
    ? []
    : [
        {
          from_ms: turn.at_ms - turn.total_ms,
          to_ms: turn.at_ms,
          label: `${turn.total_ms} ms`,
          tone: turn.total_ms > SLOW_TURN_MS ? 'warn' : 'good',
          source: { kind: 'turn', turn },
        },
      ]

/** Bands of user satisfaction for the E-model's MOS (ITU-T G.107, Annex B). */
const toneOfMos = (mos: number | null | undefined): Tone =>
  mos == null ? 'idle' : mos >= 4.03 ? 'good' : mos >= 3.6 ? 'warn' : 'bad'

function sampleItem(leg: string, { at, stats }: { at: string; stats: Sample }, begin_ms: number): Item {
  const to_ms = Date.parse(at)
  return {
    from_ms: Math.min(to_ms, Math.max(begin_ms, to_ms - SAMPLE_MS)),
    to_ms,
    label: stats.mos == null ? 'no media' : stats.mos.toFixed(2),
    tone: toneOfMos(stats.mos),
    source: { kind: 'quality', leg, at, stats },
  }
}

/** Round steps for the marks of an axis. */
const STEPS_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600].map(seconds => seconds * 1000),
]

/** Offsets from `begin_ms` at which an axis from `from_ms` to `to_ms` has about `wanted` marks. */
export function ticksOf(begin_ms: number, from_ms: number, to_ms: number, wanted: number): number[] {
  const least = (to_ms - from_ms) / Math.max(1, wanted)
  const step = STEPS_MS.find(size => size >= least) ?? Math.ceil(least / 3_600_000) * 3_600_000
  const first = Math.ceil((from_ms - begin_ms) / step)
  const last = Math.floor((to_ms - begin_ms) / step)
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => (first + index) * step)
}

/** `1.25 s` or `2:05`, from milliseconds since the begin. */
export function offset(ms: number): string {
  if (Math.abs(ms) < 60_000) return `${Number((ms / 1000).toFixed(3))} s`
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

import type { CodecName } from '../../../core/domain/codecs/codec.ts'
import type { Clock, Timer } from '../../../core/runtime/clock.ts'
import type { MachinePost } from '../../../core/runtime/edge-link.ts'
import { newId } from '../../../core/runtime/ids.ts'
import type { Log } from '../../../core/runtime/log.ts'
import type { Event } from '../../../markup/interpreter/types.ts'
import { hold } from '../hold.ts'
import type { Queues } from '../queues.ts'
import { ELSEWHERE } from '../room.ts'
import type { Rooms } from '../rooms.ts'
import type { RunningScript } from '../running-script.ts'
import {
  internalPolicy,
  type KeeperNote,
  type KeeperRequest,
  LEFT,
  PRESENT_MS,
  SILENT_MS,
  type Stay,
  type VisitorNote,
} from './notes.ts'

/** How long a keeper may take to let a call in. */
const COME_MS = 8000
/** How long a call looks for the keeper of its conference or queue, after which its document goes on. */
const LOOK_MS = 40_000
const AGAIN_MS = 500
const MOST_AGAIN_MS = 4000
/** How long the last event of a visit may take. */
const LAST_MS = 3000

/** A leg on its way to a conference or a queue, or in it. */
interface Journey {
  readonly script: RunningScript
  readonly stay: Stay
  readonly emit: (event: Event) => void
  readonly since_ms: number
  /** Since when it has no keeper; null while it has one. */
  lost_ms: number | null
  /** How long it waits before it looks again. */
  again_ms: number
  /** True while it talks to the leg that it has met in a queue. */
  bridged: boolean
}

interface Visit {
  readonly id: string
  readonly machine_id: string
  readonly journey: Journey
  /** On the monotonic clock. */
  heard_ms: number
  /** The keeper has answered our offer. */
  came: boolean
  /** The leg hears what its own node plays. */
  sounding: boolean
  /** What the requests of the document that the leg hears say. */
  facts: Readonly<Record<string, string>>
  /** The leg has left; the keeper's last event is awaited. */
  leaving: Timer | null
  /** Questions to the keeper by their number; each function takes the outcome. */
  readonly asks: Map<number, (outcome: string) => void>
}

interface VisitServices {
  readonly clock: Clock
  readonly log: Log
  readonly rooms: Rooms
  readonly queues: Queues
  /** Whether the machines are linked: a call can visit another one only then. */
  readonly linked: boolean
}

/** The calls of this node in conferences and queues: where another machine keeps them, they visit it. */
export class Visits {
  readonly #services: VisitServices
  readonly #post: Pick<MachinePost, 'send'>
  readonly #visits = new Map<string, Visit>()
  /** Legs that look for their keeper again, and what makes them go on. */
  readonly #looking = new Map<RunningScript, { readonly journey: Journey; readonly next: Timer }>()
  readonly #beat: Timer
  #next_ask = 1

  constructor(services: VisitServices, post: Pick<MachinePost, 'send'>) {
    this.#services = services
    this.#post = post
    this.#beat = services.clock.every(PRESENT_MS, () => this.#tellPresent())
  }

  get size(): number {
    return this.#visits.size
  }

  stop(): void {
    this.#beat.cancel()
    for (const { next } of this.#looking.values()) next.cancel()
    this.#looking.clear()
  }

  /** Brings a leg into a conference or queue, whichever machine keeps it. */
  enter(script: RunningScript, stay: Stay, emit: (event: Event) => void): void {
    let joined = false
    const once = (event: Event): void => {
      // It may join anew after its keeper was lost.
      if (event.type === 'conference_joined' && joined) return
      joined ||= event.type === 'conference_joined'
      emit(event)
    }
    const since_ms = this.#services.clock.monotonic_ms()
    this.#enter({ script, stay, emit: once, since_ms, lost_ms: null, again_ms: AGAIN_MS, bridged: false })
  }

  #enter(journey: Journey): void {
    const { rooms, queues } = this.#services
    const { script, stay, emit } = journey
    const away = (machine_id: string): void => void this.#go(journey, machine_id)
    if (stay.type === 'join_conference') rooms.join(script, stay, emit, away)
    else if (stay.type === 'enqueue') queues.enqueue(script, stay, emit, away)
    else queues.dequeue(script, stay, emit, away)
  }

  /** Takes a leg out. Returns the seconds that it has waited in a queue; null when it visits none. */
  leave(script: RunningScript, how: 'leave' | 'hangup'): number | null {
    const looking = this.#looking.get(script)
    if (looking) {
      looking.next.cancel()
      this.#looking.delete(script)
      script.waiting.stop()
      looking.journey.emit(this.#lastOf(looking.journey, how))
      return this.#waited(looking.journey)
    }
    const visit = [...this.#visits.values()].find(({ journey, leaving }) => journey.script === script && !leaving)
    if (!visit) return null
    const { journey } = visit
    const { status } = script.host.call.facts
    this.#say(visit, { kind: 'leave', visit: visit.id, how, status })
    visit.leaving = this.#services.clock.after(LAST_MS, () => {
      this.#visits.delete(visit.id)
      journey.emit(this.#lastOf(journey, how))
    })
    this.#part(visit)
    return this.#waited(journey)
  }

  /** Asks the keeper for what the APIs want of the room or queue that a call is in. Resolves with the outcome. */
  ask(call_sid: string, asked: KeeperRequest): Promise<string> {
    const visit = [...this.#visits.values()].find(
      ({ journey, leaving }) => journey.script.host.call.sid === call_sid && leaving === null,
    )
    if (!visit) return Promise.resolve('not_live')
    const ask = this.#next_ask++
    return new Promise(resolve => {
      const settle = (outcome: string): void => {
        late.cancel()
        visit.asks.delete(ask)
        resolve(outcome)
      }
      const late = this.#services.clock.after(LAST_MS, () => settle('not_live'))
      visit.asks.set(ask, settle)
      this.#say(visit, { kind: 'ask', visit: visit.id, ask, asked })
    })
  }

  hear(from: string, note: VisitorNote | KeeperNote): void {
    const now_ms = this.#services.clock.monotonic_ms()
    if (note.kind === 'known') {
      const known = new Set(note.visits)
      for (const visit of this.#of(from)) {
        if (known.has(visit.id)) visit.heard_ms = now_ms
        else if (visit.came && !visit.leaving) this.#lost(visit)
      }
      return
    }
    const visit = 'visit' in note ? this.#visits.get(note.visit) : undefined
    if (visit?.machine_id !== from) return
    visit.heard_ms = now_ms
    if (note.kind === 'event') this.#told(visit, note.event)
    else if (note.kind === 'answered') visit.asks.get(note.ask)?.(note.outcome)
    else if (!visit.leaving) this.#obey(visit, note)
  }

  #obey(visit: Visit, note: VisitorNote | KeeperNote): void {
    const { script } = visit.journey
    if (note.kind === 'came') void this.#came(visit, note.sdp)
    else if (note.kind === 'run') this.#run(visit, note)
    else if (note.kind === 'facts') visit.facts = note.parameters
    else if (note.kind === 'update') script.update(note.entry)
    else if (note.kind === 'end') void script.host.call.end({ cause: 'script' })
    else if (note.kind === 'gone') this.#lost(visit)
    else if (note.kind === 'hear') {
      this.#sound(visit)
      script.waiting.hear(note.sources)
    } else if (note.kind === 'quiet') {
      script.waiting.stop()
      visit.sounding = false
      this.#bridge(visit)
    }
  }

  async #go(journey: Journey, machine_id: string): Promise<void> {
    const { clock, linked } = this.#services
    if (!linked) {
      journey.emit(unreachable(journey.stay, this.#waited(journey)))
      return
    }
    const { leg, call } = journey.script.host
    const id = newId.uuid()
    const heard_ms = clock.monotonic_ms()
    const visit: Visit = {
      id,
      machine_id,
      journey,
      heard_ms,
      came: false,
      sounding: false,
      facts: {},
      leaving: null,
      asks: new Map(),
    }
    this.#visits.set(id, visit)
    try {
      const codec = (leg.codec ?? 'PCMU') as CodecName
      await leg.session.openLeg(id, internalPolicy([codec]), 'rtp', () => undefined)
      const { sdp } = await leg.session.hub.request('leg.local_offer', { leg_id: id })
      if (!this.#isHere(visit)) return void leg.session.closeLeg(id)
      this.#say(visit, { kind: 'come', visit: id, call_sid: call.sid, stay: journey.stay, sdp })
      clock.after(COME_MS, () => this.#isHere(visit) && !visit.came && this.#lost(visit))
    } catch (err) {
      if (!leg.ended) call.log.warn({ err, machine_id }, 'a call could not be brought to another machine')
      if (this.#isHere(visit)) this.#lost(visit)
    }
  }

  async #came(visit: Visit, sdp: string): Promise<void> {
    const { leg, call } = visit.journey.script.host
    try {
      await leg.session.hub.request('leg.remote_answer', { leg_id: visit.id, sdp })
      if (!this.#isHere(visit)) return
      visit.came = true
      visit.journey.lost_ms = null
      visit.journey.again_ms = AGAIN_MS
      // The sound of the search.
      if (!visit.sounding) visit.journey.script.waiting.stop()
      this.#bridge(visit)
    } catch (err) {
      if (!leg.ended) call.log.warn({ err, machine_id: visit.machine_id }, 'the media of another machine is refused')
      if (this.#isHere(visit)) this.#lost(visit)
    }
  }

  #run(visit: Visit, { wait, document }: Extract<KeeperNote, { readonly kind: 'run' }>): void {
    const over = (outcome: Extract<VisitorNote, { readonly kind: 'waited' }>['outcome']): void => {
      visit.sounding = false
      if (!this.#isHere(visit)) return
      this.#say(visit, { kind: 'waited', visit: visit.id, wait, outcome })
      if (outcome !== 'replaced') this.#bridge(visit)
    }
    this.#sound(visit)
    const { kind, entry, parameters } = document
    visit.facts = parameters
    visit.journey.script.waiting.run({
      kind,
      entry,
      again: false,
      parameters: () => visit.facts,
      done: over,
      replaced: () => over('replaced'),
    })
  }

  #sound(visit: Visit): void {
    visit.sounding = true
    const { leg, call } = visit.journey.script.host
    if (!visit.came || leg.ended) return
    leg.session.hub
      .request('unbridge', { leg_id: leg.id })
      .catch(err => call.log.debug({ err }, 'a leg was not taken off its internal leg'))
  }

  #bridge(visit: Visit): void {
    const { leg, call } = visit.journey.script.host
    if (!visit.came || visit.sounding || leg.ended || !this.#isHere(visit)) return
    leg.session.hub.request('bridge', { a: leg.id, b: visit.id }).catch(err => {
      if (leg.ended || !this.#isHere(visit)) return
      call.log.warn({ err }, 'a leg could not be joined with its internal leg')
      this.#lost(visit)
    })
  }

  #told(visit: Visit, event: Event): void {
    const { journey } = visit
    if (event.type === 'queue_bridged' || event.type === 'dequeue_bridged') journey.bridged = true
    if (LEFT.has(event.type)) {
      this.#visits.delete(visit.id)
      if (visit.leaving) visit.leaving.cancel()
      else this.#part(visit)
    }
    journey.emit(event)
  }

  /** The keeper is gone. A leg that has met somebody in a queue is alone; any other one looks for its keeper again. */
  #lost(visit: Visit): void {
    const { clock } = this.#services
    const { journey, machine_id } = visit
    const { script, stay } = journey
    if (!this.#visits.delete(visit.id)) return
    this.#part(visit)
    if (script.host.leg.ended) return
    script.host.call.log.warn({ machine_id }, 'the machine that keeps a conference or queue does not have the call')
    const now_ms = clock.monotonic_ms()
    journey.lost_ms ??= now_ms
    if (journey.bridged) journey.emit(this.#lastOf(journey, 'leave'))
    else if (now_ms - journey.lost_ms > LOOK_MS) journey.emit(unreachable(stay, this.#waited(journey)))
    else {
      script.waiting.hear(hold)
      const next = clock.after(journey.again_ms, () => {
        this.#looking.delete(script)
        this.#enter(journey)
      })
      journey.again_ms = Math.min(MOST_AGAIN_MS, 2 * journey.again_ms)
      this.#looking.set(script, { journey, next })
    }
  }

  /** Separates a leg from its internal one, which is closed. */
  #part({ id, journey }: Visit): void {
    const { leg } = journey.script.host
    journey.script.waiting.stop()
    void leg.session.closeLeg(id)
  }

  #lastOf(journey: Journey, how: 'leave' | 'hangup'): Event {
    const { stay, bridged } = journey
    const { id } = stay
    if (stay.type === 'join_conference') return { type: 'conference_left', id, number: null, detail: null }
    if (stay.type === 'dequeue')
      return { type: 'dequeue_ended', id, result: bridged ? 'bridged' : 'queue-empty', duration_seconds: null }
    const queue_time_seconds = this.#waited(journey)
    return { type: 'queue_left', id, result: bridged ? 'bridged' : how, queue_sid: null, queue_time_seconds }
  }

  #waited({ since_ms }: Journey): number {
    return Math.round((this.#services.clock.monotonic_ms() - since_ms) / 1000)
  }

  #tellPresent(): void {
    const since_ms = this.#services.clock.monotonic_ms() - SILENT_MS
    const machines = new Map<string, string[]>()
    for (const visit of [...this.#visits.values()]) {
      if (visit.leaving) continue
      if (visit.heard_ms < since_ms) this.#lost(visit)
      else machines.set(visit.machine_id, [...(machines.get(visit.machine_id) ?? []), visit.id])
    }
    for (const [machine_id, visits] of machines)
      this.#post.send(machine_id, JSON.stringify({ kind: 'present', visits } satisfies VisitorNote))
  }

  #of(machine_id: string): Visit[] {
    return [...this.#visits.values()].filter(visit => visit.machine_id === machine_id)
  }

  #isHere(visit: Visit): boolean {
    return this.#visits.get(visit.id) === visit && !visit.leaving
  }

  #say({ machine_id }: Visit, note: VisitorNote): void {
    this.#post.send(machine_id, JSON.stringify(note))
  }
}

/** The document goes on without the conference or queue. */
function unreachable(stay: Stay, queue_time_seconds: number): Event {
  const { id, name } = stay
  if (stay.type === 'dequeue') return { type: 'dequeue_ended', id, result: 'error', duration_seconds: null }
  if (stay.type === 'enqueue')
    return { type: 'queue_left', id, result: 'system-error', queue_sid: null, queue_time_seconds }
  const detail = `the conference "${name}" runs on another machine, which does not let this call in`
  return { type: 'conference_left', id, number: ELSEWHERE, detail }
}

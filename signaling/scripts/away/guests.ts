import type { ConferenceCommand } from '../../../core/domain/calls/control-commands.ts'
import { CODEC_NAMES } from '../../../core/domain/codecs/codec.ts'
import type { Timer } from '../../../core/runtime/clock.ts'
import type { MachinePost } from '../../../core/runtime/edge-link.ts'
import { type CallRow, findCall } from '../../../core/state/calls/running-calls.ts'
import { findNode } from '../../../core/state/nodes/nodes.ts'
import type { MediaEvent, MediaHub } from '../../b2bua/media.ts'
import type { LiveRecording } from '../../b2bua/registry.ts'
import type { Queues } from '../queues.ts'
import { controlRecording } from '../recording-orders.ts'
import type { Rooms } from '../rooms.ts'
import { Guest, type GuestServices } from './guest.ts'
import {
  internalPolicy,
  type KeeperNote,
  type KeeperRequest,
  PRESENT_MS,
  SILENT_MS,
  type Stay,
  type VisitorNote,
} from './notes.ts'

/** The most calls of other machines at once. Each has been admitted by its own machine. */
const MAX_GUESTS = 5000

type Come = Extract<VisitorNote, { readonly kind: 'come' }>

/** The calls of other machines that are in rooms and queues of this node. */
export class Guests {
  readonly #services: GuestServices & { readonly media: MediaHub }
  readonly #rooms: Rooms
  readonly #queues: Queues
  readonly #recordings: ReadonlyMap<string, LiveRecording>
  readonly #control: (command: ConferenceCommand) => string
  readonly #post: Pick<MachinePost, 'send'>
  readonly #guests = new Map<string, Guest>()
  /** Visits that are being let in, and those that have left meanwhile. */
  readonly #coming = new Map<string, 'coming' | 'left'>()
  readonly #sweep: Timer
  #stopped = false

  constructor(
    services: GuestServices & { readonly media: MediaHub },
    shared: {
      readonly rooms: Rooms
      readonly queues: Queues
      readonly recordings: ReadonlyMap<string, LiveRecording>
      /** Carries out what the APIs ask of a conference. Returns the outcome. */
      readonly control: (command: ConferenceCommand) => string
    },
    post: Pick<MachinePost, 'send'>,
  ) {
    this.#services = services
    this.#rooms = shared.rooms
    this.#queues = shared.queues
    this.#recordings = shared.recordings
    this.#control = shared.control
    this.#post = post
    services.media.onDown(() => this.#endAll())
    this.#sweep = services.clock.every(PRESENT_MS, () => this.#endSilent())
  }

  get size(): number {
    return this.#guests.size
  }

  hear(from: string, note: VisitorNote | KeeperNote): void {
    if (note.kind === 'come') void this.#come(from, note)
    else if (note.kind === 'present') this.#present(from, note.visits)
    else if (note.kind === 'leave' || note.kind === 'waited' || note.kind === 'ask') {
      const guest = this.#guests.get(note.visit)
      // Only the machine of a call speaks for it.
      if (guest?.machine_id === from) this.#heard(guest, note)
      else if (note.kind === 'leave' && this.#coming.has(note.visit)) this.#coming.set(note.visit, 'left')
    }
  }

  stop(): void {
    this.#stopped = true
    this.#sweep.cancel()
    this.#endAll()
  }

  #heard(guest: Guest, note: Extract<VisitorNote, { readonly kind: 'leave' | 'waited' | 'ask' }>): void {
    const { visit } = guest
    if (note.kind === 'waited') guest.waiting.waited(note.wait, note.outcome)
    else if (note.kind === 'leave') {
      if (note.how === 'hangup') guest.hungUp(note.status)
      this.#over(guest, note.how)
    } else
      this.#say(guest.machine_id, { kind: 'answered', visit, ask: note.ask, outcome: this.#asked(guest, note.asked) })
  }

  /** A machine speaks for the room or queue that its call is in, and for no other one. */
  #asked(guest: Guest, asked: KeeperRequest): string {
    if (asked.kind === 'dequeue') return this.#queues.take(guest.host.call.sid, asked.command) ? 'done' : 'not_live'
    if (asked.kind === 'recording') {
      const recording = this.#recordings.get(asked.command.sid)
      return recording?.call_sid === guest.host.call.sid ? controlRecording(recording, asked.command) : 'not_live'
    }
    const room = this.#rooms.find(asked.command.conference_sid)
    return room?.participants.some(({ script }) => script === guest) ? this.#control(asked.command) : 'not_live'
  }

  #present(from: string, visits: readonly string[]): void {
    const now_ms = this.#services.clock.monotonic_ms()
    const known: string[] = []
    for (const visit of visits) {
      const guest = this.#guests.get(visit)
      if (guest?.machine_id === from) {
        guest.present_ms = now_ms
        guest.waiting.tell()
      } else if (!this.#coming.has(visit)) continue
      known.push(visit)
    }
    this.#say(from, { kind: 'known', visits: known })
  }

  async #come(from: string, { visit, call_sid, stay, sdp }: Come): Promise<void> {
    if (this.#guests.has(visit) || this.#coming.has(visit)) return
    const { log } = this.#services
    this.#coming.set(visit, 'coming')
    try {
      const row = await this.#callOf(from, call_sid)
      const full = this.#guests.size + this.#coming.size > MAX_GUESTS
      const guest = row && !full && !this.#stopped ? await this.#letIn(from, visit, row, sdp) : null
      if (guest && this.#coming.get(visit) === 'coming') this.#enter(guest, stay)
      else {
        await guest?.close()
        this.#say(from, { kind: 'gone', visit })
      }
    } catch (err) {
      log.warn({ err, call_id: call_sid, machine_id: from }, 'a call of another machine could not be let in')
      this.#say(from, { kind: 'gone', visit })
    } finally {
      this.#coming.delete(visit)
    }
  }

  /** Whose the call is says the database, not the note: a machine brings no calls but its own. */
  async #callOf(machine_id: string, call_sid: string): Promise<CallRow | null> {
    const { db } = this.#services.state
    const row = await findCall(db, call_sid)
    if (!row || row.ended_at !== null || row.node_id === null) return null
    return (await findNode(db, row.node_id))?.machine_id === machine_id ? row : null
  }

  /** Answers the offer of a call's machine. @throws MediaRefusal */
  async #letIn(machine_id: string, visit: string, row: CallRow, sdp: string): Promise<Guest | null> {
    const { media } = this.#services
    const session = await media.open(visit, row.project_id)
    if (!session) return null
    const guest = new Guest(this.#services, {
      visit,
      machine_id,
      row,
      session,
      say: note => this.#say(machine_id, note),
      left: () => this.#over(guest, 'leave'),
    })
    try {
      const heard = (event: MediaEvent): void => {
        if (event.event === 'leg.voice') this.#rooms.voice(guest, event.speaking)
      }
      await session.openLeg(visit, internalPolicy([...CODEC_NAMES]), 'rtp', heard)
      await media.request('leg.remote_offer', { leg_id: visit, sdp })
      const answer = await media.request('leg.local_answer', { leg_id: visit })
      this.#say(machine_id, { kind: 'came', visit, sdp: answer.sdp })
      return guest
    } catch (err) {
      await guest.close()
      throw err
    }
  }

  #enter(guest: Guest, stay: Stay): void {
    this.#guests.set(guest.visit, guest)
    const { visit, machine_id } = guest
    // The keeper has changed meanwhile: its node asks anew.
    const moved = (): void => {
      this.#over(guest, 'leave')
      this.#say(machine_id, { kind: 'gone', visit })
    }
    if (stay.type === 'join_conference') this.#rooms.join(guest, stay, guest.emit, moved)
    else if (stay.type === 'enqueue') this.#queues.enqueue(guest, stay, guest.emit, moved)
    else this.#queues.dequeue(guest, stay, guest.emit, moved)
  }

  #over(guest: Guest, how: 'leave' | 'hangup'): void {
    if (!this.#guests.delete(guest.visit)) return
    this.#rooms.leave(guest)
    this.#queues.leave(guest, how)
    this.#queues.stopDequeue(guest)
    void guest.close()
  }

  /** Ends the visits of which their machine says nothing any more. */
  #endSilent(): void {
    const since_ms = this.#services.clock.monotonic_ms() - SILENT_MS
    for (const guest of [...this.#guests.values()]) {
      if (guest.present_ms >= since_ms) continue
      guest.host.call.log.warn({ machine_id: guest.machine_id }, 'a call of another machine is gone')
      guest.hungUp('completed')
      this.#over(guest, 'hangup')
    }
  }

  #endAll(): void {
    for (const guest of [...this.#guests.values()]) {
      // First: what its room says of it has no effect any more.
      this.#say(guest.machine_id, { kind: 'gone', visit: guest.visit })
      this.#over(guest, 'leave')
    }
  }

  #say(machine_id: string, note: KeeperNote): void {
    this.#post.send(machine_id, JSON.stringify(note))
  }
}

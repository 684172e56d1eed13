import type { Conference, Engine } from '../../native/index.ts'
import type { MediaLeg } from './leg.ts'

export const MAX_PARTICIPANTS = 250

interface Room {
  readonly native: Conference
  readonly legs: Set<MediaLeg>
}

const NOBODY: ReadonlySet<MediaLeg> = new Set()

/** The conferences of a worker. Each exists from the first join to the last leave. */
export class Conferences {
  readonly #engine: Engine
  readonly #rooms = new Map<string, Room>()
  readonly #byLeg = new Map<MediaLeg, string>()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  get count(): number {
    return this.#rooms.size
  }

  /** Adds a leg and returns the number of participants; null when the conference is full. */
  join(
    conference_id: string,
    leg: MediaLeg,
    how: { muted: boolean; deaf: boolean; heard_by: MediaLeg | null },
  ): number | null {
    const before = this.#byLeg.get(leg)
    if (before !== undefined && before !== conference_id) this.leave(leg)
    const room = this.#rooms.get(conference_id) ?? { native: this.#engine.openConference(), legs: new Set<MediaLeg>() }
    if (room.legs.size >= MAX_PARTICIPANTS && !room.legs.has(leg)) return null
    this.#rooms.set(conference_id, room)
    room.native.join(leg.stream, { ...how, heard_by: how.heard_by?.stream ?? null })
    room.legs.add(leg)
    this.#byLeg.set(leg, conference_id)
    for (const other of room.legs) other.partiesChanged()
    return room.legs.size
  }

  /** Returns the participants of the conference that a leg is in; none without one. */
  around(leg: MediaLeg): ReadonlySet<MediaLeg> {
    const room = this.#rooms.get(this.#byLeg.get(leg) ?? '')
    return room?.legs ?? NOBODY
  }

  /** Returns the mix of a conference; null when it has no participant. */
  mix(conference_id: string): Conference | null {
    return this.#rooms.get(conference_id)?.native ?? null
  }

  leave(leg: MediaLeg): void {
    const conference_id = this.#byLeg.get(leg)
    const room = conference_id === undefined ? undefined : this.#rooms.get(conference_id)
    if (conference_id === undefined || !room) return
    this.#byLeg.delete(leg)
    room.legs.delete(leg)
    if (!leg.stream.closed) room.native.leave(leg.stream)
    if (room.legs.size > 0) return
    this.#rooms.delete(conference_id)
    room.native.close()
  }
}

import type { Clock } from '../../../core/runtime/clock.ts'
import { cdrMessage } from '../control/wire.ts'
import type { Apps } from './apps.ts'

// Call-record events (drachtio-control-protocol.md §16.2): one attempt and at most one start and one stop for each leg.

/** Holds whether the start and the stop of a leg's record were sent. */
interface Recorded {
  cdr: { start?: boolean; stop: boolean } | undefined
}

export class CallRecords {
  readonly #enabled: boolean
  readonly #apps: Apps
  readonly #clock: Clock

  constructor(enabled: boolean, apps: Apps, clock: Clock) {
    this.#enabled = enabled
    this.#apps = apps
    this.#clock = clock
  }

  attempt(source: 'network' | 'application', invite: string): void {
    this.#emit('attempt', source, undefined, invite)
  }

  start(leg: Recorded, source: 'network' | 'application', role: string, response: string): void {
    if (!this.#enabled || leg.cdr?.start) return
    leg.cdr = { start: true, stop: leg.cdr?.stop ?? false }
    this.#emit('start', source, role, response)
  }

  stop(leg: Recorded, source: 'network' | 'application', reason: string, text: string): void {
    if (!this.#enabled || leg.cdr?.stop) return
    leg.cdr = { start: true, stop: true }
    this.#emit('stop', source, reason, text)
  }

  #emit(event: string, source: 'network' | 'application', detail: string | undefined, text: string): void {
    if (!this.#enabled) return
    const app = this.#apps.pick(`cdr:${event}`)
    app?.send(cdrMessage(event, source, this.#clock.now(), detail, text))
  }
}

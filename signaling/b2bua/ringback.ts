import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import type { Leg } from './leg.ts'

/** The country whose tone is played when the called address is not a telephone number. */
const ELSEWHERE = 'us'

/** Plays the ring tone of the called number's country to a leg whose far end is silent. */
export class Ringback {
  readonly #leg: Leg
  #playing = false

  constructor(leg: Leg) {
    this.#leg = leg
  }

  start(called: string, country: string = DEFAULT_COUNTRY): void {
    if (this.#playing) return
    this.#playing = true
    const sources = [{ kind: 'ringback' as const, country: parseNumber(called, country)?.country ?? ELSEWHERE }]
    this.#leg.session.hub
      .request('play.start', { leg_id: this.#leg.id, play_id: this.#play_id, sources, loop: 1 })
      .catch(err => this.#leg.log.debug({ err }, 'the ring tone could not be played'))
  }

  async stop(): Promise<void> {
    if (!this.#playing) return
    this.#playing = false
    await this.#leg.session.hub
      .request('play.stop', { leg_id: this.#leg.id, play_id: this.#play_id })
      .catch(err => this.#leg.log.debug({ err }, 'the ring tone was not stopped'))
  }

  get #play_id(): string {
    return `${this.#leg.id}-ringback`
  }
}

import type { CookieJar } from '../../core/domain/webhooks/cookies.ts'
import type { Timer } from '../../core/runtime/clock.ts'
import type { PlaySource } from '../../media/protocol/schema.ts'
import type { MediaEvent } from '../b2bua/media.ts'
import { answeredHost, type ScriptHost } from '../b2bua/script-host.ts'
import type { LegPlayer } from './player.ts'
import type { RunningScript } from './running-script.ts'
import type { WaitDocument } from './wait-document.ts'

const AGAIN_MS = 500

/** Plays what a script's leg hears in a queue or room before it is joined. */
export class Waiting {
  readonly #another: RunningScript['another']
  readonly #host: ScriptHost
  readonly #player: LegPlayer
  readonly #cookies: CookieJar
  #script: RunningScript | null = null
  #replaced: (() => void) | null = null
  #again: Timer | null = null
  #over = false

  constructor(another: RunningScript['another'], host: ScriptHost, player: LegPlayer, cookies: CookieJar) {
    this.#another = another
    this.#host = host
    this.#player = player
    this.#cookies = cookies
  }

  /** Loops the sources until `stop`. */
  hear(sources: PlaySource[]): void {
    this.#player.loop(sources)
  }

  run(wait: WaitDocument): void {
    if (this.#over) return
    const { call, leg, direction } = this.#host
    this.#replaced = wait.replaced ?? null
    this.#script = this.#another(
      {
        ...answeredHost(call, leg, () => undefined, direction),
        parameters: wait.parameters,
        done: outcome => {
          this.#script = null
          this.#replaced = null
          wait.done(outcome)
          if (!wait.again || outcome !== 'finished' || this.#over) return
          // The delay keeps a document without content from causing a storm of requests.
          this.#again = call.clock.after(AGAIN_MS, () => this.run(wait))
        },
      },
      { kind: wait.kind, entry: wait.entry, fallback: null },
      this.#cookies,
    )
    this.#script.start()
  }

  digit(digit: string): void {
    this.#script?.digit(digit, 'media')
  }

  media(event: MediaEvent): void {
    this.#script?.media(event)
  }

  stop(): void {
    this.#again?.cancel()
    this.#again = null
    const script = this.#script
    this.#script = null
    const replaced = this.#replaced
    this.#replaced = null
    script?.drop()
    replaced?.()
    if (!this.#host.leg.ended) this.#player.stopRing()
  }

  /** Stops, and starts nothing from now on: the script or its leg has ended. */
  end(): void {
    this.#over = true
    this.stop()
  }
}

import type { CookieJar } from '../../core/domain/webhooks/cookies.ts'
import type { Timer } from '../../core/runtime/clock.ts'
import type { Target } from '../../markup/interpreter/types.ts'
import type { PlaySource } from '../../media/protocol/schema.ts'
import type { MediaEvent } from '../b2bua/media.ts'
import { answeredHost, type ScriptHost, type WaitOutcome } from '../b2bua/script-host.ts'
import type { Player } from './player.ts'
import type { Script } from './script.ts'

/** A document that a leg hears while it waits. */
interface WaitDocument {
  readonly kind: 'queue_wait' | 'conference_wait' | 'whisper'
  readonly target: Target
  /** Whether the document starts again when it finishes. */
  readonly again: boolean
  readonly parameters: () => Readonly<Record<string, string>>
  readonly done: (outcome: WaitOutcome) => void
}

const AGAIN_MS = 500

/** Plays what a script's leg hears in a queue or room before it is joined. */
export class Waiting {
  readonly #another: Script['another']
  readonly #host: ScriptHost
  readonly #player: Player
  readonly #cookies: CookieJar
  #script: Script | null = null
  #again: Timer | null = null
  #over = false

  constructor(another: Script['another'], host: ScriptHost, player: Player, cookies: CookieJar) {
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
    this.#script = this.#another(
      {
        ...answeredHost(call, leg, () => undefined, direction),
        parameters: wait.parameters,
        done: outcome => {
          this.#script = null
          wait.done(outcome)
          if (!wait.again || outcome !== 'finished' || this.#over) return
          // The delay keeps a document without content from causing a storm of requests.
          this.#again = call.ctx.clock.after(AGAIN_MS, () => this.run(wait))
        },
      },
      { kind: wait.kind, entry: { kind: 'request', ...wait.target }, fallback: null },
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
    script?.drop()
    if (!this.#host.leg.ended) this.#player.stopRing()
  }

  /** Stops, and starts nothing from now on: the script or its leg has ended. */
  end(): void {
    this.#over = true
    this.stop()
  }
}

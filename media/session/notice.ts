import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { PlayPiece, SampleRate } from '../../native/index.ts'

/** What the parties of a call are told while somebody listens. */

interface Hearer {
  readonly announce: (samples: Int16Array, rate_hz: SampleRate) => void
}

interface Sound {
  readonly samples: Int16Array
  readonly rate_hz: SampleRate
}

const RATE_HZ = 8000
/** The beep by which telephone recorders warn: 1400 Hz for half a second, every 15 s. */
const TONE = { hz: 1400, ms: 500, level: 0.2 } as const
const REPEAT_MS = 15_000

/** Returns the warning tone, with ends that do not click. */
function warningTone(): Sound {
  const length = (RATE_HZ * TONE.ms) / 1000
  const ramp = RATE_HZ / 100
  const samples = Int16Array.from({ length }, (_, at) => {
    const edge = Math.min(1, at / ramp, (length - at) / ramp)
    return Math.sin((2 * Math.PI * TONE.hz * at) / RATE_HZ) * TONE.level * edge * 32_767
  })
  return { samples, rate_hz: RATE_HZ }
}

/**
 * Sounds to everybody who hears or is heard by a leg: at the beginning, and to each who comes later. The tone comes
 * again every 15 s; what is spoken comes once to each.
 */
export class Notice<H extends Hearer> {
  readonly #sounds: readonly Sound[]
  readonly #parties: () => Iterable<H>
  readonly #heard = new WeakSet<H>()
  readonly #repeats: boolean
  #timer: Timer | null = null

  /** `spoken`: what is said instead of the tone. */
  constructor(spoken: readonly PlayPiece[] | null, parties: () => Iterable<H>) {
    const said = (spoken ?? []).flatMap(piece => (piece.kind === 'pcm' && piece.samples.length > 0 ? [piece] : []))
    this.#sounds = said.length > 0 ? said : [warningTone()]
    this.#parties = parties
    this.#repeats = said.length === 0
  }

  begin(clock: Clock): void {
    this.tellNewcomers()
    if (!this.#repeats) return
    this.#timer = clock.every(REPEAT_MS, () => {
      for (const party of this.#parties()) this.#tell(party)
    })
  }

  tellNewcomers(): void {
    for (const party of this.#parties()) if (!this.#heard.has(party)) this.#tell(party)
  }

  /** Tells a party again at the next change: perhaps it was not there to hear. */
  forget(party: H): void {
    this.#heard.delete(party)
  }

  end(): void {
    this.#timer?.cancel()
  }

  #tell(party: H): void {
    this.#heard.add(party)
    for (const { samples, rate_hz } of this.#sounds) party.announce(samples, rate_hz)
  }
}

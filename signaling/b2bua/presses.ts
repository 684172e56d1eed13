/** How a key came: as media (RFC 4733 or its tones), or signalled by INFO. */
export type KeyWay = 'media' | 'info'

/**
 * The same key by both ways within this time is one press: packets and SIP take ways of their own, through processes
 * that may be busy, and no telephone sends some keys by the one and others by the other.
 */
const SAME_PRESS_MS = 2000

/** Tells presses from their echoes: some telephones send each key both ways, and it counts by the one that is first. */
export class Presses {
  /** Told, and not yet heard of by the other way. */
  #told: { digit: string; by: KeyWay; at_ms: number }[] = []

  /** False when this press was told already. `held_ms`: for how long the key has been down by now. */
  isNew(digit: string, by: KeyWay, held_ms: number, now_ms: number): boolean {
    this.#told = this.#told.filter(press => now_ms - held_ms - press.at_ms <= SAME_PRESS_MS)
    const echoed = this.#told.findIndex(press => press.digit === digit && press.by !== by)
    if (echoed >= 0) this.#told.splice(echoed, 1)
    else this.#told.push({ digit, by, at_ms: now_ms })
    return echoed < 0
  }
}

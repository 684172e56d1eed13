/** A key that a telephone sends. `way` is one of two: an event or its tones, media or INFO. */
export interface Press<Way extends string> {
  readonly digit: string
  readonly way: Way
  /** When it was heard: when the key was let go, or while it was down. */
  readonly at_ms: number
  /** For how long the key had been down by then. */
  readonly held_ms: number
}

/** An event (RFC 4733) and its tones are packets of one stream: only buffers of a gateway part them. */
export const TONES_ECHO_MS = 400
/** INFO and media take ways of their own, through servers and processes that may be busy. */
export const INFO_ECHO_MS = 2000

interface Heard<Way extends string> {
  /** False: this is the echo of a press that was heard the other way before. */
  readonly isNew: boolean
  /** Presses whose echo may still come. */
  readonly pending: readonly Press<Way>[]
}

/**
 * Tells presses from their echoes (decision 0635): some telephones send each key in two ways, and it counts by the way
 * that comes first. The same key by the other way is an echo unless it went down more than `limit_ms` after the first
 * was heard. Each press has one echo at most, so a key that is pressed twice counts twice.
 */
export function hearPress<Way extends string>(
  pending: readonly Press<Way>[],
  press: Press<Way>,
  limit_ms: number,
): Heard<Way> {
  const recent = pending.filter(({ at_ms }) => press.at_ms - press.held_ms - at_ms <= limit_ms)
  const echoed = recent.findIndex(({ digit, way }) => digit === press.digit && way !== press.way)
  if (echoed >= 0) return { isNew: false, pending: recent.toSpliced(echoed, 1) }
  return { isNew: true, pending: [...recent, press] }
}

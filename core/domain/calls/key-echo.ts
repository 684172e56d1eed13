/** A key press, as received one way of two: as an event or its tones, or in the media or INFO. */
export interface Press<Way extends string> {
  readonly digit: string
  readonly way: Way
  /** When it was received: on release of the key, or while it was down. */
  readonly at_ms: number
  /** How long the key had been down by then. */
  readonly held_ms: number
}

/** An event (RFC 4733) and its tones are packets of one stream. Only a gateway's buffers separate them. */
export const TONES_ECHO_MS = 400
/** INFO and media take different paths, through servers and processes that may be busy. */
export const INFO_ECHO_MS = 2000
/** How far an INFO may be ahead of the end of its key in the media, before the key is passed on. */
export const INFO_LEAD_MS = 400

interface Heard<Way extends string> {
  /** False for the echo of a press that was already received the other way. */
  readonly isNew: boolean
  /** Presses whose echo may still come. */
  readonly pending: readonly Press<Way>[]
}

/**
 * Separates presses from their echoes (docs/calls.md). Some telephones send each key in two ways; the first received
 * counts. The same key by the other way is an echo unless it was pressed more than `limit_ms` after the first was
 * received. Each press has at most one echo, so that a key pressed twice counts twice.
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

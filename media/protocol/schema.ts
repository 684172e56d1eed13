import type { Static } from 'typebox'
import type { EVENTS } from './events.ts'
import type { COMMON_REFUSALS, MEDIA_METHODS } from './methods.ts'

/**
 * The protocol between signaling and the media worker: every method with its parameters, result and refusals, and every
 * event. Each frame is one JSON object on one line, sent over a Unix socket:
 * request `{id, method, params}`, reply `{id, result}` or `{id, error: {reason, detail}}`, event `{event, ...fields}`.
 */

export { EVENTS } from './events.ts'
export { MEDIA_METHODS } from './methods.ts'
export { CodecName, LegPolicy, LegStats, MAX_SOUND_BYTES, PlaySource, SOUNDS_FOLDER } from './values.ts'

export type MethodName = keyof typeof MEDIA_METHODS
export type MethodParams<M extends MethodName> = Static<(typeof MEDIA_METHODS)[M]['params']>
export type MethodResult<M extends MethodName> = Static<(typeof MEDIA_METHODS)[M]['result']>
export type MethodRefusal<M extends MethodName> =
  | (typeof MEDIA_METHODS)[M]['refusals'][number]
  | (typeof COMMON_REFUSALS)[number]

export type EventName = keyof typeof EVENTS
export type EventFields<E extends EventName> = Static<(typeof EVENTS)[E]>
/** Any event, discriminated by `event`. */
export type MediaEvent = { [E in EventName]: { event: E } & EventFields<E> }[EventName]

/** A longer frame ends the connection. Our own frames are far shorter. */
export const MAX_FRAME_BYTES = 1 << 20

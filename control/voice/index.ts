import { call } from './call.ts'
import { calls } from './calls.ts'
import { events } from './events.ts'
import { recordings } from './recordings.ts'
import type { VoiceRoute } from './route.ts'

/** Every endpoint of the voice-calls API, in the order of the reference. */
export const VOICE_ROUTES: readonly VoiceRoute[] = [...calls, ...call, ...recordings, ...events]

import { account } from './account.ts'
import { activities } from './activities.ts'
import { applications } from './applications.ts'
import { call } from './call.ts'
import { calls } from './calls.ts'
import { conferences } from './conferences.ts'
import { callEvents } from './events.ts'
import { liveRecordings } from './live-recordings.ts'
import { callNotifications } from './notifications.ts'
import { numbers } from './numbers.ts'
import { participants } from './participants.ts'
import { queues } from './queues.ts'
import { recordings } from './recordings.ts'
import type { VoiceRoute } from './route.ts'
import { usage } from './usage.ts'

/** Every endpoint of the voice-calls API, in the order of the reference. */
export const VOICE_ROUTES: readonly VoiceRoute[] = [
  ...calls,
  ...call,
  ...recordings,
  ...callEvents,
  ...callNotifications,
  ...conferences,
  ...liveRecordings,
  ...participants,
  ...queues,
  ...activities,
  ...account,
  ...numbers,
  ...applications,
  ...usage,
]

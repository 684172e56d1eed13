import type { VoiceRequester } from '../../core/runtime/voice-request.ts'
import type { Visits } from './away/visits.ts'
import type { ChildPlacing } from './child-placing.ts'
import type { Queues } from './queues.ts'
import type { Rooms } from './rooms.ts'
import type { ScriptServices } from './services.ts'
import type { StoredSounds } from './stored-sounds.ts'

/** What the scripts of a node share. Each of their parts takes what it needs of it. */
export interface ScriptContext extends ScriptServices {
  readonly voice: VoiceRequester
  readonly rooms: Rooms
  readonly queues: Queues
  readonly visits: Visits
  readonly children: ChildPlacing
  readonly sounds: StoredSounds
  /** Returns the account's current token; null when the project has no active account. */
  authToken(project_id: string): string | null
}

import type { VoiceRequester } from '../../core/runtime/voice-request.ts'
import type { ChildPlacing } from './child-placing.ts'
import type { Queues } from './queues.ts'
import type { Rooms } from './rooms.ts'
import type { StoredSounds } from './stored-sounds.ts'

/** The services that the scripts of a node share, in addition to the CallContext of their calls. */
export interface ScriptContext {
  readonly voice: VoiceRequester
  readonly rooms: Rooms
  readonly queues: Queues
  readonly children: ChildPlacing
  readonly sounds: StoredSounds
  /** Returns the account's current token; null when the project has no active account. */
  authToken(project_id: string): string | null
}

import type { VoiceRequester } from '../../core/runtime/voice-request.ts'
import type { ChildPlacing } from './child-placing.ts'
import type { Queues } from './queues.ts'
import type { Rooms } from './rooms.ts'

/** What the scripts of a node share, beyond what their calls work with. */
export interface ScriptContext {
  readonly voice: VoiceRequester
  readonly rooms: Rooms
  readonly queues: Queues
  readonly children: ChildPlacing
  /** The account's token in force now; null when the project has no active account. */
  authToken(project_id: string): string | null
}

import type { CookieJar } from '../../core/domain/webhooks/cookies.ts'
import type { Event } from '../../markup/interpreter/types.ts'
import type { PlaySource } from '../../media/protocol/schema.ts'
import type { CallScript, ScriptEntry, ScriptHost } from '../b2bua/script-host.ts'
import type { InboundRequest } from '../drachtio/types.ts'
import type { ScriptContext } from './context.ts'
import type { WaitDocument } from './wait-document.ts'

/** A script, as far as its parts and the queues use it. */
export interface RunningScript extends CallScript {
  readonly ctx: ScriptContext
  readonly host: ScriptHost
  readonly cookies: CookieJar
  /** Plays what the leg hears in a queue or room before it is joined. */
  readonly waiting: {
    /** Loops the sources until `stop`. */
    hear(sources: PlaySource[]): void
    run(wait: WaitDocument): void
    stop(): void
  }
  /** Creates another script in the same context: what a child hears, or the music of a queue. */
  another(host: ScriptHost, entry: ScriptEntry, cookies?: CookieJar): RunningScript
  emit(event: Event): void
  /** A REFER of the script's own leg, or of the child of this name. */
  referred(leg: 'self' | string, request: InboundRequest): void
}

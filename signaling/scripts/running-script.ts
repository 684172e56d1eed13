import type { CookieJar } from '../../core/domain/webhooks/cookies.ts'
import type { Event } from '../../markup/interpreter/types.ts'
import type { CallScript, ScriptEntry, ScriptHost } from '../b2bua/script-host.ts'
import type { InboundRequest } from '../drachtio/types.ts'
import type { ScriptContext } from './context.ts'
import type { SharedScript } from './shared-script.ts'

/** A script, as far as its parts and the queues use it. */
export interface RunningScript extends CallScript, SharedScript {
  readonly ctx: ScriptContext
  readonly host: ScriptHost
  readonly cookies: CookieJar
  /** Creates another script in the same context: what a child hears, or the music of a queue. */
  another(host: ScriptHost, entry: ScriptEntry, cookies?: CookieJar): RunningScript
  emit(event: Event): void
  /** A REFER of the script's own leg, or of the child of this name. */
  referred(leg: 'self' | string, request: InboundRequest): void
}

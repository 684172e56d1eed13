import { boundedMap } from '../../core/domain/bounded-map.ts'
import type { PauseBehavior, PausedBy } from '../../core/domain/calls/recording-pauses.ts'
import type { Call } from './call.ts'

/** A recording that runs on this node, for those who stop or pause it. */
export interface LiveRecording {
  readonly call_sid: string
  /** Who has asked for its pause last; null: it records. */
  readonly paused_by: PausedBy | null
  stop(): void
  /** A pause that lasts becomes that of `by`. */
  pause(behavior: PauseBehavior, by: PausedBy): void
  /** While a secret is typed, it only becomes a pause by `key`, which ends with that. */
  resume(): void
}

/** What runs on a call beside its document. */
interface LiveActivity {
  readonly call_sid: string
  stop(): void
}

/** More commands than this do not reach calls that are about to begin. */
const MOST_HUNG_UP = 10_000

/** The live calls of this node, by sid. A call adds itself when it is created and is removed when it has ended. */
export class CallRegistry {
  readonly #calls = new Map<string, Call>()
  readonly #idle = new Set<() => void>()
  /** Calls without a leg that a command has ended. One of them may be about to begin: its media opens. */
  readonly #hungUp = boundedMap<string, true>(MOST_HUNG_UP)
  /** The recordings that run, by sid. That of a conference may outlive its call. */
  readonly recordings = new Map<string, LiveRecording>()
  /** Who keeps the recordings of a call silent, because a secret is typed. */
  readonly hushes = new Set<{ readonly call_sid: string }>()
  /** Streams, recording servers, transcriptions and subscriptions that run, by sid. */
  readonly activities = new Map<string, LiveActivity>()
  /** The subscribers to the JSON messages of a call's client, by the call's sid. */
  readonly messageListeners = new Map<string, Set<(content: string) => void>>()

  get size(): number {
    return this.#calls.size
  }

  get(sid: string): Call | undefined {
    return this.#calls.get(sid)
  }

  all(): Call[] {
    return [...this.#calls.values()]
  }

  hushed(call_sid: string): boolean {
    return [...this.hushes].some(hush => hush.call_sid === call_sid)
  }

  add(call: Call): void {
    this.#calls.set(call.sid, call)
    // The call is still being made.
    if (this.#hungUp.delete(call.sid)) queueMicrotask(() => void call.end({ cause: 'api' }))
  }

  /** Ends a call that is not in the registry, should it begin after all. */
  hangUpAtBegin(sid: string): void {
    this.#hungUp.set(sid, true)
  }

  remove(sid: string): void {
    this.#calls.delete(sid)
    if (this.#calls.size > 0) return
    for (const listener of this.#idle) listener()
    this.#idle.clear()
  }

  /** Resolves when the registry is empty. */
  whenIdle(): Promise<void> {
    if (this.#calls.size === 0) return Promise.resolve()
    return new Promise(resolve => this.#idle.add(resolve))
  }
}

import type { CallMessage } from '../core/domain/ladder/message.ts'
import type { Clock } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'
import { Sleeper } from '../core/runtime/sleeper.ts'
import { forgetOldMessages, insertMessages, insertMissingMessages } from '../core/state/calls/ladder.ts'
import type { State } from '../core/state/index.ts'

const FORGET_MS = 60_000

interface LadderKeeper {
  /** Writes messages after all earlier ones. `again`: some may exist already. Resolves to false when it failed. */
  keep(messages: readonly CallMessage[], again: boolean): Promise<boolean>
  /** Stops, and resolves when all messages given to `keep` have been written. */
  stop(): Promise<void>
}

/** Writes the SIP messages of calls through the edge `edge_id`, and deletes old ones. */
export function keepLadder(options: {
  readonly state: State
  readonly edge_id: string
  readonly log: Log
  readonly clock: Clock
}): LadderKeeper {
  const { state, edge_id, log, clock } = options
  const { db } = state
  let writing: Promise<unknown> = Promise.resolve()

  const write = async (messages: readonly CallMessage[], again: boolean): Promise<boolean> => {
    try {
      await (again ? insertMissingMessages(db, { edge_id, messages }) : insertMessages(db, { edge_id, messages }))
      return true
    } catch (err) {
      log.warn({ err, messages: messages.length }, 'SIP messages could not be kept')
      return false
    }
  }
  const forgetting = new Sleeper({
    work: goesOn => forgetOldMessages(state, clock.now(), goesOn),
    failed: err => log.warn({ err }, 'old SIP messages could not be removed'),
    every: { clock, period_ms: FORGET_MS },
  })
  return {
    keep(messages, again) {
      const written = writing.then(() => write(messages, again))
      writing = written
      return written
    },
    async stop() {
      await Promise.all([forgetting.stop(), writing])
    },
  }
}

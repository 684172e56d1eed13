import type { CallMessage } from '../core/domain/ladder/message.ts'
import type { Clock } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'
import { forgetOldMessages, insertMessages, insertMissingMessages } from '../core/state/calls/ladder.ts'
import type { Db } from '../core/state/index.ts'

const FORGET_MS = 60_000

interface LadderKeeper {
  /** Writes messages after all earlier ones. `again`: some may exist already. Resolves to false when it failed. */
  keep(messages: readonly CallMessage[], again: boolean): Promise<boolean>
  /** Stops, and resolves when all messages given to `keep` have been written. */
  stop(): Promise<void>
}

/** Writes the SIP messages of calls through the edge `edge_id`, and deletes old ones. */
export function keepLadder(options: {
  readonly db: Db
  readonly edge_id: string
  readonly log: Log
  readonly clock: Clock
}): LadderKeeper {
  const { db, edge_id, log, clock } = options
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
  const forgetting = clock.every(FORGET_MS, () => {
    forgetOldMessages(db, clock.now()).catch(err => log.warn({ err }, 'old SIP messages could not be removed'))
  })
  return {
    keep(messages, again) {
      const written = writing.then(() => write(messages, again))
      writing = written
      return written
    },
    async stop() {
      forgetting.cancel()
      await writing
    },
  }
}

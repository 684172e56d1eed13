import { createConnection, type Socket } from 'node:net'
import type { Clock, Timer } from '../core/runtime/clock.ts'
import { jsonLine, readJsonLines } from '../core/runtime/json-lines.ts'
import type { FromEdge, ToEdge } from '../core/runtime/ladder-link.ts'
import type { Log } from '../core/runtime/log.ts'
import {
  forgetOldMessages,
  insertMessages,
  insertMissingMessages,
  type NewMessage,
} from '../core/state/calls/ladder.ts'
import type { Db } from '../core/state/index.ts'

const RETRY_MS = 250
const FORGET_MS = 60_000
/** How long a node that stops waits for the last messages of its calls. */
const DRAIN_MS = 2000

export interface LadderKeeper {
  /** Resolves when the edge has given what it had, or does not answer. */
  stop(): Promise<void>
}

/** Writes the SIP messages of calls that the embedded edge hands over, and forgets old ones. */
export function keepLadder(options: {
  readonly path: string
  readonly db: Db
  /** Of the edge at the other end. */
  readonly edge_id: string
  readonly log: Log
  readonly clock: Clock
}): LadderKeeper {
  const { path, db, edge_id, log, clock } = options
  let socket: Socket | undefined
  let retry: Timer | undefined
  let stopping = false
  let drained = (): void => undefined
  let writing = Promise.resolve()

  const say = (to: Socket, message: ToEdge): void => void to.write(jsonLine(message))
  const write = async (from: Socket, { id, rows, again }: FromEdge<NewMessage> & { kind: 'rows' }): Promise<void> => {
    try {
      const messages = { edge_id, messages: rows }
      await (again ? insertMissingMessages(db, messages) : insertMessages(db, messages))
      say(from, { kind: 'kept', id })
    } catch (err) {
      log.warn({ err, messages: rows.length }, 'SIP messages could not be kept')
      say(from, { kind: 'lost', id })
    }
  }
  const connect = (): void => {
    const opened = createConnection(path)
    socket = opened
    readJsonLines(opened, value => {
      const message = value as FromEdge<NewMessage>
      if (message.kind === 'drained') drained()
      else writing = writing.then(() => write(opened, message))
    })
    opened.on('error', err => log.debug({ err }, 'the SIP edge does not hand over its messages'))
    opened.on('close', () => {
      drained()
      if (!stopping) retry = clock.after(RETRY_MS, connect)
    })
  }
  connect()
  const forgetting = clock.every(FORGET_MS, () => {
    forgetOldMessages(db, clock.now()).catch(err => log.warn({ err }, 'old SIP messages could not be removed'))
  })
  return {
    async stop() {
      stopping = true
      forgetting.cancel()
      retry?.cancel()
      if (socket?.readyState === 'open') {
        await new Promise<void>(resolve => {
          const late = clock.after(DRAIN_MS, resolve)
          drained = () => {
            late.cancel()
            resolve()
          }
          if (socket) say(socket, { kind: 'drain' })
        })
      }
      await writing
      socket?.destroy()
    },
  }
}

import { redactSip } from '../../core/domain/ladder/redact.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { Db } from '../../core/state/index.ts'
import { forgetOldMessages, insertMessages } from '../../core/state/ladder.ts'
import type { TracedMessage } from './index.ts'

const FLUSH_MS = 250
const FORGET_MS = 60_000
/** Messages that wait for the database; more are left out and counted, for traffic goes before its record. */
const MAX_WAITING = 5000
const CALL_ID = /^(?:call-id|i)[ \t]*:[ \t]*(\S+)/im
const METHOD = /^cseq[ \t]*:[ \t]*\d+[ \t]+(\w+)/im
const MAX_CALLS = 20_000

/** Tells messages of calls from keep-alives and registrations, which would drown them. */
export interface CallIds {
  /** The Call-ID of a message that belongs to a call; an OPTIONS does when an INVITE with its Call-ID came before. */
  of(text: string): string | undefined
}

export function callIds(): CallIds {
  const calls = new Set<string>()
  return {
    of(text) {
      const call_id = CALL_ID.exec(text)?.[1]
      const method = METHOD.exec(text)?.[1]?.toUpperCase()
      if (call_id === undefined || method === 'REGISTER') return undefined
      if (method === 'OPTIONS') return calls.has(call_id) ? call_id : undefined
      if (method === 'INVITE') {
        calls.add(call_id)
        if (calls.size > MAX_CALLS) calls.delete(calls.values().next().value ?? '')
      }
      return call_id
    },
  }
}

export interface LadderWriter {
  keep(message: TracedMessage): void
  /** Messages that were left out because the database could not follow. */
  readonly left_out: number
  close(): Promise<void>
}

/** Writes the SIP messages of calls to the state in batches, off the path of the messages themselves. */
export function writeLadder(db: Db, log: Log): LadderWriter {
  const ids = callIds()
  let waiting: TracedMessage[] = []
  let left_out = 0
  let writing = Promise.resolve()

  const flush = (): void => {
    const batch = waiting
    waiting = []
    const rows = batch.flatMap(message => row(message, ids))
    if (rows.length === 0) return
    writing = writing
      .then(() => insertMessages(db, rows))
      .catch(err => {
        left_out += rows.length
        log.warn({ err, messages: rows.length }, 'SIP messages could not be kept')
      })
  }
  const timers = [
    setInterval(flush, FLUSH_MS),
    setInterval(() => {
      forgetOldMessages(db, Date.now()).catch(err => log.warn({ err }, 'old SIP messages could not be removed'))
    }, FORGET_MS),
  ]
  for (const timer of timers) timer.unref()

  return {
    keep(message) {
      if (waiting.length < MAX_WAITING) waiting.push(message)
      else left_out++
    },
    get left_out() {
      return left_out
    },
    async close() {
      for (const timer of timers) clearInterval(timer)
      flush()
      await writing
    },
  }
}

function row(message: TracedMessage, ids: CallIds) {
  const text = message.raw.toString('utf8')
  const sip_call_id = ids.of(text)
  if (sip_call_id === undefined) return []
  return [
    {
      sip_call_id,
      at_ms: message.at,
      direction: message.direction,
      protocol: message.protocol,
      local: `${message.local.host}:${message.local.port}`,
      remote: `${message.remote.host}:${message.remote.port}`,
      retransmission: message.retransmission ? (1 as const) : (0 as const),
      text: redactSip(text),
    },
  ]
}

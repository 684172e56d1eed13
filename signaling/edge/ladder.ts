import { redactSip } from '../../core/domain/ladder/redact.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { Db } from '../../core/state/index.ts'
import { forgetOldMessages, insertMessages, type NewMessage } from '../../core/state/ladder.ts'
import type { TracedMessage } from './index.ts'
import type { Journal } from './journal.ts'
import { textOf } from './sip/message.ts'

const FLUSH_MS = 250
const FORGET_MS = 60_000
/** Messages that wait for the database; more are left out and counted, for traffic goes before its record. */
const MAX_WAITING = 5000
const CALL_ID = /^(?:call-id|i)[ \t]*:[ \t]*(\S+)/im
const METHOD = /^cseq[ \t]*:[ \t]*\d+[ \t]+(\w+)/im
const MAX_CALLS = 20_000

/** Tells messages of calls from keep-alives and registrations, which would drown them. */
export interface CallIds {
  /**
   * The Call-ID of a message that belongs to a call, and the method of its CSeq in upper case; an OPTIONS belongs to
   * one when an INVITE with its Call-ID came before.
   */
  of(text: string): { readonly call_id: string; readonly method: string } | undefined
}

export function callIds(): CallIds {
  const calls = new Set<string>()
  return {
    of(text) {
      const call_id = CALL_ID.exec(text)?.[1]
      const method = METHOD.exec(text)?.[1]?.toUpperCase() ?? ''
      if (call_id === undefined || method === 'REGISTER') return undefined
      if (method === 'OPTIONS' && !calls.has(call_id)) return undefined
      if (method === 'INVITE') {
        calls.add(call_id)
        if (calls.size > MAX_CALLS) calls.delete(calls.values().next().value ?? '')
      }
      return { call_id, method }
    },
  }
}

export interface LadderWriter {
  keep(message: TracedMessage): void
  /** Messages that were left out because the database could not follow. */
  readonly left_out: number
  close(): Promise<void>
}

/**
 * Writes the SIP messages of calls to the state in batches, off the path of the messages themselves. Until then those
 * that tell which calls there are stand in the journal.
 */
export function writeLadder(db: Db, journal: Journal<NewMessage>, log: Log): LadderWriter {
  const ids = callIds()
  let waiting: NewMessage[] = []
  let left_out = 0
  let writing = Promise.resolve()

  const flush = (): void => {
    const rows = waiting
    if (rows.length === 0) return
    waiting = []
    const settled = journal.settling()
    writing = writing
      .then(() => insertMessages(db, rows))
      .catch(err => {
        left_out += rows.length
        log.warn({ err, messages: rows.length }, 'SIP messages could not be kept')
      })
      .then(settled)
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
      if (waiting.length >= MAX_WAITING) {
        left_out++
        return
      }
      const of = ids.of(message.text)
      if (!of) return
      const row = rowOf(message, textOf(of.call_id))
      waiting.push(row)
      if (isDecisive(of.method, message.text)) journal.append(row)
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

/** Whether a message begins, answers or ends a call: 100 does not, nor what answers a BYE. */
function isDecisive(method: string, text: string): boolean {
  if (text.startsWith('SIP/2.0 ')) return method === 'INVITE' && !text.startsWith('SIP/2.0 100 ')
  return method === 'INVITE' || method === 'BYE' || method === 'CANCEL'
}

function rowOf(message: TracedMessage, sip_call_id: string): NewMessage {
  return {
    sip_call_id,
    at_ms: message.at,
    direction: message.direction,
    protocol: message.protocol,
    local: `${message.local.host}:${message.local.port}`,
    remote: `${message.remote.host}:${message.remote.port}`,
    retransmission: message.retransmission ? 1 : 0,
    text: redactSip(textOf(message.text)),
  }
}

import { boundedMap } from '../../core/domain/bounded-map.ts'
import { fieldReader } from '../../core/domain/ladder/field.ts'
import type { CallMessage } from '../../core/domain/ladder/message.ts'
import { redactSip } from '../../core/domain/ladder/redact.ts'
import { parseCSeq } from '../../core/domain/sip/values.ts'
import { type Clock, delay } from '../../core/runtime/clock.ts'
import type { TracedMessage } from './index.ts'
import type { Journal } from './journal.ts'
import type { NodeLink } from './node-link.ts'
import { decodedText, headInUtf8 } from './sip/message.ts'
import { inOwnMemory } from './sip/own-memory.ts'

const FLUSH_MS = 250
/** How long a stop of the process waits for the last rows. */
const CLOSE_MS = 500
/** Messages that may wait to be written. Further ones are dropped and counted, because traffic comes first. */
const MAX_WAITING = 5000
/**
 * Messages of a dialog that are kept; of those that begin, answer or end a call, as many again. A known peer may send
 * any number of requests in a call, and a reader of the ladder reads all of them.
 */
const MAX_OF_DIALOG = 1000
const callId = fieldReader('call-id', 'i')
const cseq = fieldReader('cseq')
const MAX_CALLS = 20_000

/** Separates the messages of calls from keep-alives and registrations, which are far more frequent. */
export interface CallIds {
  /**
   * Returns the Call-ID of a message and the method of its CSeq in upper case; undefined when the message belongs to no
   * call. An OPTIONS belongs to a call when an INVITE with the same Call-ID came before.
   */
  of(text: string): { readonly call_id: string; readonly method: string } | undefined
}

export function callIds(): CallIds {
  const calls = boundedMap<string, true>(MAX_CALLS)
  return {
    of(text) {
      const call_id = callId(text)
      const method = parseCSeq(cseq(text) ?? '')?.method.toUpperCase() ?? ''
      if (call_id === null || call_id === '' || method === 'REGISTER') return undefined
      if (method === 'OPTIONS' && !calls.has(call_id)) return undefined
      if (method === 'INVITE') calls.set(inOwnMemory(call_id), true)
      return { call_id, method }
    },
  }
}

export interface LadderWriter {
  keep(message: TracedMessage): void
  /** Messages that were dropped because the writer was too slow, or their dialog had too many. */
  readonly left_out: number
  close(): Promise<void>
}

/**
 * Sends the SIP messages of calls in batches to the node, which writes them. Messages are delivered to peers without
 * waiting for this. Messages that begin, answer or end a call are in the journal until the node has written them.
 * `left` are the messages that the last run could not hand over.
 */
export function writeLadder(
  node: Pick<NodeLink, 'give' | 'onDrain'>,
  journal: Journal<CallMessage>,
  left: readonly CallMessage[],
  clock: Clock,
): LadderWriter {
  const ids = callIds()
  const kept = boundedMap<string, { messages: number }>(MAX_CALLS)
  let waiting: CallMessage[] = [...left]
  for (const row of left) journal.append(row)
  let again = left.length > 0
  let left_out = 0
  let writing: Promise<void> | undefined

  const write = async (): Promise<void> => {
    const rows = waiting
    waiting = []
    const settled = journal.settling()
    const known_in_part = again
    again = false
    if (!(await node.give(rows, known_in_part))) left_out += rows.length
    settled()
    writing = undefined
  }
  const flush = (): void => {
    if (!writing && waiting.length > 0) writing = write()
  }
  const drain = async (): Promise<void> => {
    for (flush(); writing; flush()) await writing
  }
  node.onDrain = drain
  const timer = clock.every(FLUSH_MS, flush)

  return {
    keep(message) {
      if (waiting.length >= MAX_WAITING) {
        left_out++
        return
      }
      const of = ids.of(message.text)
      if (!of) return
      const decisive = isDecisive(of.method, message.text)
      // Each message comes here, and to replace a value of this map takes several times as long as to find it.
      const known = kept.get(of.call_id)
      if (known && known.messages >= (decisive ? 2 * MAX_OF_DIALOG : MAX_OF_DIALOG)) {
        left_out++
        return
      }
      if (known) known.messages++
      else kept.set(inOwnMemory(of.call_id), { messages: 1 })
      const row = rowOf(message, decodedText(headInUtf8(of.call_id)))
      waiting.push(row)
      if (decisive) journal.append(row)
    },
    get left_out() {
      return left_out
    },
    // The node stops before the edge and drains these messages first. Later messages stay in the journal.
    async close() {
      timer.cancel()
      await Promise.race([drain(), delay(clock, CLOSE_MS)])
    },
  }
}

/** Whether a message begins, answers or ends a call. A 100 and a response to BYE do not. */
function isDecisive(method: string, text: string): boolean {
  if (text.startsWith('SIP/2.0 ')) return method === 'INVITE' && !text.startsWith('SIP/2.0 100 ')
  return method === 'INVITE' || method === 'BYE' || method === 'CANCEL'
}

function rowOf(message: TracedMessage, sip_call_id: string): CallMessage {
  return {
    sip_call_id,
    at_ms: message.at,
    direction: message.direction,
    protocol: message.protocol,
    local: `${message.local.host}:${message.local.port}`,
    remote: `${message.remote.host}:${message.remote.port}`,
    retransmission: message.retransmission ? 1 : 0,
    text: redactSip(decodedText(headInUtf8(message.text))),
  }
}

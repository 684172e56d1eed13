import { uriHost } from '../../../core/domain/identity/address.ts'
import { newUuid } from '../sip/ids.ts'
import { headInUtf8 } from '../sip/message.ts'
import type { Listener } from '../transport/types.ts'

// Payloads that the edge sends. Clients read fields by position, see drachtio-control-protocol.md §6.

/** The facts about a SIP message in the meta line. */
export interface WireFacts {
  readonly bytes: number
  readonly protocol: string
  readonly host: string
  readonly port: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

const CRLF = '\r\n'

export function plainReply(request_id: string, verdict: 'OK' | 'NO' | 'NOK', ...fields: readonly string[]): string {
  const tail = fields.length === 0 ? '' : `|${fields.join('|')}`
  return `${newUuid()}|response|${request_id}|${verdict}${tail}`
}

/** The reply to a command that sent a request. Field 10 is the transaction id. */
export function requestSentReply(request_id: string, wire: WireFacts, transaction_id: string, text: string): string {
  return `${newUuid()}|response|${request_id}|OK|application|${facts(wire)}|${transaction_id}|Msg sent:|${CRLF}${text}`
}

/** The reply to a command that sent a response. Field 10 is the transaction id, field 11 the dialog id. */
export function responseSentReply(
  request_id: string,
  wire: WireFacts,
  transaction_id: string,
  dialog_id: string,
  text: string,
): string {
  return `${newUuid()}|response|${request_id}|OK|application|${facts(wire)}|${transaction_id}|${dialog_id}||Msg sent:|${CRLF}${text}`
}

/** An out-of-dialog request, with the listening point that received it. */
export function newRequestMessage(wire: WireFacts, transaction_id: string, on: Listener, text: string): string {
  return `${newUuid()}|sip|network|${facts(wire)}|${transaction_id}||${on.advertised_host}|${on.port}|${CRLF}${headInUtf8(text)}`
}

/** A request in a dialog, a CANCEL or a response. */
export function dialogMessage(wire: WireFacts, transaction_id: string, dialog_id: string, text: string): string {
  return `${newUuid()}|sip|network|${facts(wire)}|${transaction_id}|${dialog_id}|${CRLF}${headInUtf8(text)}`
}

/** A BYE that the edge sent on its own initiative. */
export function unsolicitedMessage(wire: WireFacts, dialog_id: string, text: string): string {
  return `${newUuid()}|sip|application|${facts(wire)}|unsolicited|${dialog_id}|${CRLF}${text}`
}

/** Returns `proto/host:port` of each listening point, separated by commas. */
export function hostPorts(listeners: readonly Listener[], which: 'advertised' | 'bound'): string {
  const order = [...listeners].sort((a, b) => RANK.indexOf(a.protocol) - RANK.indexOf(b.protocol))
  return order.map(l => `${l.protocol}/${uriHost(which === 'bound' ? l.host : l.advertised_host)}:${l.port}`).join(',')
}

const RANK: readonly string[] = ['wss', 'ws', 'tls', 'tcp', 'udp']

function facts(w: WireFacts): string {
  return `${w.bytes}|${w.protocol}|${w.host}|${w.port}|${timeOfDay(w.at)}`
}

let last_second = -1
let last_text = ''

/** Formats a time as `HH:MM:SS.uuuuuu` in UTC. */
export function timeOfDay(at: number): string {
  const second = Math.floor(at / 1000)
  if (second !== last_second) {
    last_second = second
    last_text = new Date(second * 1000).toISOString().slice(11, 19)
  }
  const micros = Math.floor((at - second * 1000) * 1000)
  return `${last_text}.${String(micros).padStart(6, '0')}`
}

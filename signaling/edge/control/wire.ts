import { uriHost } from '../../../core/domain/identity/address.ts'
import { newUuid } from '../sip/ids.ts'
import type { Listener } from '../transport/types.ts'

// Payloads that the server sends. The positions of the fields are the protocol: see drachtio-control-protocol.md §6.

/** Facts about a message on the wire, as the meta line shows them. */
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

/** Reply to a command that sent a request: field 10 is the transaction id. */
export function requestSentReply(request_id: string, wire: WireFacts, transaction_id: string, text: string): string {
  return `${newUuid()}|response|${request_id}|OK|application|${facts(wire)}|${transaction_id}|Msg sent:|${CRLF}${text}`
}

/** Reply to a command that sent a response: field 10 is the transaction id, field 11 the dialog id. */
export function responseSentReply(
  request_id: string,
  wire: WireFacts,
  transaction_id: string,
  dialog_id: string,
  text: string,
): string {
  return `${newUuid()}|response|${request_id}|OK|application|${facts(wire)}|${transaction_id}|${dialog_id}||Msg sent:|${CRLF}${text}`
}

/** A final response of a proxied request; more replies to the same command follow. */
export function proxyResponseReply(request_id: string, wire: WireFacts, text: string): string {
  return `${newUuid()}|response|${request_id}|OK|network|${facts(wire)}|||continue${CRLF}${text}`
}

/** A request outside any dialog, with the listening point that took it. */
export function newRequestMessage(wire: WireFacts, transaction_id: string, on: Listener, text: string): string {
  return `${newUuid()}|sip|network|${facts(wire)}|${transaction_id}||${on.advertised_host}|${on.port}|${CRLF}${text}`
}

/** A request inside a dialog, a CANCEL or a response. */
export function dialogMessage(wire: WireFacts, transaction_id: string, dialog_id: string, text: string): string {
  return `${newUuid()}|sip|network|${facts(wire)}|${transaction_id}|${dialog_id}|${CRLF}${text}`
}

/** A BYE that the server sent by itself. */
export function unsolicitedMessage(wire: WireFacts, dialog_id: string, text: string): string {
  return `${newUuid()}|sip|application|${facts(wire)}|unsolicited|${dialog_id}|${CRLF}${text}`
}

/** A call-record event; `detail` is the role of a start and the reason of a stop. */
export function cdrMessage(
  event: string,
  source: 'network' | 'application',
  at: number,
  detail: string | undefined,
  text: string,
): string {
  const tail = detail === undefined ? '' : `|${detail}`
  return `${newUuid()}|cdr:${event}|${source}|${timeOfDay(at)}${tail}${CRLF}${text}`
}

/** `proto/host:port` of each listening point, comma separated. */
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

/** `HH:MM:SS.uuuuuu` in UTC. */
export function timeOfDay(at: number): string {
  const second = Math.floor(at / 1000)
  if (second !== last_second) {
    last_second = second
    last_text = new Date(second * 1000).toISOString().slice(11, 19)
  }
  const micros = Math.floor((at - second * 1000) * 1000)
  return `${last_text}.${String(micros).padStart(6, '0')}`
}

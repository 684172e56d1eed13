import { CREDENTIALS_HEADER } from '../../../core/runtime/sip/authorizer.ts'
import { headerId, isToken, valueIn } from '../sip/headers.ts'

// Parses the commands of applications.

/** The SIP part of a command. Header names are as the client wrote them. Malformed lines are omitted. */
export interface CommandMessage {
  /** Empty in a response. */
  readonly method: string
  readonly uri: string
  /** 0 in a request. */
  readonly status: number
  readonly reason: string
  readonly start_line: string
  readonly headers: readonly { readonly id: string; readonly name: string; readonly value: string }[]
  readonly body: string
  /** Answers challenges within the dialog. Kept apart from the headers, so that it never leaves the edge. */
  readonly credentials?: string | undefined
}

const CREDENTIALS = CREDENTIALS_HEADER.toLowerCase()

/** Splits a payload into its meta fields and its SIP text. */
export function splitPayload(payload: string): { readonly fields: readonly string[]; readonly text: string } {
  const end = payload.indexOf('\r\n')
  if (end < 0) return { fields: payload.split('|'), text: '' }
  return { fields: payload.slice(0, end).split('|'), text: payload.slice(end + 2) }
}

/**
 * Parses the SIP text of a command. The client's Content-Length counts UTF-16 units, so it is ignored: the body is
 * everything after the empty line. Returns undefined when the start line is malformed.
 */
export function parseCommandMessage(text: string): CommandMessage | undefined {
  const line_end = text.indexOf('\r\n')
  const start = line_end < 0 ? text : text.slice(0, line_end)
  const empty = text.indexOf('\r\n\r\n')
  const head_end = empty < 0 ? text.length : empty
  const headers: { id: string; name: string; value: string }[] = []
  let credentials: string | undefined
  let at = line_end < 0 ? text.length : line_end + 2
  while (at < head_end) {
    let end = text.indexOf('\r\n', at)
    if (end < 0 || end > head_end) end = head_end
    const colon = text.indexOf(':', at)
    if (colon > at && colon < end) {
      const name = valueIn(text, at, colon)
      const id = headerId(name)
      const value = valueIn(text, colon + 1, end)
      if (id === CREDENTIALS) credentials = value
      else if (isToken(name)) headers.push({ id, name, value })
    }
    at = end + 2
  }
  const body = empty < 0 ? '' : text.slice(empty + 4)
  if (start.startsWith('SIP/2.0 ')) {
    const status = Number(start.slice(8, 11))
    if (!Number.isInteger(status) || status < 100 || status > 699) return undefined
    return {
      method: '',
      uri: '',
      status,
      reason: start.slice(12).trim(),
      start_line: start,
      headers,
      body,
      credentials,
    }
  }
  const first = start.indexOf(' ')
  const last = start.lastIndexOf(' ')
  if (first <= 0 || last <= first || start.slice(last + 1) !== 'SIP/2.0') return undefined
  const method = start.slice(0, first)
  if (!isToken(method)) return undefined
  const uri = start.slice(first + 1, last)
  return { method, uri, status: 0, reason: '', start_line: start, headers, body, credentials }
}

/** Returns the first value of a header in a command. */
export function commandHeader(message: CommandMessage, id: string): string | undefined {
  for (const h of message.headers) if (h.id === id) return h.value
  return undefined
}

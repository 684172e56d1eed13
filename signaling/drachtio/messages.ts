import { type BodyReading, readBody } from '../../core/domain/sip/body.ts'
import { parseVia, splitList } from '../../core/domain/sip/uri.ts'
import { CREDENTIALS_HEADER } from '../../core/runtime/sip/authorizer.ts'
import { type LibraryMessage, type LibraryRequest, type LibraryResponse, statusTexts } from './library.ts'
import type { Headers, SipRequest, SipResponse, Source, Transport } from './types.ts'

/** Converts the library's messages, and sanitizes what we send: never a line break within a value (threats §2.8). */

const TRANSPORTS: readonly string[] = ['udp', 'tcp', 'tls', 'ws', 'wss']

/** drachtio-server reports `tcp` for ws and `tls` for wss. */
const CARRIED_BY: Readonly<Record<string, string>> = { ws: 'tcp', wss: 'tls' }

/** Returns the transport that the server reports, or the WebSocket that the topmost Via names over it. */
function transportOf(protocol: string, via: string): Transport {
  const named = protocol === 'udp' ? '' : (parseVia(splitList(via)[0] ?? '')?.transport ?? '')
  const transport = CARRIED_BY[named] === protocol ? named : protocol
  return (TRANSPORTS.includes(transport) ? transport : 'udp') as Transport
}

const sourceOf = (message: LibraryRequest | LibraryResponse): Source => ({
  address: message.source_address.replace(/^\[|\]$/g, ''),
  port: message.source_port,
  transport: transportOf(message.protocol, message.get('via') ?? ''),
})

/** Returns the values by names in lower case. The first of two spellings of a name wins. */
function byName(headers: Headers): Map<string, string> {
  const values = new Map<string, string>()
  for (const name in headers) {
    const id = name.toLowerCase()
    if (!values.has(id)) values.set(id, headers[name] ?? '')
  }
  return values
}

function read(message: LibraryMessage) {
  const { headers } = message
  // Built on first use: about a dozen headers are read of an INVITE, and none of most responses.
  let by_name: Map<string, string> | null = null
  const header = (name: string): string | null => {
    by_name ??= byName(headers)
    return by_name.get(name) ?? by_name.get(name.toLowerCase()) ?? null
  }
  const body = message.body ?? ''
  let usual: BodyReading | null = null
  const read = (understood?: ReadonlySet<string>): BodyReading =>
    readBody(
      body,
      {
        type: header('content-type') ?? header('c'),
        disposition: header('content-disposition'),
        // The library takes `e` for another header.
        encoding: header('content-encoding') ?? header('contact-encoding') ?? header('e'),
        transfer_encoding: header('content-transfer-encoding'),
      },
      understood,
    )
  return {
    call_id: message.get('call-id') ?? '',
    header,
    headers,
    body,
    content(understood?: ReadonlySet<string>): BodyReading {
      if (understood) return read(understood)
      usual ??= read()
      return usual
    },
  }
}

export const requestView = (request: LibraryRequest): SipRequest => ({
  ...read(request),
  method: request.method,
  uri: request.uri,
  received_on: request.receivedOn?.replace(/:\d+$/, ''),
  source: sourceOf(request),
})

export const responseView = (response: LibraryResponse): SipResponse => ({
  ...read(response),
  status: response.status,
  reason: response.reason,
  source: sourceOf(response),
})

/**
 * The library sets From, To, Call-ID and CSeq. Setting them here would append to its values (its defect 8). The
 * credentials of a dialog are the stack's to hand over.
 */
const RESERVED = new Set(['from', 'to', 'call-id', 'cseq', 'via', 'content-length', CREDENTIALS_HEADER.toLowerCase()])

export function outgoing(headers: Headers | undefined, options: { readonly initial: boolean }): Record<string, string> {
  const clean: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (!/^[A-Za-z0-9.!%*_+`'~-]+$/.test(name)) continue
    if (RESERVED.has(name.toLowerCase()) && !(options.initial && /^(from|to|call-id)$/i.test(name))) continue
    clean[name] = oneLine(value)
  }
  return clean
}

/** Builds the WWW-Authenticate headers as one value of several lines, because the library joins repeats by commas. */
export const challengeHeaders = (challenges: readonly string[]): Record<string, string> =>
  challenges.length === 0 ? {} : { 'WWW-Authenticate': challenges.map(oneLine).join('\r\nWWW-Authenticate: ') }

const oneLine = (value: string): string => value.replace(/[\r\n\0]+/g, ' ').trim()

/**
 * Returns a status code that the library can send. Codes of a far end pass unchanged; one that the library's table
 * lacks is added to it. An invalid code becomes 500.
 */
export function sendableStatus(status: number): number {
  if (!Number.isInteger(status) || status < 100 || status > 699) return 500
  statusTexts[status] ??= REGISTERED[status] ?? 'Unknown'
  return status
}

/** Codes of the IANA registry that the library's table lacks. */
const REGISTERED: Readonly<Record<number, string>> = {
  425: 'Bad Alert Message',
  440: 'Max-Breadth Exceeded',
  469: 'Bad Info Package',
  555: 'Push Notification Service Not Supported',
  607: 'Unwanted',
  608: 'Rejected',
}

export const statusText = (status: number): string => statusTexts[status] ?? 'Unknown'

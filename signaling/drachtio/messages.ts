import { type LibraryMessage, type LibraryRequest, type LibraryResponse, statusTexts } from './library.ts'
import type { Headers, SipRequest, SipResponse, Source, Transport } from './types.ts'

/** Views of the library's messages, and what we let into a message: never a line break (threats §2.8). */

const TRANSPORTS: readonly string[] = ['udp', 'tcp', 'tls', 'ws', 'wss']

/** drachtio-server says `tcp` for ws and `tls` for wss. */
const CARRIED_BY: Readonly<Record<string, string>> = { ws: 'tcp', wss: 'tls' }

/** How a message came: as the server says, except where its topmost Via tells a WebSocket from what carries it. */
function transportOf(protocol: string, via: string): Transport {
  const named = /^\s*SIP\s*\/\s*2\.0\s*\/\s*(WSS?)\b/i.exec(via)?.[1]?.toLowerCase() ?? ''
  const transport = CARRIED_BY[named] === protocol ? named : protocol
  return (TRANSPORTS.includes(transport) ? transport : 'udp') as Transport
}

const sourceOf = (message: LibraryRequest | LibraryResponse): Source => ({
  address: message.source_address.replace(/^\[|\]$/g, ''),
  port: message.source_port,
  transport: transportOf(message.protocol, message.get('via') ?? ''),
})

function read(message: LibraryMessage) {
  // An INVITE is asked for a dozen headers, most answers for none.
  let by_name: Map<string, string> | null = null
  return {
    call_id: message.get('call-id') ?? '',
    header(name: string): string | null {
      // Of two spellings of one name the first counts.
      by_name ??= new Map(
        Object.entries(message.headers)
          .reverse()
          .map(([known, value]) => [known.toLowerCase(), value]),
      )
      return by_name.get(name.toLowerCase()) ?? null
    },
    headers: message.headers,
    body: message.body ?? '',
  }
}

export const requestView = (request: LibraryRequest): SipRequest => ({
  ...read(request),
  method: request.method,
  uri: request.uri,
  source: sourceOf(request),
})

export const responseView = (response: LibraryResponse): SipResponse => ({
  ...read(response),
  status: response.status,
  reason: response.reason,
  source: sourceOf(response),
})

/** From, To, Call-ID and CSeq are the library's: setting them would append to what is there (its defect 8). */
const RESERVED = new Set(['from', 'to', 'call-id', 'cseq', 'via', 'content-length'])

export function outgoing(headers: Headers | undefined, options: { readonly initial: boolean }): Record<string, string> {
  const clean: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (!/^[A-Za-z0-9.!%*_+`'~-]+$/.test(name)) continue
    if (RESERVED.has(name.toLowerCase()) && !(options.initial && /^(from|to|call-id)$/i.test(name))) continue
    clean[name] = oneLine(value)
  }
  return clean
}

/** The library joins repeated headers by commas; the lines of this one go through it as the lines of one value. */
export const challengeHeaders = (challenges: readonly string[]): Record<string, string> =>
  challenges.length === 0 ? {} : { 'WWW-Authenticate': challenges.map(oneLine).join('\r\nWWW-Authenticate: ') }

const oneLine = (value: string): string => value.replace(/[\r\n\0]+/g, ' ').trim()

/**
 * The library sends only what is in its table, a far end may say anything from 300 to 699, and codes pass as they are:
 * those that are missing are added. What is no status code at all is sent as 500.
 */
export function sendableStatus(status: number): number {
  if (!Number.isInteger(status) || status < 100 || status > 699) return 500
  statusTexts[status] ??= REGISTERED[status] ?? 'Unknown'
  return status
}

/** Of IANA's registry, what the library does not have. */
const REGISTERED: Readonly<Record<number, string>> = {
  425: 'Bad Alert Message',
  440: 'Max-Breadth Exceeded',
  469: 'Bad Info Package',
  555: 'Push Notification Service Not Supported',
  607: 'Unwanted',
  608: 'Rejected',
}

export const statusText = (status: number): string => statusTexts[status] ?? 'Unknown'

import { boundedMap } from '../../../core/domain/bounded-map.ts'
import { parseAuthorization } from '../../../core/domain/identity/index.ts'
import { readSeconds } from '../../../core/domain/sip/values.ts'
import type { Clock } from '../../../core/runtime/clock.ts'
import type { Draft, SipMessage } from '../sip/message.ts'
import { parseNameAddress, parseUri, type SipUri, splitList, valueParams } from '../sip/uri.ts'
import type { NextHop } from '../stack.ts'
import type { StreamConnection } from '../transport/connection.ts'
import type { Received } from '../transport/types.ts'

// Contacts whose REGISTER or SUBSCRIBE came over a connection. Requests to such a contact go back over that connection,
// whatever port the contact names (in the spirit of RFC 5626).

const MAX_BINDINGS = 20_000

type Binding = { connection: StreamConnection; until: number }

export class ContactBindings {
  readonly #clock: Clock
  readonly #by_contact = boundedMap<string, Binding>(MAX_BINDINGS)
  /** The WebSocket over which a user registered a contact last. */
  readonly #web = boundedMap<string, StreamConnection>(MAX_BINDINGS)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#by_contact.size
  }

  bind(request: SipMessage, received: Received, response: Draft): void {
    const { connection } = received
    if (!connection || (request.method !== 'REGISTER' && request.method !== 'SUBSCRIBE')) return
    const general = readSeconds(response.get('expires') ?? request.get('expires')) ?? 3_600
    for (const value of request.list('contact')) {
      const contact = parseNameAddress(value)?.uri ?? ''
      const uri = parseUri(contact)
      if (!uri) continue
      const granted = expiresOf(response, uri)
      const seconds = granted ?? readSeconds(valueParams(value).get('expires')) ?? general
      const key = keyOf(uri)
      const until = this.#clock.monotonic_ms() + seconds * 1000
      const owned = `${ownerOf(request)} ${contact}`
      if (seconds === 0 && this.#web.get(owned) === connection) this.#web.delete(owned)
      if (seconds === 0) this.#by_contact.delete(key)
      else this.#by_contact.set(key, { connection, until })
      // Only what the registrar has granted keeps a connection: strangers may subscribe, too.
      if (!granted || request.method !== 'REGISTER') continue
      connection.wanted_until = Math.max(connection.wanted_until, until)
      this.#replace(owned, connection)
    }
  }

  // A browser that lost its WebSocket opens another and registers the same contact again. We send its calls' requests
  // there, because we cannot connect to a browser. Two users may choose the same contact: the key holds the owner, whom
  // the registrar has verified.
  #replace(key: string, connection: StreamConnection): void {
    if ((connection.protocol !== 'ws' && connection.protocol !== 'wss') || connection.lent) return
    const before = this.#web.get(key)
    // Only a later connection succeeds, so that no two succeed each other.
    if (before && before.id < connection.id) {
      before.successor = connection
      before.wanted_until = 0
    }
    this.#web.set(key, connection)
  }

  hopFor(uri: SipUri): NextHop | undefined {
    if (uri.user === undefined) return undefined
    const key = keyOf(uri)
    const found = this.#by_contact.get(key)
    if (!found) return undefined
    if (!found.connection.takes_requests || found.until < this.#clock.monotonic_ms()) {
      this.#by_contact.delete(key)
      return undefined
    }
    const { connection } = found
    const { host, port } = connection.remote
    return { destination: { protocol: connection.protocol, host, port, connection } }
  }
}

/** Returns whose contacts a REGISTER changes: the domain, the address, and the user whose password it has. */
function ownerOf(request: SipMessage): string {
  const to = parseUri(parseNameAddress(request.get('to') ?? '')?.uri ?? '')
  const credentials = parseAuthorization(request.get('authorization')?.trim() ?? '')
  const domain = parseUri(request.uri)?.host.toLowerCase()
  return JSON.stringify([domain, to && keyOf(to), credentials?.realm, credentials?.username])
}

function keyOf(uri: SipUri): string {
  return `${uri.user ?? ''}@${uri.host.toLowerCase()}`
}

// Returns the lifetime that the registrar's answer grants the contact; undefined when it grants none.
function expiresOf(response: Draft, uri: SipUri): number | undefined {
  for (const h of response.headers) {
    if (h.id !== 'contact') continue
    for (const value of splitList(h.value)) {
      const address = parseNameAddress(value)
      const theirs = address ? parseUri(address.uri) : undefined
      if (!address || !theirs || keyOf(theirs) !== keyOf(uri)) continue
      const seconds = readSeconds(address.params.get('expires'))
      if (seconds !== null) return seconds
    }
  }
  return undefined
}

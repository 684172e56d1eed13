import { uriHost } from '../../core/domain/identity/index.ts'
import { createAddressGuard } from '../../core/domain/network/address-guard.ts'
import { MACHINE_PARAMETER } from '../../core/domain/network/next-hop.ts'
import {
  type AddressFacts,
  type AddressOwner,
  addressRefusal,
  carrierFacts,
  type HostPort,
  type OwnListeners,
} from '../../core/domain/network/peer-addresses.ts'
import {
  type TlsVerification,
  VERIFICATION_PARAMETER,
  verificationText,
} from '../../core/domain/network/tls-verification.ts'
import { parseUri } from '../../core/domain/sip/uri.ts'
import type { Clock, Timer } from '../../core/runtime/clock.ts'
import { addressesOf, type Config } from '../../core/runtime/config.ts'
import {
  type Destination,
  type DnsSource,
  type Located,
  Locator,
  protocolOf,
  systemDns,
} from '../../core/runtime/sip/locate.ts'
import { literalOf, ownListeners } from '../../core/runtime/sip/own-listeners.ts'
import type { SipStack } from '../drachtio/types.ts'
import { targetUri } from './health.ts'
import type { Snapshot } from './snapshot.ts'

/** The destination of a request, before it is resolved and checked. */
export interface AddressAsked extends Partial<AddressOwner> {
  readonly uri: string
  /** The next hop, when it differs from `uri`. */
  readonly proxy?: string
  readonly tls?: TlsVerification | undefined
}

/** A located address. */
interface LocatedAddress extends Destination {
  /** The machine whose edge has the flow; unset: any edge reaches it. */
  readonly machine_id?: string | undefined
}

/** A checked address. The request goes there, even if the name resolves differently by then. */
export interface CheckedAddress extends LocatedAddress {
  /** The address as a URI for the SIP server. */
  readonly proxy: string
}

type FoundAddresses =
  | { readonly kind: 'found'; readonly addresses: readonly CheckedAddress[] }
  /**
   * We may not send to any of its addresses. `detail` says why, for people. `unverified`: only because the SIP server
   * cannot verify the certificate.
   */
  | { readonly kind: 'refused'; readonly detail: string; readonly unverified: boolean }
  | { readonly kind: 'failed'; readonly detail: string }

/** The period of DNS look-ups of carriers' targets, whose addresses count as carriers' addresses. */
const LEARN_MS = 30_000
/** The number of addresses to try; a name may have hundreds. */
const MAX_ADDRESSES = 8

const FAILURES = {
  dns: 'no record for it',
  scheme: 'it is no SIP address that can be reached',
  transport: 'its transport is not served',
  family: 'it has only addresses of a family (IPv4 or IPv6) that this platform does not use',
} as const

/**
 * The only guard of outgoing requests (design section 10). It resolves and checks every address that a customer names,
 * and the request goes to exactly the address that it checked.
 */
export class PeerAddresses {
  readonly #locator: Locator
  readonly #snapshot: () => Snapshot
  readonly #sip: Pick<SipStack, 'verifies_targets'>
  readonly #own: OwnListeners
  readonly #addresses: AddressFacts['addresses']
  readonly #learned = new Map<string, readonly HostPort[]>()
  readonly #learning: Timer
  #facts: { readonly of: Snapshot; readonly facts: AddressFacts } | null = null

  constructor(options: {
    readonly config: Config
    readonly clock: Clock
    readonly snapshot: () => Snapshot
    readonly sip: Pick<SipStack, 'verifies_targets'>
    readonly dns?: DnsSource
  }) {
    const { config, clock, snapshot, sip, dns = systemDns() } = options
    const families = addressesOf(config).map(({ host }) => host.includes(':'))
    this.#snapshot = snapshot
    this.#sip = sip
    this.#own = ownListeners(config)
    this.#addresses = createAddressGuard(config.allow_private_peers)
    this.#locator = new Locator({
      clock,
      dns,
      random: Math.random,
      // Only the SIP server knows which transports it serves. One that it lacks fails the attempt.
      serves: () => true,
      servesFamily: (_protocol, host) => families.includes(host.includes(':')),
      first_family: families[0] ? 'ipv6' : 'ipv4',
    })
    this.#learning = clock.every(LEARN_MS, () => void this.learn())
  }

  /** Returns the addresses of a target to which we may send, in the order to try them. */
  async find(asked: AddressAsked): Promise<FoundAddresses> {
    const located: LocatedAddress[] = []
    for (const { uri, tls, machine_id } of urisOf(asked)) {
      const found = await this.#locate(uri)
      if (found.kind === 'found') located.push(...found.destinations.map(found => ({ ...found, tls, machine_id })))
      else if (located.length === 0) return { kind: 'failed', detail: FAILURES[found.why] }
    }
    const facts = this.#current()
    const wanted = { carrier_id: asked.carrier_id ?? null, proven_host: asked.proven_host ?? null }
    const allowed: CheckedAddress[] = []
    let refusal: { readonly detail: string; readonly unverified: boolean } | null = null
    for (const destination of located) {
      const denied = addressRefusal(facts, destination, wanted)
      const why = denied ?? this.#unproven(destination)
      if (why === null) allowed.push({ ...destination, proxy: this.#proxyOf(destination) })
      else refusal ??= { detail: why, unverified: denied === null }
    }
    if (allowed.length > 0) return { kind: 'found', addresses: allowed.slice(0, MAX_ADDRESSES) }
    return { kind: 'refused', ...(refusal ?? { detail: FAILURES.dns, unverified: false }) }
  }

  /** Returns why the target's identity cannot be verified by TLS; null when it can be, or need not be. */
  #unproven({ host, port, protocol, tls }: Destination): string | null {
    const must = (protocol === 'tls' || protocol === 'wss') && tls?.mode !== 'off' && tls?.mode !== 'flow'
    if (!must || this.#sip.verifies_targets) return null
    return `a drachtio-server does not verify the certificate of ${host}:${port}; tls_verification "off" allows that`
  }

  /** Returns the first address of a media host to which we may send; null for none. */
  async mediaAddress(host: string, port: number, asked: Partial<AddressOwner>): Promise<string | null> {
    const found = await this.find({ uri: `sip:${uriHost(host)}:${port};transport=udp`, ...asked })
    return found.kind === 'found' ? (found.addresses[0]?.host ?? null) : null
  }

  #proxyOf({ host, port, protocol, tls, machine_id }: LocatedAddress): string {
    const by = machine_id && this.#sip.verifies_targets ? `;${MACHINE_PARAMETER}=${machine_id}` : ''
    const verified = protocol === 'tls' && tls && this.#sip.verifies_targets
    const how = verified ? `;${VERIFICATION_PARAMETER}=${verificationText(tls)}` : ''
    return `sip:${uriHost(host)}:${port};transport=${protocol}${how}${by}`
  }

  answered(address: Destination): void {
    this.#locator.answered(address)
  }

  /** Reports an address that was silent, unreachable or answered 503. It is tried last for a while. */
  failedAt(address: Destination): void {
    this.#locator.failedAt(address)
  }

  /** Resolves the names of carriers' targets. Known addresses are kept when DNS fails. */
  async learn(): Promise<void> {
    const before = JSON.stringify([...this.#learned])
    const wanted = [...this.#snapshot().carriers.values()].flatMap(({ targets }) =>
      targets.map(target => targetUri(target.uri, target.transport)),
    )
    for (const known of this.#learned.keys()) if (!wanted.includes(known)) this.#learned.delete(known)
    await Promise.all(
      wanted.map(async uri => {
        const found = await this.#locate(uri)
        if (found.kind === 'found') this.#learned.set(uri, found.destinations)
      }),
    )
    if (JSON.stringify([...this.#learned]) !== before) this.#facts = null
  }

  stop(): void {
    this.#learning.cancel()
  }

  #current(): AddressFacts {
    const snapshot = this.#snapshot()
    if (this.#facts?.of === snapshot) return this.#facts.facts
    const carriers = [...snapshot.carriers.values()].map(({ id, sources, targets }) => {
      const uris = targets.map(target => targetUri(target.uri, target.transport))
      return { id, sources, endpoints: uris.flatMap(uri => this.#learned.get(uri) ?? literalOf(uri)) }
    })
    const facts = { own: this.#own, addresses: this.#addresses, ...carrierFacts(this.#own, carriers) }
    this.#facts = { of: snapshot, facts }
    return facts
  }

  #locate(text: string): Promise<Located> {
    const uri = parseUri(text)
    if (!uri) return Promise.resolve({ kind: 'failed', why: 'scheme' })
    return new Promise(resolve => this.#locator.locate(uri, resolve))
  }
}

/**
 * Returns the URIs to resolve. Requests to a registered contact use the connection that registered it. If that is gone,
 * they go to the contact's own address, provided that it has the same host.
 */
function urisOf({
  uri,
  proxy,
  tls,
}: AddressAsked): (Pick<LocatedAddress, 'tls' | 'machine_id'> & { readonly uri: string })[] {
  if (proxy === undefined) return [{ uri, tls }]
  const [by, own] = [parseUri(proxy), parseUri(uri)]
  const stream = by && ['tcp', 'tls'].includes(protocolOf(by) ?? 'udp')
  const flow = { uri: proxy, tls: { mode: 'flow' }, machine_id: by?.params.get(MACHINE_PARAMETER) } as const
  return stream && own?.host === by.host ? [flow, { uri }] : [flow]
}

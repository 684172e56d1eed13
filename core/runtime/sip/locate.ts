import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { boundedMap } from '../../domain/bounded-map.ts'
import type { TlsVerification } from '../../domain/network/tls-verification.ts'
import { orderByPriority } from '../../domain/routing/order.ts'
import type { SipUri } from '../../domain/sip/uri.ts'
import type { Clock } from '../clock.ts'

// Locates the destinations of a SIP URI: RFC 3263 with NAPTR, SRV, A and AAAA. Literal addresses resolve synchronously.
// An address that failed lately is tried last but never omitted. Answers are cached; stale ones are used when DNS
// fails. `maddr` is ignored (docs/calls.md), because it would bypass the checks of the host.

/** The transports of RFC 3261 and RFC 7118. */
export type Protocol = 'udp' | 'tcp' | 'tls' | 'ws' | 'wss'

/** A resolved address. */
export interface Destination {
  readonly protocol: Protocol
  /** IP literal without brackets. */
  readonly host: string
  readonly port: number
  /** Name for SNI and certificate checks on TLS. */
  readonly server_name?: string | undefined
  /** How to verify the peer's certificate; unset uses the stack's default. */
  readonly tls?: TlsVerification | undefined
}

interface NaptrRecord {
  readonly order: number
  readonly preference: number
  readonly flags: string
  readonly service: string
  readonly replacement: string
}

interface SrvRecord {
  readonly priority: number
  readonly weight: number
  readonly port: number
  readonly name: string
}

/** The DNS queries of the locator. Each rejects when the name has no such records or the server fails. */
export interface DnsSource {
  naptr(name: string): Promise<readonly NaptrRecord[]>
  srv(name: string): Promise<readonly SrvRecord[]>
  /** Returns the addresses of both families and their TTL. */
  addresses(name: string): Promise<{ readonly hosts: readonly string[]; readonly ttl_seconds: number }>
}

export type Located =
  | { readonly kind: 'found'; readonly destinations: readonly Destination[] }
  /**
   * `dns`: no address found. `scheme`: the stack does not serve this kind of URI. `transport`: no listening point for
   * the transport. `family`: all addresses are of a family (IPv4, IPv6) without a listening point.
   */
  | { readonly kind: 'failed'; readonly why: 'dns' | 'scheme' | 'transport' | 'family' }

/** Destinations of a name while they are collected. */
interface Collected {
  readonly destinations: Destination[]
  /** Whether an address was omitted because of its family. */
  other_family: boolean
}

interface LocatorOptions {
  readonly clock: Clock
  readonly dns: DnsSource
  readonly random: () => number
  /** Reports whether the stack can send over a protocol at all. */
  readonly serves: (protocol: Protocol) => boolean
  readonly servesFamily: (protocol: Protocol, host: string) => boolean
  /** The family that comes first for a name with addresses of both, as in our SDP. */
  readonly first_family: 'ipv4' | 'ipv6'
}

const DEAD_MS = 60_000
const STALE_MS = 24 * 3_600_000
/** TTL of negative answers, and the pause before DNS is asked again after a failure that a stale answer covers. */
const NEGATIVE_MS = 30_000
const RETRY_MS = 10_000
const CACHE_ENTRIES = 2_000

type Cached<T> = { value: T; fresh_until: number; stale_until: number }

export class Locator {
  readonly #options: LocatorOptions
  readonly #cache = boundedMap<string, Cached<unknown>>(CACHE_ENTRIES)
  readonly #asking = new Map<string, Promise<unknown>>()
  readonly #failed = boundedMap<string, number>(CACHE_ENTRIES)

  constructor(options: LocatorOptions) {
    this.#options = options
  }

  /** Finds the destinations of a URI, in the order to try them. Calls `done` synchronously for a literal address. */
  locate(uri: SipUri, done: (located: Located) => void): void {
    if (uri.scheme !== 'sip' && uri.scheme !== 'sips') {
      done({ kind: 'failed', why: 'scheme' })
      return
    }
    const secure = uri.scheme === 'sips'
    const named = protocolOf(uri)
    const { host } = uri
    if (named === 'unknown') {
      done({ kind: 'failed', why: 'transport' })
      return
    }
    const literal = host.toLowerCase() === 'localhost' ? this.#loopback(named ?? (secure ? 'tls' : 'udp')) : host
    if (isIP(literal) !== 0) {
      const protocol = named ?? (secure ? 'tls' : 'udp')
      const port = uri.port ?? defaultPort(protocol)
      if (!this.#options.serves(protocol)) done({ kind: 'failed', why: secure ? 'scheme' : 'transport' })
      else if (!this.#options.servesFamily(protocol, literal)) done({ kind: 'failed', why: 'family' })
      else done({ kind: 'found', destinations: [{ protocol, host: literal, port, server_name: uri.host }] })
      return
    }
    this.#byName(uri, named, secure).then(
      ({ destinations, other_family }) => {
        if (destinations.length > 0) done({ kind: 'found', destinations: this.#inOrder(destinations) })
        else done({ kind: 'failed', why: other_family ? 'family' : 'dns' })
      },
      () => done({ kind: 'failed', why: 'dns' }),
    )
  }

  /** Records that an address answered. */
  answered(destination: Destination): void {
    if (this.#failed.size > 0) this.#failed.delete(evidenceKey(destination))
  }

  /** Records that an address timed out, refused the connection, or answered 503. */
  failedAt(destination: Destination): void {
    this.#failed.set(evidenceKey(destination), this.#options.clock.monotonic_ms())
  }

  /** Reports whether an address failed within the last minute. */
  isDead(destination: Destination): boolean {
    const at = this.#failed.get(evidenceKey(destination))
    return at !== undefined && this.#options.clock.monotonic_ms() - at < DEAD_MS
  }

  #loopback(protocol: Protocol): string {
    return this.#options.servesFamily(protocol, '127.0.0.1') ? '127.0.0.1' : '::1'
  }

  async #byName(uri: SipUri, named: Protocol | undefined, secure: boolean): Promise<Collected> {
    const out: Collected = { destinations: [], other_family: false }
    const { host } = uri
    if (uri.port !== undefined) {
      const protocol = named ?? (secure ? 'tls' : 'udp')
      await this.#addAddresses(out, host, protocol, uri.port, host)
      return out
    }
    for (const { protocol, name } of await this.#services(host, named, secure)) {
      for (const record of await this.#srv(name)) {
        await this.#addAddresses(out, record.name, protocol, record.port, host)
      }
    }
    if (out.destinations.length === 0) {
      const protocol = named ?? (secure ? 'tls' : 'udp')
      await this.#addAddresses(out, host, protocol, defaultPort(protocol), host)
    }
    return out
  }

  // RFC 3263 §4.1: NAPTR chooses the transport; without NAPTR, query SRV for each transport that we have.
  async #services(
    host: string,
    named: Protocol | undefined,
    secure: boolean,
  ): Promise<{ protocol: Protocol; name: string }[]> {
    if (named) return [{ protocol: named, name: srvName(named, host) }]
    const records = await this.#cached(`naptr ${host}`, 300_000, () => this.#options.dns.naptr(host), [])
    const offers = [...records]
      .filter(r => r.flags.toLowerCase() === 's')
      .sort((a, b) => a.order - b.order || a.preference - b.preference)
    const chosen: { protocol: Protocol; name: string }[] = []
    for (const record of offers) {
      const protocol = NAPTR_SERVICES[record.service.toUpperCase()]
      if (protocol && this.#options.serves(protocol) && (!secure || protocol === 'tls')) {
        chosen.push({ protocol, name: record.replacement })
      }
    }
    if (chosen.length > 0) return chosen
    const order: Protocol[] = secure ? ['tls'] : ['udp', 'tcp', 'tls']
    return order.filter(p => this.#options.serves(p)).map(protocol => ({ protocol, name: srvName(protocol, host) }))
  }

  async #srv(name: string): Promise<SrvRecord[]> {
    const records = await this.#cached(`srv ${name}`, 60_000, () => this.#options.dns.srv(name), [])
    return orderByPriority(records, this.#options.random)
  }

  async #addAddresses(out: Collected, name: string, protocol: Protocol, port: number, asked: string): Promise<void> {
    const add = (host: string): void => {
      if (this.#options.servesFamily(protocol, host))
        out.destinations.push({ protocol, host, port, server_name: asked })
      else out.other_family = true
    }
    if (isIP(name) !== 0) {
      add(name)
      return
    }
    const { hosts } = await this.#cached(
      `a ${name}`,
      answer => answer.ttl_seconds * 1000,
      () => this.#options.dns.addresses(name),
      { hosts: [], ttl_seconds: 0 },
    )
    const first = (host: string): boolean => host.includes(':') === (this.#options.first_family === 'ipv6')
    for (const host of [...hosts.filter(first), ...hosts.filter(other => !first(other))]) add(host)
  }

  #inOrder(all: Destination[]): Destination[] {
    const alive = all.filter(d => !this.isDead(d))
    return alive.length === all.length ? all : [...alive, ...all.filter(d => this.isDead(d))]
  }

  async #cached<T>(key: string, ttl: number | ((value: T) => number), ask: () => Promise<T>, none: T): Promise<T> {
    const found = this.#cache.get(key) as Cached<T> | undefined
    if (found && found.fresh_until > this.#options.clock.monotonic_ms()) return found.value
    // Concurrent calls share one query.
    const open = this.#asking.get(key) as Promise<T> | undefined
    if (open) return await open
    const asking = this.#ask(key, ttl, ask, none, found).finally(() => this.#asking.delete(key))
    this.#asking.set(key, asking)
    return await asking
  }

  async #ask<T>(
    key: string,
    ttl: number | ((value: T) => number),
    ask: () => Promise<T>,
    none: T,
    found: Cached<T> | undefined,
  ): Promise<T> {
    try {
      const value = await ask()
      return this.#keep(key, value, typeof ttl === 'number' ? ttl : ttl(value))
    } catch (error) {
      // "No such name" and "no such record" are answers. Any other error is a DNS failure: the stale answer serves, and
      // for RETRY_MS without another query, because a query to a dead server takes seconds to time out.
      const code = (error as NodeJS.ErrnoException).code
      if (code === 'ENOTFOUND' || code === 'ENODATA') return this.#keep(key, none, NEGATIVE_MS)
      if (!found || found.stale_until < this.#options.clock.monotonic_ms()) return none
      found.fresh_until = this.#options.clock.monotonic_ms() + RETRY_MS
      return found.value
    }
  }

  #keep<T>(key: string, value: T, ttl_ms: number): T {
    const now = this.#options.clock.monotonic_ms()
    this.#cache.set(key, { value, fresh_until: now + ttl_ms, stale_until: now + STALE_MS })
    return value
  }
}

const NAPTR_SERVICES: Readonly<Record<string, Protocol>> = {
  'SIP+D2U': 'udp',
  'SIP+D2T': 'tcp',
  'SIPS+D2T': 'tls',
  'SIP+D2W': 'ws',
  'SIPS+D2W': 'wss',
}

function srvName(protocol: Protocol, host: string): string {
  if (protocol === 'tls') return `_sips._tcp.${host}`
  if (protocol === 'ws') return `_sip._ws.${host}`
  if (protocol === 'wss') return `_sips._ws.${host}`
  return `_sip._${protocol}.${host}`
}

/** Returns the transport that a URI names; undefined when it names none. */
export function protocolOf(uri: SipUri): Protocol | 'unknown' | undefined {
  const named = uri.params.get('transport')?.toLowerCase()
  const secure = uri.scheme === 'sips'
  switch (named) {
    case undefined:
    case '':
      return undefined
    case 'udp':
      return secure ? 'unknown' : 'udp'
    case 'tcp':
      // RFC 3261 §26.2.2: sips over "tcp" means TLS.
      return secure ? 'tls' : 'tcp'
    case 'tls':
      return 'tls'
    case 'ws':
      return secure ? 'wss' : 'ws'
    case 'wss':
      return 'wss'
    default:
      return 'unknown'
  }
}

export function defaultPort(protocol: Protocol): number {
  switch (protocol) {
    case 'tls':
      return 5061
    case 'ws':
      return 80
    case 'wss':
      return 443
    default:
      return 5060
  }
}

function evidenceKey(d: Destination): string {
  return `${d.protocol}|${d.host}|${d.port}`
}

/**
 * Returns the machine's resolver, or one for `servers` (`address:port`). A query takes at most about four seconds.
 * Names in /etc/hosts resolve too.
 */
export function systemDns(servers?: readonly string[]): DnsSource {
  const resolver = new Resolver({ timeout: 1_000, tries: 2 })
  if (servers) resolver.setServers(servers)
  return {
    naptr: name => resolver.resolveNaptr(name),
    srv: name => resolver.resolveSrv(name),
    async addresses(name) {
      const [v4, v6] = await Promise.allSettled([
        resolver.resolve4(name, { ttl: true }),
        resolver.resolve6(name, { ttl: true }),
      ])
      const records = [...(v4.status === 'fulfilled' ? v4.value : []), ...(v6.status === 'fulfilled' ? v6.value : [])]
      if (records.length > 0) {
        return { hosts: records.map(r => r.address), ttl_seconds: Math.min(...records.map(r => r.ttl)) }
      }
      const local = await knownLocally(name)
      if (local.length > 0) return { hosts: local, ttl_seconds: 30 }
      throw v4.status === 'rejected' ? v4.reason : new Error(`no address for ${name}`)
    },
  }
}

/** Returns addresses in /etc/hosts. getaddrinfo also queries DNS without a limit, so this gives up after 2 s. */
async function knownLocally(name: string): Promise<string[]> {
  const timer = new AbortController()
  const late = setTimeout(2_000, [], { signal: timer.signal, ref: false }).catch(() => [])
  const found = lookup(name, { all: true }).then(
    all => all.map(({ address }) => address),
    () => [],
  )
  const hosts = await Promise.race([found, late])
  timer.abort()
  return hosts
}

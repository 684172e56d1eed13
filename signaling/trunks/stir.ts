import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomUUID,
  sign,
  verify,
  X509Certificate,
} from 'node:crypto'
import { readFileSync } from 'node:fs'
import { boundedMap } from '../../core/domain/bounded-map.ts'
import {
  type Attestation,
  claimsFault,
  identityHeader,
  passportParts,
  readIdentity,
  type Verstat,
} from '../../core/domain/identity/index.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import { type Config, ConfigError } from '../../core/runtime/config.ts'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import type { Log } from '../../core/runtime/log.ts'

/** Short next to the hours in which a renewed certificate takes the place of another. */
const LOOK_MS = 60_000

interface StirOptions {
  readonly config: Pick<Config, 'stir'>
  readonly http: Pick<HttpClient, 'request'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Signs the callers of calls to carriers, and verifies carriers' signatures (design section 4, docs/calls.md). It looks
 * at its files again and again: renewed ones that fit together are used without a restart.
 */
export class Stir {
  readonly #options: StirOptions
  readonly #clock: Clock
  #signer: { readonly key: KeyObject; readonly x5u: string } | null = null
  #verifier: Verifier | null = null
  /** What stands in the files that are used. */
  #known = ''
  #complaint = ''

  /** @throws ConfigError when a file cannot be used */
  constructor(options: StirOptions) {
    this.#options = options
    this.#clock = options.clock
    const { signing, anchors_file } = options.config.stir
    if (signing === null && anchors_file === null) return
    this.#load()
    options.clock.every(LOOK_MS, () => this.#lookAgain())
  }

  /** Uses the files when they have changed. Returns whether they have. @throws ConfigError */
  #load(): boolean {
    const { config, http, clock, log } = this.#options
    const { signing, anchors_file } = config.stir
    const read = (name: string, file: string): string => readText(`STROWGER_STIR_${name}`, file)
    const cert = signing && read('CERT', signing.cert_file)
    const key = signing && read('KEY', signing.key_file)
    const anchors = anchors_file === null ? null : read('CA', anchors_file)
    const found = JSON.stringify([cert, key, anchors])
    if (found === this.#known) return false
    const signer = signing && { key: signingKey(signing, cert ?? '', key ?? ''), x5u: signing.x5u }
    const verifier =
      anchors_file === null
        ? null
        : new Verifier({ http, clock, log, anchors: certificatesIn(anchors_file, anchors ?? '') })
    this.#signer = signer
    this.#verifier = verifier
    this.#known = found
    this.#complaint = ''
    return true
  }

  #lookAgain(): void {
    const { log } = this.#options
    try {
      if (this.#load()) log.info('the STIR certificates were renewed')
    } catch (err) {
      // While a tool replaces the files, a certificate may stand beside the key of the one before.
      const { message } = err as Error
      if (message !== this.#complaint) log.warn({ err }, 'the new STIR files cannot be used; the old ones stay in use')
      this.#complaint = message
    }
  }

  get verifies(): boolean {
    return this.#verifier !== null
  }

  /** Returns the Identity header for a call to a carrier; null when we do not sign, or a party is not a number. */
  identity(call: { readonly caller: string; readonly called: string; readonly attest: Attestation }): string | null {
    const [orig, dest] = [call.caller, call.called].map(number => /^\+?([0-9]{3,15})$/.exec(number)?.[1])
    if (!this.#signer || orig === undefined || dest === undefined) return null
    const { key, x5u } = this.#signer
    const iat_seconds = Math.floor(this.#clock.now() / 1000)
    const claims = { attest: call.attest, orig, dest, iat_seconds, origid: randomUUID() }
    const { header, payload } = passportParts(claims, x5u)
    const signed = `${base64url(header)}.${base64url(payload)}`
    const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
    return identityHeader(`${signed}.${signature}`, x5u)
  }

  /** Verifies an Identity header; null when verification is not configured. Never rejects; settles within 3 s. */
  async verify(
    identity: string | null,
    call: { readonly caller: string; readonly called: string },
  ): Promise<Verstat | null> {
    if (!this.#verifier) return null
    if (identity === null) return { result: 'none', attest: null, detail: 'the call came without Identity' }
    return this.#verifier.verify(identity, { ...call, now_ms: this.#clock.now() })
  }
}

const CACHE_MS = 3_600_000
const FAULT_CACHE_MS = 30_000
const MAX_CACHED = 1000
const FETCH_LIMIT_MS = 2500
const MAX_CHAIN = 5

type Certified = { readonly key: KeyObject } | { readonly fault: string }

interface VerifierOptions {
  readonly http: Pick<HttpClient, 'request'>
  readonly clock: Clock
  readonly log: Log
  readonly anchors: readonly X509Certificate[]
}

class Verifier {
  readonly #options: VerifierOptions
  /** Certificates by x5u. Concurrent calls with the same signer share one fetch. */
  readonly #known = boundedMap<string, { readonly until_ms: number; readonly certified: Promise<Certified> }>(
    MAX_CACHED,
  )

  constructor(options: VerifierOptions) {
    this.#options = options
  }

  async verify(
    identity: string,
    call: { readonly caller: string; readonly called: string; readonly now_ms: number },
  ): Promise<Verstat> {
    const passport = readIdentity(identity, text => Buffer.from(text, 'base64url').toString('utf8'))
    if (passport === null) return { result: 'none', attest: null, detail: 'Identity has no SHAKEN passport' }
    if (passport === 'malformed') return { result: 'failed', attest: null, detail: 'the passport cannot be read' }
    const { attest } = passport.claims
    const failed = (detail: string): Verstat => ({ result: 'failed', attest, detail })
    const fault = claimsFault(passport.claims, call)
    if (fault !== null) return failed(fault)
    const certified = await this.#certified(passport.x5u)
    if ('fault' in certified) return failed(certified.fault)
    const { signed, signature } = passport
    const key = { key: certified.key, dsaEncoding: 'ieee-p1363' } as const
    if (!verify('sha256', Buffer.from(signed), key, Buffer.from(signature, 'base64url')))
      return failed('the signature is not by that certificate')
    return { result: 'passed', attest, detail: null }
  }

  #certified(x5u: string): Promise<Certified> {
    const now_ms = this.#options.clock.monotonic_ms()
    const known = this.#known.get(x5u)
    if (known && known.until_ms > now_ms) return known.certified
    const certified = this.#fetch(x5u).then(found => {
      // A fault may be transient. It is cached only so long that a flood of calls does not repeat the fetch.
      if ('fault' in found && this.#known.get(x5u)?.certified === certified)
        this.#known.set(x5u, { until_ms: this.#options.clock.monotonic_ms() + FAULT_CACHE_MS, certified })
      return found
    })
    this.#known.set(x5u, { until_ms: now_ms + CACHE_MS, certified })
    return certified
  }

  async #fetch(x5u: string): Promise<Certified> {
    const { http, log } = this.#options
    const given = /^https:\/\//i.test(x5u)
    if (!given) return { fault: 'x5u is no https address' }
    const answer = await http.request({
      url: x5u,
      max_bytes: 65_536,
      total_timeout_ms: FETCH_LIMIT_MS,
      connect_timeout_ms: FETCH_LIMIT_MS,
      max_redirects: 1,
    })
    if (!answer.ok || answer.status !== 200) {
      log.info({ x5u, detail: answer.ok ? answer.status : answer.detail }, 'a STIR certificate could not be fetched')
      return { fault: `the certificate could not be fetched (${answer.ok ? answer.status : answer.error})` }
    }
    const [leaf, ...others] = certificates(answer.body.toString('utf8'))
    if (!leaf) return { fault: 'there is no certificate at x5u' }
    const fault = this.#chainFault(leaf, others.slice(0, MAX_CHAIN))
    if (fault !== null) return { fault }
    if (leaf.publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') return { fault: 'its key is not P-256' }
    return { key: leaf.publicKey }
  }

  /** Validates the chain from the leaf to one of our anchors (RFC 5280 §6.1: names, keys, dates). Null when valid. */
  #chainFault(leaf: X509Certificate, others: readonly X509Certificate[]): string | null {
    const now_ms = this.#options.clock.now()
    const current = (one: X509Certificate): boolean =>
      Date.parse(one.validFrom) <= now_ms && now_ms < Date.parse(one.validTo)
    const issued = (by: X509Certificate, what: X509Certificate): boolean =>
      what.checkIssued(by) && what.verify(by.publicKey)
    let at = leaf
    for (let depth = 0; depth <= MAX_CHAIN; depth++) {
      if (!current(at)) return 'a certificate of its chain is not valid now'
      if (this.#options.anchors.some(anchor => anchor.fingerprint256 === at.fingerprint256)) return null
      const anchor = this.#options.anchors.find(one => one.ca && issued(one, at))
      if (anchor) return current(anchor) ? null : 'its trust anchor is not valid now'
      const next = others.find(one => one.ca && one.fingerprint256 !== at.fingerprint256 && issued(one, at))
      if (!next) return 'its chain ends at no trust anchor'
      at = next
    }
    return 'its chain is too long'
  }
}

const base64url = (text: string): string => Buffer.from(text).toString('base64url')

const certificates = (pem: string): X509Certificate[] =>
  [...pem.matchAll(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g)].slice(0, 1000).flatMap(([one]) => {
    try {
      return [new X509Certificate(one)]
    } catch {
      return []
    }
  })

function certificatesIn(file: string, pem: string): X509Certificate[] {
  const found = certificates(pem)
  if (found.length === 0) throw new ConfigError(`STROWGER_STIR_CA=${file}: there is no certificate in it`)
  return found
}

type Signing = NonNullable<Config['stir']['signing']>

function signingKey({ cert_file, key_file }: Signing, cert_pem: string, key_pem: string): KeyObject {
  const [leaf] = certificates(cert_pem)
  if (!leaf) throw new ConfigError(`STROWGER_STIR_CERT=${cert_file}: there is no certificate in it`)
  let key: KeyObject
  try {
    key = createPrivateKey(key_pem)
  } catch {
    throw new ConfigError(`STROWGER_STIR_KEY=${key_file}: there is no private key in it`)
  }
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new ConfigError(`STROWGER_STIR_KEY=${key_file}: expected a P-256 key (RFC 8225 §8.3)`)
  const spki = { type: 'spki', format: 'der' } as const
  if (!createPublicKey(key).export(spki).equals(leaf.publicKey.export(spki)))
    throw new ConfigError(`STROWGER_STIR_KEY=${key_file}: it is not the key of STROWGER_STIR_CERT`)
  return key
}

function readText(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError(`${name}=${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

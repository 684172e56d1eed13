import { createHash, timingSafeEqual } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type * as werift from 'werift'
import type { DtlsLine } from '../../core/domain/codecs/sdp.ts'
import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { SrtpKeys } from '../../native/index.ts'
import { HandshakeRepeats } from './handshake-repeats.ts'
import { type IceCredentials, IceLite, type Path } from './ice-lite.ts'

/**
 * The transport to one browser. It runs ICE-lite and DTLS on the port of a stream, and so obtains the stream's SRTP
 * keys.
 */

export type Werift = Pick<
  typeof werift,
  | 'parseMessage'
  | 'Message'
  | 'classes'
  | 'methods'
  | 'DtlsServer'
  | 'ProtectionProfileAes128CmHmacSha1_80'
  | 'ProtectionProfileAeadAes128Gcm'
>

export interface Certificate {
  readonly cert: string
  readonly key: string
  readonly signatureHash: { hash: number; signature: number }
  /** SHA-256, upper-case hex with colons. */
  readonly fingerprint: string
}

/** The path and the keys that the stream needs. */
export interface BrowserState {
  readonly path: Path
  readonly srtp: SrtpKeys
}

export interface BrowserTransportOptions {
  readonly credentials: IceCredentials
  readonly certificate: Certificate
  readonly werift: Werift
  readonly clock: Clock
  readonly send: (packet: Buffer, path: Path) => void
  /** Called when keys and path are known and when the path changes; with null when consent is lost. */
  readonly onChange: (state: BrowserState | null) => void
  /** Called with the addresses from which the browser may send besides the path. */
  readonly onProved: (paths: readonly Path[]) => void
  /**
   * Called at each look at a peer without consent, with how long it has proved none since we know its SDP; once with 0
   * when it is there again.
   */
  readonly onSilent: (for_ms: number) => void
  readonly onFailed: (detail: string) => void
}

const CONSENT_MS = 30_000
const LOOK_MS = 5000

const PROFILES = {
  1: { suite: 'AES_CM_128_HMAC_SHA1_80', key_bytes: 16, salt_bytes: 14 },
  7: { suite: 'AEAD_AES_128_GCM', key_bytes: 16, salt_bytes: 12 },
} as const

/**
 * Returns the hash of a certificate as in SDP (RFC 8122 §5): upper-case hex with colons. `algorithm` is e.g. `sha-256`.
 */
export function fingerprintOf(certificate: Buffer, algorithm: string): string {
  const hex = createHash(algorithm.replace('-', '')).update(certificate).digest('hex').toUpperCase()
  return hex.match(/../g)?.join(':') ?? ''
}

export class BrowserTransport {
  readonly #options: BrowserTransportOptions
  readonly #ice: IceLite
  readonly #looking: Timer
  #remote: DtlsLine | null = null
  #dtls: werift.DtlsServer | null = null
  #deliver: ((data: Buffer, from: [string, number]) => void) | null = null
  #srtp: SrtpKeys | null = null
  /** When the peer's last SDP came. A peer that is still called is not silent. */
  #described_at_ms = Number.POSITIVE_INFINITY
  #silent = false
  #lost = false
  #closed = false

  constructor(options: BrowserTransportOptions) {
    this.#options = options
    const { credentials, werift: stun, send, clock, onProved } = options
    const now_ms = () => clock.monotonic_ms()
    this.#ice = new IceLite({ credentials, stun, send, now_ms, onProved, onPath: () => this.#tell() })
    this.#looking = clock.every(LOOK_MS, () => this.#checkConsent())
  }

  /** Takes the peer's parameters from its SDP. A changed fingerprint begins a new DTLS association (RFC 8842 §4). */
  setRemote(remote: DtlsLine): void {
    const renewed = this.#remote !== null && this.#remote.fingerprint !== remote.fingerprint
    this.#remote = remote
    this.#described_at_ms = this.#options.clock.monotonic_ms()
    this.#ice.setRemote(remote.ice_ufrag)
    if (!renewed) return
    this.#dtls?.close()
    this.#dtls = null
    this.#srtp = null
  }

  /** Handles a datagram that is neither RTP nor RTCP (RFC 7983 §7). */
  receive(packet: Buffer, from: Path): void {
    if (this.#closed || !this.#remote) return
    const first = packet[0] ?? 255
    if (first <= 3) {
      this.#ice.receive(packet, from)
      if (this.#lost && this.#ice.silent_ms() < CONSENT_MS) this.#tell()
    } else if (first >= 20 && first <= 63 && this.#ice.uses(from)) this.#handshake(packet, from)
  }

  close(): void {
    this.#looking.cancel()
    this.#stop()
  }

  #stop(): void {
    if (this.#closed) return
    this.#closed = true
    this.#dtls?.close()
  }

  /** Takes DTLS over a path that ICE proved. From elsewhere it is ignored: its answers would amplify traffic. */
  #handshake(packet: Buffer, from: Path): void {
    this.#dtls ??= this.#startDtls()
    this.#deliver?.(packet, [from.address, from.port])
  }

  #startDtls(): werift.DtlsServer {
    const { werift: library, certificate } = this.#options
    const send = async (data: Buffer) => {
      if (this.#ice.path && !this.#closed) this.#options.send(data, this.#ice.path)
    }
    const transport = {
      type: 'udp',
      address: { address: '', family: '', port: 0 } satisfies AddressInfo,
      closed: false,
      onData: () => undefined,
      send,
      close: async () => undefined,
    } as werift.DtlsServer['transport']['socket']
    const dtls = new library.DtlsServer({
      transport,
      cert: certificate.cert,
      key: certificate.key,
      signatureHash: certificate.signatureHash as never,
      srtpProfiles: [library.ProtectionProfileAeadAes128Gcm, library.ProtectionProfileAes128CmHmacSha1_80],
      certificateRequest: true,
      extendedMasterSecret: true,
    })
    const repeats = new HandshakeRepeats()
    this.#deliver = (data, from) => transport.onData(repeats.pass(data), from)
    dtls.onConnect.subscribe(() => this.#connected(dtls))
    dtls.onError.subscribe(error => this.#fail(`DTLS failed: ${error.message}`))
    return dtls
  }

  #connected(dtls: werift.DtlsServer): void {
    if (this.#closed || dtls !== this.#dtls) return
    const remote = this.#remote
    const shown = dtls.remoteCertificate
    if (!remote || !shown || !this.#sameFingerprint(shown, remote)) {
      this.#fail('the certificate is not the one whose fingerprint the SDP holds')
      return
    }
    const profile = dtls.srtp.srtpProfile === undefined ? undefined : PROFILES[dtls.srtp.srtpProfile]
    if (!profile) {
      this.#fail('no SRTP profile in common')
      return
    }
    const keys = dtls.extractSessionKeys(profile.key_bytes, profile.salt_bytes)
    this.#srtp = {
      suite: profile.suite,
      receive_key: Buffer.concat([keys.remoteKey, keys.remoteSalt]),
      send_key: Buffer.concat([keys.localKey, keys.localSalt]),
    }
    this.#tell()
  }

  #sameFingerprint(certificate: Buffer, { algorithm, fingerprint }: DtlsLine): boolean {
    const shown = Buffer.from(fingerprintOf(certificate, algorithm))
    const said = Buffer.from(fingerprint)
    return shown.length === said.length && timingSafeEqual(shown, said)
  }

  #tell(): void {
    const { path } = this.#ice
    if (this.#closed || !path || !this.#srtp) return
    this.#lost = false
    this.#options.onChange({ path, srtp: this.#srtp })
  }

  /** Stops sending when the peer's consent has expired (RFC 7675 §5.1). */
  #checkConsent(): void {
    const silent_ms = this.#ice.silent_ms()
    const for_ms = Math.min(silent_ms, this.#options.clock.monotonic_ms() - this.#described_at_ms)
    const silent = for_ms >= CONSENT_MS
    if (silent || this.#silent) this.#options.onSilent(silent ? for_ms : 0)
    this.#silent = silent
    if (silent_ms < CONSENT_MS || this.#lost || !this.#srtp) return
    this.#lost = true
    this.#options.onChange(null)
  }

  /** Takes nothing more of a peer whose handshake failed. The looks go on: the peer is silent now. */
  #fail(detail: string): void {
    if (this.#closed) return
    this.#stop()
    this.#options.onFailed(detail)
  }
}

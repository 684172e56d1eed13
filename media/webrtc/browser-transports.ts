import { randomBytes } from 'node:crypto'
import type { BrowserSide } from '../../core/domain/codecs/browser.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import {
  BrowserTransport,
  type BrowserTransportOptions,
  type Certificate,
  fingerprintOf,
  type Werift,
} from './browser-transport.ts'
import { loadWerift } from './werift.ts'

/**
 * Creates the transports of browser legs. werift is slow to load, so the first transport loads it.
 */
export interface BrowserTransports {
  /** Returns our parameters for the SDP, and a function that opens the transport once the stream exists. */
  prepare(): Promise<PreparedBrowser>
}

export interface PreparedBrowser {
  readonly side: BrowserSide
  open(wiring: Omit<BrowserTransportOptions, 'credentials' | 'certificate' | 'werift' | 'clock'>): BrowserTransport
}

export function createBrowserTransports(clock: Clock): BrowserTransports {
  let loading: Promise<{ werift: Werift; certificate: Certificate }> | null = null
  return {
    async prepare() {
      loading ??= load()
      const { werift, certificate } = await loading
      // RFC 8445 §5.3 requires 24 random bits in the fragment and 128 in the password, as ice-char.
      const credentials = { local_ufrag: randomBytes(6).toString('hex'), local_pwd: randomBytes(18).toString('hex') }
      const { local_ufrag: ice_ufrag, local_pwd: ice_pwd } = credentials
      return {
        side: { ice_ufrag, ice_pwd, fingerprint: certificate.fingerprint },
        open: wiring => new BrowserTransport({ credentials, certificate, werift, clock, ...wiring }),
      }
    },
  }
}

/** Loads werift and creates one certificate for the lifetime of the process. The SDP carries its fingerprint. */
async function load(): Promise<{ werift: Werift; certificate: Certificate }> {
  const werift = await loadWerift()
  const signatureHash = { hash: werift.HashAlgorithm.sha256_4, signature: werift.SignatureAlgorithm.ecdsa_3 }
  const { certPem, keyPem } = await werift.CipherContext.createSelfSignedCertificateWithKey(
    signatureHash,
    werift.NamedCurveAlgorithm.secp256r1_23,
  )
  const der = Buffer.from(certPem.replace(/-----[^-]+-----|\s/g, ''), 'base64')
  const fingerprint = fingerprintOf(der, 'sha-256')
  return { werift, certificate: { cert: certPem, key: keyPem, signatureHash, fingerprint } }
}

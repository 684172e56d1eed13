import { connect, type PeerCertificate } from 'node:tls'
import { parseAddress } from '../../core/domain/identity/index.ts'
import type { HostPort } from '../../core/domain/network/peer-addresses.ts'
import type { CertificateFacts } from '../../core/domain/trunk-tests/index.ts'
import { trustedPeers } from '../../core/runtime/certificate.ts'
import { certificateFingerprint, wrongName } from '../../core/runtime/sip/peer-names.ts'

const TLS_LIMIT_MS = 5000

export const codeOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}

/** Reads the certificate that `host` presents at an address. An invalid certificate is reported, not rejected. */
export function certificateAt(
  data_dir: string,
  host: string,
  address: HostPort,
): Promise<CertificateFacts | { error: string }> {
  return new Promise(done => {
    const socket = connect({
      host: address.host,
      port: address.port,
      rejectUnauthorized: false,
      ...trustedPeers(data_dir),
      ...(parseAddress(host) ? {} : { servername: host }),
    })
    const end = (outcome: CertificateFacts | { error: string }): void => {
      socket.destroy()
      done(outcome)
    }
    socket.setTimeout(TLS_LIMIT_MS, () => end({ error: 'no answer in time' }))
    socket.once('error', error => end({ error: codeOf(error) }))
    socket.once('secureConnect', () => {
      const peer = socket.getPeerCertificate()
      if (!peer?.valid_to) return end({ error: 'the peer showed no certificate' })
      end({
        subject: nameOf(peer.subject, peer),
        issuer: nameOf(peer.issuer, peer),
        valid_from_ms: Date.parse(peer.valid_from),
        valid_to_ms: Date.parse(peer.valid_to),
        fingerprint: certificateFingerprint(peer) ?? '',
        matches_host: wrongName(host, peer) === undefined,
        untrusted: socket.authorized ? null : String(socket.authorizationError ?? 'unknown'),
      })
    })
  })
}

const nameOf = (name: PeerCertificate['subject'] | undefined, peer: PeerCertificate): string => {
  const text = name?.CN ?? name?.O ?? peer.fingerprint256 ?? 'unnamed'
  return (Array.isArray(text) ? text.join(', ') : text).slice(0, 120)
}

import { type BrowserSide, refuseBrowser } from './browser.ts'
import { type CryptoLine, SRTP_SUITES, type SrtpSuite, sameKey } from './crypto-line.ts'
import { refuseSdp, type SdpRefused } from './refusal.ts'
import type { DtlsLine, MediaLine, OwnLine } from './sdp.ts'

/** Negotiates the security of packets: none, SDES (RFC 4568) or DTLS-SRTP (RFC 5763). */

export type MediaSecurity = 'rtp' | 'sdes_srtp_required' | 'dtls_srtp'

/** Our secrets for a leg. */
export interface OwnSecrets {
  /** Base64 key and salt for each suite, generated for this leg only. */
  readonly keys: Readonly<Record<SrtpSuite, string>>
  /** Our end of ICE and DTLS, for policies of `dtls_srtp`. */
  readonly browser: BrowserSide | null
}

export interface SrtpKeys {
  readonly suite: SrtpSuite
  readonly send_key: string
  readonly receive_key: string
}

interface Secured {
  readonly crypto: CryptoLine | null
  readonly dtls: DtlsLine | null
}

const PLAIN: Secured = { crypto: null, dtls: null }

/** Returns the security of the answer to an offered line. */
export function offeredSecurity(
  line: MediaLine,
  policy: MediaSecurity,
): Secured | SdpRefused<'srtp_required' | 'no_common_codec'> {
  if (policy === 'dtls_srtp') {
    const detail = refuseBrowser(line, ['actpass', 'active'])
    return detail === null ? { crypto: null, dtls: line.dtls } : refuseSdp('srtp_required', detail)
  }
  const required = policy === 'sdes_srtp_required'
  if (/^RTP\/SAVPF?$/.test(line.protocol)) {
    const [crypto] = line.cryptos
    if (crypto) return { crypto, dtls: null }
    return refuseSdp(
      required ? 'srtp_required' : 'no_common_codec',
      `${line.protocol} without a crypto line we can serve`,
    )
  }
  if (!/^RTP\/AVPF?$/.test(line.protocol)) return refuseSdp('no_common_codec', `${line.protocol} is not served here`)
  return required ? refuseSdp('srtp_required', `${line.protocol} is offered, this trunk requires RTP/SAVP`) : PLAIN
}

/**
 * Returns the security that the answer to `ours` selected. Its tag should name our crypto line (RFC 4568 §5.1.3), but
 * Webex and BroadWorks count their own lines. We offer each suite once, so that the suite alone names the line.
 */
export function answeredSecurity(
  line: MediaLine,
  ours: OwnLine,
  own: OwnSecrets,
): { readonly srtp: SrtpKeys | null; readonly dtls: DtlsLine | null } | SdpRefused<'srtp_required' | 'sdp_malformed'> {
  if (own.browser) {
    const detail = refuseBrowser(line, ['active'])
    return detail === null ? { srtp: null, dtls: line.dtls } : refuseSdp('srtp_required', detail)
  }
  if (!ours.protocol.startsWith('RTP/SAVP')) {
    return line.protocol.startsWith('RTP/AVP')
      ? { srtp: null, dtls: null }
      : refuseSdp('sdp_malformed', `${line.protocol} answers an offer of ${ours.protocol}`)
  }
  const [crypto] = line.cryptos
  if (!line.protocol.startsWith('RTP/SAVP') || !crypto)
    return refuseSdp('srtp_required', 'the answer has no crypto line we can serve')
  if (!ours.attributes.some(one => one.startsWith('crypto:') && one.split(' ')[1] === crypto.suite))
    return refuseSdp('srtp_required', `${crypto.suite} was not offered`)
  const srtp = srtpKeys(crypto, own)
  return 'refused' in srtp ? srtp : { srtp, dtls: null }
}

/** Returns the keys of both directions. Ours is of the suite in the peer's line. */
export function srtpKeys({ suite, key }: CryptoLine, own: OwnSecrets): SrtpKeys | SdpRefused<'srtp_required'> {
  const send_key = own.keys[suite]
  if (sameKey(send_key, key)) return refuseSdp('srtp_required', "the peer's crypto line holds our own key")
  return { suite, send_key, receive_key: key }
}

/** Returns the crypto lines of an offer: every suite, or only the one in use. */
export const offeredCryptos = (own: OwnSecrets, in_use: SrtpSuite | null): string[] =>
  SRTP_SUITES.flatMap(({ suite }, index) =>
    in_use === null || in_use === suite ? [cryptoAttribute(index + 1, suite, own.keys[suite])] : [],
  )

export const cryptoAttribute = (tag: number, suite: SrtpSuite, key: string): string =>
  `crypto:${tag} ${suite} inline:${key}`

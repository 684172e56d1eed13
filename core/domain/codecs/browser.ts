import type { MediaLine } from './sdp.ts'

/** The SDP of browser legs: ICE-lite (RFC 8445 §2.5), DTLS-SRTP (RFC 5763), everything on one port (RFC 8843). */

/** Our end. The fingerprint is that of the worker's certificate: SHA-256 in upper-case hex with colons. */
export interface BrowserSide {
  readonly ice_ufrag: string
  readonly ice_pwd: string
  readonly fingerprint: string
}

/** Returns why a line cannot be a browser leg's, or null. The peer must accept the DTLS client role. */
export function refuseBrowser(line: MediaLine, setups: readonly string[]): string | null {
  if (!/^UDP\/TLS\/RTP\/SAVPF?$/.test(line.protocol)) return `${line.protocol} where UDP/TLS/RTP/SAVPF is required`
  if (!line.dtls) return 'the fingerprint or the ICE credentials are missing'
  if (!/^sha-(1|224|256|384|512)$/.test(line.dtls.algorithm)) return `a ${line.dtls.algorithm} fingerprint`
  if (!line.rtcp_mux) return 'rtcp-mux is missing'
  return setups.includes(line.dtls.setup) ? null : `setup:${line.dtls.setup} where the peer has to begin DTLS`
}

/** Returns the attributes, with a single candidate: our own address. */
export function browserAttributes(
  browser: BrowserSide,
  { address, rtp_port }: { readonly address: string; readonly rtp_port: number },
  mid: string | null,
  setup: 'passive' | 'actpass',
): string[] {
  return [
    ...(mid === null ? [] : [`mid:${mid}`]),
    `ice-ufrag:${browser.ice_ufrag}`,
    `ice-pwd:${browser.ice_pwd}`,
    `fingerprint:sha-256 ${browser.fingerprint}`,
    `setup:${setup}`,
    // Priority of a host candidate, component 1 (RFC 8445 §5.1.2.1).
    `candidate:1 1 UDP 2130706431 ${address} ${rtp_port} typ host`,
    'end-of-candidates',
    'msid:strowger audio',
  ]
}

export function browserSessionAttributes(mid: string | null): string[] {
  return ['ice-lite', ...(mid === null ? [] : [`group:BUNDLE ${mid}`])]
}

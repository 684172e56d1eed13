import type { Codec } from './types.ts'

// The choices that the forms of a trunk offer.

export const DIRECTIONS = [
  { value: 'both', text: 'Both', hint: 'The PBX makes and takes calls.' },
  { value: 'outbound', text: 'Outbound', hint: 'The PBX only makes calls.' },
  { value: 'inbound', text: 'Inbound', hint: 'The PBX only takes calls to your numbers.' },
] as const

export const AUTHENTICATIONS = [
  {
    value: 'digest',
    text: 'User and password',
    hint: 'Digest. For a PBX that registers or has no fixed address. The password is made for you.',
  },
  { value: 'ip_allow_list', text: 'IP address', hint: 'For a PBX with a fixed public address.' },
] as const

export const TRANSFERS = [
  { value: 'consume', text: 'Carried out', hint: 'The platform calls the target and joins both.' },
  { value: 'pass', text: 'Passed on', hint: 'The other side calls the target, if it is another trunk of yours.' },
  { value: 'refuse', text: 'Refused', hint: 'The PBX gets 603.' },
] as const

export const SOURCE_CHECKS = [
  {
    value: 'relaxed',
    text: 'Relaxed',
    hint: 'Media may come from another port or address than signalled, as behind NAT.',
  },
  { value: 'strict', text: 'Strict', hint: 'Signalling and media only from the addresses above.' },
] as const

export const MEDIA_SECURITIES = [
  { value: 'rtp', text: 'RTP', hint: 'Plain, and SRTP when the PBX offers it.' },
  { value: 'sdes_srtp_required', text: 'SRTP required', hint: 'Calls without encrypted media are refused.' },
] as const

/** The Asterisk names of the codecs, in the order in which the console shows them. */
export const ASTERISK_CODECS: Readonly<Record<Codec, string>> = {
  PCMA: 'alaw',
  PCMU: 'ulaw',
  G722: 'g722',
  OPUS: 'opus',
  G729: 'g729',
}

export const CODECS = (Object.keys(ASTERISK_CODECS) as Codec[]).map(value => ({ value, text: value }))

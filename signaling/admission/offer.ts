import { readSdp } from '../../core/domain/codecs/sdp.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import type { Ask } from './gate.ts'
import { type InviteRefused, refusedFor } from './refuse.ts'

/** The facts of an SDP offer that are needed before a leg answers it. */
export interface Offered {
  /** The facts for admission. */
  readonly offer: NonNullable<Ask['offer']>
  /** The address family of its audio; null without audio. */
  readonly family: 'ipv4' | 'ipv6' | null
}

/**
 * Reads the SDP offer of an INVITE; null when the INVITE has none, refused when none of its audio can be used. A host
 * name in c= is resolved only for an admitted call; until then the peer counts as where its SIP came from.
 */
export function offeredIn(invite: InboundInvite): Offered | null | InviteRefused {
  const { sdp } = invite.content()
  if (sdp === '') return null
  const reading = readSdp(sdp, () => invite.source.address)
  if ('refused' in reading) return unusable(reading.detail)
  const audio = reading.sdp.lines.filter(line => line.kind === 'audio' && line.port !== 0)
  const fault = reading.sdp.lines.find(line => line.kind === 'audio' && line.fault !== null)?.fault
  if (audio.length === 0 && fault) return unusable(fault)
  const offer = {
    codecs: [...new Set(audio.flatMap(line => line.payloads.flatMap(payload => payload.codec?.name ?? [])))],
    sdes_srtp: audio.some(line => /SAVPF?$/i.test(line.protocol) && line.cryptos.length > 0),
  }
  return { offer, family: audio[0]?.family ?? null }
}

const unusable = (fault: string): InviteRefused =>
  refusedFor('no_common_codec', {}, { sentence: `the SDP of the offer cannot be used: ${fault}` })

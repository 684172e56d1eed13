import { passed, refused, skipped } from '../findings.ts'
import type { Check } from '../types.ts'

export const media: Check = {
  name: 'media',
  reasons: ['srtp_required', 'no_common_codec'],
  asked: ['outbound', 'on_net'],
  decide({ trunk, offer }) {
    if (!trunk || !offer) return skipped('there is no offer to check')
    if (trunk.media_security === 'sdes_srtp_required' && !offer.sdes_srtp)
      return refused('srtp_required', { name: `"${trunk.name}"`, value: 'plain RTP', limit: 'sdes_srtp' })
    const common = trunk.codecs.filter(codec => offer.codecs.includes(codec))
    const allowed = trunk.codecs.join(', ')
    const offered = offer.codecs.join(', ')
    if (common.length === 0)
      return refused('no_common_codec', {
        name: `"${trunk.name}"`,
        value: offered || 'no codec that we know',
        limit: allowed,
      })
    return passed(`common codecs: ${common.join(', ')}`, allowed, offered)
  },
}

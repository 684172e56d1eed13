import sdpTransform from 'sdp-transform'
import { type Attributes, readAttributes } from '../../../../../core/domain/codecs/attributes.ts'
import { readCryptoLine } from '../../../../../core/domain/codecs/crypto-line.ts'
import { Notes, readSdpText } from '../../../../../core/domain/codecs/sdp-text.ts'
import t from '../../../../support/harness/index.ts'
import { worldCases } from '../../../../support/sip-world.ts'

/** What sdp-transform, a reader of others, finds in the attributes of one m= line. */
function reference(attributes: readonly string[]): Attributes {
  const text = ['m=audio 0 RTP/AVP 0', ...attributes.map(attribute => `a=${attribute}`)].join('\r\n')
  const [raw] = sdpTransform.parse(text).media
  if (!raw) throw new Error('sdp-transform keeps every m= line')
  const number = (value: string | number | undefined): number | null => (value === undefined ? null : Number(value))
  const text_of = (value: string | number | undefined): string | null => (value === undefined ? null : String(value))
  const packet_ms = (value: string | number | undefined): number | null => {
    const ms = Math.round(Number(value))
    return ms >= 1 && ms <= 1000 ? ms : null
  }
  return {
    maps: raw.rtp.map(({ payload, codec, rate, encoding }) => ({
      payload_type: String(payload),
      encoding: String(codec),
      clock_rate_hz: number(rate),
      channels: number(encoding),
    })),
    formats: raw.fmtp.map(({ payload, config }) => ({
      payload_type: String(payload),
      parameters: String(config).trim(),
    })),
    direction: (raw.direction ?? null) as Attributes['direction'],
    ptime_ms: packet_ms(raw.ptime),
    maxptime_ms: packet_ms(raw.maxptime),
    rtcp_port: raw.rtcp === undefined ? null : Number(raw.rtcp.port),
    rtcp_mux: raw.rtcpMux !== undefined,
    cryptos:
      raw.crypto?.flatMap(({ id, suite, config, sessionConfig }) => {
        const [tag, name, keys, parameters] = [id, suite, config, sessionConfig].map(value => String(value ?? ''))
        return readCryptoLine(tag ?? '', name ?? '', keys ?? '', parameters ?? '') ?? []
      }) ?? null,
    fingerprint: raw.fingerprint
      ? { algorithm: String(raw.fingerprint.type).toLowerCase(), hash: String(raw.fingerprint.hash).toUpperCase() }
      : null,
    ice_ufrag: text_of(raw.iceUfrag),
    ice_pwd: text_of(raw.icePwd),
    setup: text_of(raw.setup),
    mid: text_of(raw.mid),
  }
}

const ODD = [
  ['ptime:20 ms', 'maxptime:0', 'rtcp:4001 IN IP4 192.0.2.1', 'rtcp-mux'],
  ['ptime:20.4', 'ptime:30', 'sendonly', 'inactive', 'unknown', 'unknown:2'],
  ['rtpmap:101', 'rtpmap:0 PCMU', 'rtpmap:96 opus/48000/2', 'rtpmap:97 L16/', 'rtpmap: x', 'rtpmap:08 PCMA/8000'],
  ['fmtp:101', 'fmtp:96 useinbandfec=1; maxplaybackrate=16000', 'fmtp:18 annexb=no '],
  ['fingerprint:SHA-256 ab:cd', 'fingerprint:sha-1', 'setup:active!', 'ice-ufrag:a b', 'ice-pwd:', 'mid:0'],
  [
    'crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz|2^20',
    'crypto:2 UNKNOWN inline:x',
    'crypto:3',
  ],
]

t.test('attributes are read as sdp-transform reads them, in every message of the corpus and odd ones', async t => {
  const bodies = worldCases().flatMap(({ body }) => (body.includes('v=0') ? body.slice(body.indexOf('v=0')) : []))
  t.ok(bodies.length > 100, `${bodies.length} descriptions`)
  const sections = bodies.flatMap(body => {
    const { session, media } = readSdpText(body, new Notes())
    return [session, ...media].map(({ attributes }) => attributes)
  })
  for (const attributes of [...sections, ...ODD])
    t.same(
      readAttributes({ head: null, connections: [], attributes }),
      reference(attributes),
      attributes.join(', ').slice(0, 200),
    )
})

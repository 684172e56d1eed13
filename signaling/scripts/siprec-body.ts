import { readSdp } from '../../core/domain/codecs/sdp.ts'
import { escapeXml } from '../../core/domain/text/xml.ts'

/** The body of an INVITE to a recording server: one SDP for several legs, and the session's metadata. */

/** Merges offers of one stream each into one offer. Streams are labelled by position, from 1 (RFC 7866 §7.1.1). */
export function mergeOffers(offers: readonly string[]): string {
  const parts = offers.map(offer => splitAt(offer))
  const head = parts[0]?.head ?? ''
  return head + parts.map(({ media }, index) => `${media}a=label:${index + 1}\r\n`).join('')
}

/** Splits an answer into one SDP per accepted stream. A refused stream is left out, so later ones move up. */
export function splitAnswer(answer: string): string[] {
  const text = answer.replace(/\r?\n/g, '\r\n')
  const [head = '', ...lines] = text.split(/^(?=m=)/m)
  const reading = readSdp(text, () => '0.0.0.0')
  const ports = 'sdp' in reading ? reading.sdp.lines.map(({ port }) => port) : []
  return lines.filter((_line, index) => (ports[index] ?? 0) !== 0).map(line => head + line)
}

function splitAt(sdp: string): { head: string; media: string } {
  const at = sdp.search(/^m=/m)
  const media = sdp.slice(at)
  return { head: sdp.slice(0, at), media: media.endsWith('\r\n') ? media : `${media}\r\n` }
}

interface MetadataFacts {
  readonly sid: string
  readonly call_sid: string
  readonly from: string
  readonly to: string
  /** Per stream: what the leg's peer says (`received`) or hears (`sent`). */
  readonly tracks: readonly ('received' | 'sent')[]
  /** ISO 8601. */
  readonly started_at: string
  readonly parameters: Readonly<Record<string, string>>
}

/** Builds recording metadata (RFC 7865): one communication session, two participants, and a stream per track. */
export function metadata({ sid, call_sid, from, to, tracks, started_at, parameters }: MetadataFacts): string {
  const id = (name: string): string => Buffer.from(`${sid}-${name}`).toString('base64')
  const people = [
    { participant: 'from', aor: from, sends: 'received' },
    { participant: 'to', aor: to, sends: 'sent' },
  ]
  const extension = Object.entries(parameters)
    .map(([name, value]) => `<parameter name="${escapeXml(name)}" value="${escapeXml(value)}"/>`)
    .join('')
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<recording xmlns="urn:ietf:params:xml:ns:recording:1">',
    '<datamode>complete</datamode>',
    `<session session_id="${id('session')}"><sipSessionID>${escapeXml(call_sid)}</sipSessionID>${extension}</session>`,
    ...people.map(
      ({ participant, aor }) =>
        `<participant participant_id="${id(participant)}"><nameID aor="${escapeXml(aor)}"/></participant>`,
    ),
    ...tracks.map(
      (_track, index) =>
        `<stream stream_id="${id(`stream${index}`)}" session_id="${id('session')}"><label>${index + 1}</label></stream>`,
    ),
    ...people.map(({ participant, sends }) => {
      const streams = tracks
        .map((track, index) => (track === sends ? `<send>${id(`stream${index}`)}</send>` : ''))
        .join('')
      return `<participantstreamassoc participant_id="${id(participant)}">${streams}</participantstreamassoc>`
    }),
    `<sessionrecordingassoc session_id="${id('session')}"><associate-time>${started_at}</associate-time></sessionrecordingassoc>`,
    '</recording>',
    '',
  ].join('\r\n')
}

import { readBody } from '../../../../../core/domain/sip/body.ts'
import t from '../../../../support/harness/index.ts'
import { anyCharacter, fc } from '../../../../support/properties.ts'

const SDP = 'v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n'
const PIDF = '<presence xmlns="urn:ietf:params:xml:ns:pidf"/>'

const read = (type: string | null, body: string, more: { disposition?: string; encoding?: string } = {}) =>
  readBody(body, { type, disposition: more.disposition ?? null, encoding: more.encoding ?? null })

const part = (headers: string, content: string): string => `--b1\r\n${headers}\r\n\r\n${content}\r\n`
const sdp_part = part('Content-Type: application/sdp', SDP)
const isup = (handling: string): string =>
  part(`Content-Type: application/ISUP;version=itu-t92+\r\nContent-Disposition: signal${handling}`, '\u0001\u0011\0x')

t.test('the session description is found by its type, wherever it is', async t => {
  const mixed = 'multipart/mixed;boundary=b1'
  const table: readonly (readonly [string, string | null, string])[] = [
    ['alone', 'application/sdp', SDP],
    ['in any case, with parameters', 'Application/SDP ; charset="utf-8"', SDP],
    ['without Content-Type', null, SDP],
    ['as first part', mixed, `${sdp_part}${isup(';handling=optional')}--b1--\r\n`],
    ['as last part', mixed, `${isup(';handling=optional')}${sdp_part}--b1--`],
    ['beside a part that says nothing', mixed, `${isup('')}${sdp_part}--b1--\r\n`],
    ['with preamble and epilogue', 'Multipart/Mixed; Boundary="b1"', `This is MIME.\r\n\r\n${sdp_part}--b1--\r\nbye`],
    ['with LF alone', mixed, `${sdp_part}--b1--`.replaceAll('\r\n', '\n')],
    ['without an end', mixed, sdp_part],
    ['without a boundary in the type', 'multipart/mixed', `${sdp_part}--b1--`],
    ['without headers of the part', mixed, `--b1\r\n\r\n${SDP}\r\n--b1--`],
    ['without headers and empty line', mixed, `--b1\r\n${SDP}\r\n--b1--`],
    ['with blanks behind the delimiter', mixed, `--b1  \r\nContent-Type:application/sdp\r\n\r\n${SDP}\r\n--b1-- \r\n`],
    ['with a folded type', mixed, part('Content-Type:\r\n application/sdp', SDP)],
    [
      'nested',
      'multipart/related;boundary=b0;type="multipart/mixed"',
      `--b0\r\nContent-Type: ${mixed}\r\n\r\n${sdp_part}${isup(';handling=optional')}--b1--\r\n--b0--`,
    ],
    [
      'as the last of alternatives',
      'multipart/alternative;boundary=b1',
      `${part('Content-Type: text/plain', 'no')}${sdp_part}--b1--`,
    ],
    [
      'beside early media of an application server (RFC 3959)',
      mixed,
      `${part('Content-Type: application/sdp\r\nContent-Disposition: early-session', 'v=0\r\n')}${sdp_part}--b1--`,
    ],
    ['in base64', mixed, part('Content-Type: application/sdp\r\nContent-Transfer-Encoding: base64', btoa(SDP))],
    [
      'in quoted-printable',
      mixed,
      part('Content-Type: application/sdp\r\nContent-Transfer-Encoding: quoted-printable', SDP.replaceAll('=', '=3D')),
    ],
  ]
  for (const [what, type, body] of table) {
    const { sdp, refused } = read(type, body)
    t.equal(sdp.replaceAll('\r\n', '\n').trim(), SDP.replaceAll('\r\n', '\n').trim(), what)
    t.equal(refused, null, what)
  }
  t.equal(read('application/sdp', SDP, { encoding: 'identity' }).sdp, SDP)
  t.equal(read('application/sdp', SDP, { disposition: 'session;handling=required' }).sdp, SDP)
})

t.test('what must be understood and is not is refused, and what may be left alone is', async t => {
  const mixed = 'multipart/mixed;boundary=b1'
  const table: readonly (readonly [string, string | null, string, string | null, string])[] = [
    ['a required part', mixed, `${sdp_part}${isup(';handling=required')}--b1--`, 'application/isup (signal)', SDP],
    [
      'the same in quotes and capitals',
      mixed,
      `${sdp_part}${isup('; Handling="REQUIRED"')}--b1--`,
      'application/isup (signal)',
      SDP,
    ],
    ['a lone type', 'application/isup', 'x', 'application/isup', ''],
    ['text', 'text/plain', SDP, 'text/plain', ''],
    ['no type and no SDP', null, 'hello', 'no Content-Type', ''],
    ['a multipart without a part', mixed, 'nothing', 'multipart/mixed without a part', ''],
    ['an empty body', 'application/isup', '', null, ''],
    ['a location alone', 'application/pidf+xml', PIDF, null, ''],
    ['parts without SDP', mixed, `${isup(';handling=optional')}--b1--`, null, ''],
    [
      'a required form beside one that we read',
      'multipart/alternative;boundary=b1',
      `${isup(';handling=required')}${sdp_part}--b1--`,
      null,
      SDP,
    ],
  ]
  for (const [what, type, body, refused, sdp] of table) {
    const reading = read(type, body)
    t.equal(reading.refused?.value ?? null, refused, what)
    t.equal(reading.sdp.trim(), sdp.trim(), what)
    if (refused) t.match(reading.refused?.headers, { Accept: /application\/sdp/ }, what)
  }
  t.match(read('application/sdp', 'x\u009c', { encoding: 'gzip' }), {
    sdp: '',
    refused: { value: 'application/sdp, encoded as gzip', headers: { 'Accept-Encoding': 'identity' } },
  })
  t.match(read('application/isup', 'x', { disposition: 'signal;handling=optional' }), { refused: null, sdp: '' })
})

t.test('a location and other parts are handed out with their ids, and what was left alone is named', async t => {
  const location = part('Content-Type: application/pidf+xml\r\nContent-ID: <loc@example.com>', PIDF)
  const reading = read('multipart/mixed;boundary=b1', `${sdp_part}${location}${isup('')}--b1--`)
  t.match(reading.parts[1], { type: 'application/pidf+xml', id: 'loc@example.com', content: PIDF })
  t.match(reading.notes, ['parts of the body were left alone: application/isup'])
  t.match(read(null, SDP).notes, [/without Content-Type/])
})

t.test('any body is read in linear time, within limits, and without an exception', async t => {
  const begun = process.cpuUsage().user
  for (const unit of ['--b1', '--b1\r\n', '\r\n--b1\r\n\r\n', '--b1\r\nA:\r\n b\r\n', '\n--b1--', '--b1 ', ':'])
    t.ok(read('multipart/mixed;boundary=b1', unit.repeat(60_000 / unit.length)).parts.length <= 33)
  let nested = SDP
  for (let i = 0; i < 50; i++) nested = `--b\r\nContent-Type: multipart/mixed;boundary=b\r\n\r\n${nested}\r\n--b--`
  t.equal(read('multipart/mixed;boundary=b', nested).sdp, '')
  t.ok(process.cpuUsage().user - begun < 2_000_000, 'seconds would mean quadratic work')
  const text = fc.string({ unit: anyCharacter, maxLength: 300 })
  fc.assert(
    fc.property(text, text, text, (type, disposition, body) => {
      read(type, body, { disposition })
      read(`multipart/mixed;boundary=${type}`, `--${type}\r\n${body}\r\n--${type}--`, { disposition })
    }),
  )
})

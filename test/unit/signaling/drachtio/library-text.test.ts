import { createRequire } from 'node:module'
import '../../../../signaling/drachtio/library.ts'
import { libraryName, readLibraryText } from '../../../../signaling/drachtio/library-text.ts'
import t from '../../../support/harness/index.ts'

const require = createRequire(import.meta.url)
const SipMessage = createRequire(require.resolve('drachtio-srf'))('./sip-parser/message') as new (
  text: string,
) => { readonly headers: Readonly<Record<string, string>>; get(name: string): string | undefined }

const head = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`

t.test('a text is read in the form of the library', async t => {
  const body = 'v=0\r\n\r\nmore: ü'
  const request = readLibraryText(
    `${head('INVITE sip:a@b SIP/2.0', 'v: SIP/2.0/UDP a', 'Via:SIP/2.0/UDP b', 'X-Tag : one', 'X-Tag: two\r\n\t  folded \r\n  ', 'no name', `l: ${Buffer.byteLength(body)}`)}${body}and more`,
  )
  t.match(request, { method: 'INVITE', uri: 'sip:a@b', version: '2.0', body })
  t.same(
    { ...request?.headers },
    {
      via: 'SIP/2.0/UDP a, SIP/2.0/UDP b',
      'X-Tag': 'one, two folded',
      'content-length': String(Buffer.byteLength(body)),
    },
    'compact names are written out, repeated values joined, folds removed, and lines without a name left out',
  )
  t.match(readLibraryText(head('SIP/2.0 486 Busy Here')), { status: 486, reason: 'Busy Here' })
  t.match(readLibraryText('SIP/2.0 200'), { status: 200, reason: '' })
  for (const text of ['', '\r\n', 'INVITE sip:a@b', 'SIP/2.0 x OK', 'SIP/2.0'])
    t.equal(readLibraryText(text), undefined)
})

t.test('the library reads each message so, and no name of a peer stands for another', async t => {
  const message = new SipMessage(
    head(
      ...['INVITE sip:a@b SIP/2.0', '%46rom: <sip:forged@x>', 'From: <sip:real@x>', 'constructor: c'],
      ...['P-Foo: p', 'toString: t', '__proto__: x', 'CALL-ID: i'],
    ),
  )
  t.equal(message.get('from'), '<sip:real@x>', 'an escaped name is no other name')
  t.equal(message.get('constructor'), 'c')
  t.equal(message.get('tostring'), 't')
  t.equal(message.get('p-foo'), 'p', 'a name that keeps its spelling is found in any')
  t.equal(message.get('Call-ID'), 'i')
  t.equal(message.get('valueOf'), undefined)
  t.equal(JSON.stringify({ message }), '{}', 'no message is written for a log that is off')
  for (const name of ['X-a', 'P-Foo', 'Diversion']) t.equal(libraryName(name), name)
  t.equal(libraryName('P-Asserted-Identity'), 'p-asserted-identity')
})

t.test('values of 60,000 bytes, quadratic for a reader that backtracks, are read as they are', async t => {
  for (const value of [`multipart/mixed;${'a'.repeat(60_000)}`, `a${' '.repeat(60_000)}b`, `${'; '.repeat(30_000)}x`]) {
    const text = `${head('INVITE sip:a@b SIP/2.0', `Content-Type: ${value}\r\n folded`)}x\r\n\r\ny`
    for (let times = 0; times < 20; times++) t.equal(new SipMessage(text).get('content-type'), `${value} folded`)
  }
})

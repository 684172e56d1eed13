import { parseCSeq } from '../../../../core/domain/sip/values.ts'
import { parseCommandMessage } from '../../../../signaling/edge/control/command.ts'
import { headerKind, isToken, spellingOf } from '../../../../signaling/edge/sip/headers.ts'
import { newBranch, newUuid } from '../../../../signaling/edge/sip/ids.ts'
import { bytesOf, Draft, decodedText, SipMessage, withTopVia } from '../../../../signaling/edge/sip/message.ts'
import { checkRequest, parseMessage } from '../../../../signaling/edge/sip/parse.ts'
import { StreamFramer } from '../../../../signaling/edge/sip/stream.ts'
import { parseNameAddress, parseUri, parseVia, splitList, tagOf } from '../../../../signaling/edge/sip/uri.ts'
import t from '../../../support/harness/index.ts'
import { anyCharacter, fc } from '../../../support/properties.ts'

// The pure parts of the SIP stack, as tables of cases and as properties.

t.test('URIs are parsed according to RFC 3261 §19.1', async t => {
  const cases: readonly (readonly [string, Partial<NonNullable<ReturnType<typeof parseUri>>> | undefined])[] = [
    ['sip:bob@example.com', { scheme: 'sip', user: 'bob', host: 'example.com', port: undefined }],
    ['SIPS:bob@example.com:5061', { scheme: 'sips', user: 'bob', port: 5061 }],
    ['sip:bob:secret@example.com', { user: 'bob', password: 'secret' }],
    ['sip:[2001:db8::1]:5070;transport=tcp', { host: '2001:db8::1', port: 5070 }],
    ['sip:user;par=u%40example.net@example.com', { user: 'user;par=u%40example.net', host: 'example.com' }],
    ['sip:a@b?Subject=x&Route=%3Csip:c%3E', { host: 'b', headers: 'Subject=x&Route=%3Csip:c%3E' }],
    ['tel:+123;phone-context=x', { scheme: 'tel', opaque: '+123;phone-context=x' }],
    ['sip:@example.com', undefined],
    ['sip:', undefined],
    ['sip:a@b:99999', undefined],
    ['sip:a@b:5o60', undefined],
    ['sip:a%4@b', undefined],
    ['sip:a b@c', undefined],
    ['sip:2001:db8::10', undefined],
    ['sip:[2001:db8:::1]', undefined],
    ['nonsense', undefined],
  ]
  for (const [text, expected] of cases) {
    const uri = parseUri(text)
    if (expected === undefined) t.equal(uri, undefined, `${text} is no URI`)
    else t.match(uri, expected, text)
  }
  t.equal(parseUri('sip:a@b;lr;transport=TCP')?.params.get('transport'), 'TCP')
  t.equal(parseUri('sip:a@b;lr')?.params.get('lr'), '')
})

t.test('addresses are parsed with and without brackets, quotes and display names', async t => {
  t.match(parseNameAddress('"A \\" <b>" <sip:a@b;x=1>;tag=t1'), { name: 'A " <b>', uri: 'sip:a@b;x=1' })
  t.equal(
    parseNameAddress('sip:a@b;tag=t2')?.params.get('tag'),
    't2',
    'parameters after a bare address belong to the header',
  )
  const { uri, params } = parseNameAddress('sip:a@b;+sip.instance="<urn:gsma:imei:1>";q=1') ?? {}
  t.same([uri, params?.get('q')], ['sip:a@b', '1'], 'brackets in a quoted parameter are not around the address')
  t.equal(parseNameAddress('"open <sip:a@b>'), undefined)
  t.equal(parseNameAddress('sip:a@b;x="<urn:1>" <sip:c@d>'), undefined)
  t.equal(parseNameAddress('Bell, A <sip:a@b>'), undefined)
  t.equal(parseNameAddress('<sip:a@b'), undefined)
  t.equal(tagOf('"x;tag=no" <sip:a@b;tag=no>;TAG=yes'), 'yes', 'a tag inside quotes or brackets is ignored')
  t.same(splitList('<sip:a@b>, "x, y" <sip:c@d;e=f,g>, , sip:h'), ['<sip:a@b>', '"x, y" <sip:c@d;e=f,g>', 'sip:h'])
  t.match(parseVia('SIP / 2.0 / UDP  a.example:5061 ;branch = z9hG4bKx;rport'), { transport: 'udp', port: 5061 })
})

t.test('identifiers are unique and well-formed', async t => {
  const many = new Set(Array.from({ length: 5_000 }, newBranch))
  t.equal(many.size, 5_000)
  t.match(newUuid(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  t.ok([...many].every(branch => branch.startsWith('z9hG4bK') && isToken(branch)))
})

t.test('a serialized message parses back, and no value breaks out of its header', async t => {
  const text = fc.string({ unit: anyCharacter, maxLength: 60 })
  fc.assert(
    fc.property(text, text, (value, body) => {
      const draft = Draft.request('MESSAGE', 'sip:a@b')
        .add('Via', 'SIP/2.0/UDP a;branch=z9hG4bKx')
        .add('From', '<sip:a@b>;tag=1')
        .add('To', '<sip:a@b>')
        .add('Call-ID', 'x')
        .add('CSeq', '1 MESSAGE')
        .add('X-Value', bytesOf(value))
      draft.body = bytesOf(body)
      const parsed = parseMessage(draft.serialize())
      if (parsed.kind !== 'message') return false
      const { message } = parsed
      return decodedText(message.body) === body && message.headers.length === 7 && checkRequest(message) === undefined
    }),
  )
  t.equal(spellingOf(headerKind('my-odd-header')), 'My-Odd-Header')
  t.equal(spellingOf(headerKind('call-id')), 'Call-ID')
  t.equal(spellingOf(headerKind('x-Keep')), 'x-Keep')
  t.equal(parseCSeq('2147483648 INVITE'), undefined, 'CSeq stays below 2^31')
})

t.test('rewriting the topmost Via leaves the rest of a message unchanged', async t => {
  const raw =
    'OPTIONS sip:a SIP/2.0\r\nSubject: one\r\n two\r\nv: SIP/2.0/UDP a\r\n ;branch=z9hG4bK1\r\nVia: SIP/2.0/UDP b\r\n\r\nVia: no'
  const message = new SipMessage()
  message.raw = raw
  t.equal(
    withTopVia(message, 'SIP/2.0/UDP a;branch=z9hG4bK1;rport=1'),
    raw.replace('v: SIP/2.0/UDP a\r\n ;branch=z9hG4bK1', 'Via: SIP/2.0/UDP a;branch=z9hG4bK1;rport=1'),
  )
})

t.test('a line without a name is left out with its folds, and is not passed on', async t => {
  const head = 'OPTIONS sip:x SIP/2.0\r\nTo: <sip:b@x>\r\n'
  for (const broken of ['no colon', ': value', 'two words: value', 'Via', 'Content-Length 5\r\n folded: on']) {
    const parsed = parseMessage(`${head}${broken}\r\n more\r\nFrom: <sip:a@x>;tag=a\r\n\r\nbody`)
    if (parsed.kind !== 'message') throw new Error(`${broken}: ${parsed.kind}`)
    t.match(
      [...parsed.message.headers].map(({ value }) => value),
      ['<sip:b@x>', '<sip:a@x>;tag=a'],
      broken,
    )
    t.notMatch(withTopVia(parsed.message, ''), /more|colon|words|folded/, broken)
    t.equal(parsed.message.body, 'body')
  }
})

t.test('a stream yields the same messages across any chunk boundaries', async t => {
  const one = 'OPTIONS sip:a SIP/2.0\r\nContent-Length: 5\r\n\r\nhello'
  const two = '\r\nSIP/2.0 200 OK\r\nl : 0\r\n\r\n'
  const whole = `${one}${two}\r\n\r\n${one}`
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 40 }), sizes => {
      const framer = new StreamFramer(1_000)
      const out: string[] = []
      let at = 0
      for (let i = 0; at < whole.length; i++) {
        const size = sizes[i % sizes.length] ?? 1
        for (const item of framer.push(whole.slice(at, at + size)))
          out.push(item.kind === 'message' ? item.text : item.kind)
        at += size
      }
      const messages = out.filter(item => item !== 'ping')
      return messages.length === 3 && messages[0] === one && messages[1] === two.trimStart() && messages[2] === one
    }),
  )
  const broken = new StreamFramer(100).push(`OPTIONS sip:a SIP/2.0\r\nX: ${'y'.repeat(200)}`)
  t.match(broken, [{ kind: 'broken', status: 513 }])
  t.match(new StreamFramer(100).push('A sip:a SIP/2.0\r\nl: -1\r\n\r\n'), [{ kind: 'broken', status: 400 }])
  t.match(new StreamFramer(100).push('A sip:a SIP/2.0\r\nl: 1\r\nl: 2\r\n\r\n'), [{ kind: 'broken', status: 400 }])
})

t.test('a Call-ID that no store can index is refused with 400', async t => {
  for (const [length, status] of [
    [1000, undefined],
    [1001, 400],
  ] as const) {
    const text = `OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bKx\r\nFrom: <sip:c@d>;tag=1\r\nTo: <sip:a@b>\r\nCall-ID: ${'x'.repeat(length)}\r\nCSeq: 1 OPTIONS\r\n\r\n`
    const parsed = parseMessage(text)
    t.equal(parsed.kind, 'message')
    if (parsed.kind === 'message') t.equal(checkRequest(parsed.message)?.status, status)
  }
})

t.test('headers of 20,000 delimiters, quadratic for a parser that backtracks, are refused with 400', async t => {
  // A parser that backtracks would take quadratic time for each of these.
  for (const unit of ['"', '\\"', ';', ',', '<', ';a="', '(', ' ', '%']) {
    const value = unit.repeat(20_000)
    const text = `OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bKx\r\nFrom: ${value}\r\nTo: ${value}\r\nContact: ${value}\r\n\r\n`
    const parsed = parseMessage(text)
    t.not(parsed.kind, 'junk')
    if (parsed.kind === 'message') t.equal(checkRequest(parsed.message)?.status, 400)
  }
  const head = 'OPTIONS sip:a@b SIP/2.0\r\nTo: <sip:a@b>\r\n'
  for (const [lines, value] of [
    ['a\r\n'.repeat(20_000), '<sip:a@b>'],
    [' a\r\n'.repeat(15_000), `<sip:a@b>${' a'.repeat(15_000)}`],
  ] as const) {
    const parsed = parseMessage(`${head}${lines}\r\n`)
    if (parsed.kind !== 'message') throw new Error(parsed.kind)
    t.equal(parsed.message.get('to'), value, 'neither lines without a name nor folds are searched or copied again')
  }
})

t.test('a value keeps its last character, whatever bytes that has', async t => {
  // The last byte of these is a no-break space in latin1, which `trim` removes.
  for (const name of ['Voilà', 'à', '\u2020']) {
    const value = bytesOf(name)
    const parsed = parseMessage(`OPTIONS sip:a SIP/2.0\r\nSubject:  ${value} \t\r\n ${value}\r\n\r\n`)
    if (parsed.kind !== 'message') throw new Error(parsed.kind)
    t.equal(decodedText(parsed.message.get('subject') ?? ''), `${name} ${name}`)
    const command = parseCommandMessage(`OPTIONS sip:a SIP/2.0\r\nX-Name: ${value}\r\n\r\n`)
    t.equal(decodedText(command?.headers[0]?.value ?? ''), name)
  }
})

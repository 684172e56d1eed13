import {
  dialled,
  headerOfUri,
  readAddress,
  readAddresses,
  readUri,
  unsentParameters,
} from '../../../../../core/domain/sip/address.ts'
import { quotedName } from '../../../../../core/domain/sip/names.ts'
import t from '../../../../support/harness/index.ts'

const number = (uri: string): string | undefined => {
  const address = readUri(uri)
  if (!address) return undefined
  const read = dialled(address, 'NG')
  return read.number ?? `not ours: ${read.context}`
}

t.test('a number is read in the context that it names', async t => {
  const table: readonly (readonly [string, string])[] = [
    // The context is the beginning of the global number.
    ['sip:2071234567;phone-context=+44@pbx.example;user=phone', '+442071234567'],
    ['sip:02071234567;phone-context=+44@pbx.example;user=phone', '+442071234567'],
    ['sip:2071234567;phone-context=%2B44@pbx.example', '+442071234567'],
    ['sip:207-123-4567;ext=9;phone-context=+44@pbx.example', '+442071234567'],
    ['sip:2071234567;PHONE-CONTEXT=+44@pbx.example', '+442071234567'],
    ['sip:2071234567@pbx.example;phone-context=+44;user=phone', '+442071234567'],
    ['sips:2071234567;phone-context=+44@pbx.example', '+442071234567'],
    ['tel:2071234567;phone-context=+44', '+442071234567'],
    ['tel:7042;phone-context=+1-201-555', '+12015557042'],
    ['tel:06-69812345;phone-context=+39', '+390669812345'],
    ['sip:8030000001;phone-context=+234@pbx.example', '+2348030000001'],
    // A short number of our own country is dialled as it is.
    ['sip:112;phone-context=+234@pbx.example', '112'],
    // A global number needs no context.
    ['sip:+442071234567;phone-context=example.com@pbx.example', '+442071234567'],
    ['sip:+442071234567;phone-context=+234@pbx.example', '+442071234567'],
    ['sip:00442071234567;phone-context=+234@pbx.example', '00442071234567'],
    // The plan of the host that is called is ours.
    ['sip:08030000001;phone-context=pbx.example@PBX.example', '08030000001'],
    // Other plans are not ours.
    ['sip:2071234567;phone-context=example.com@pbx.example', 'not ours: example.com'],
    ['sip:4711;phone-context=cdp.udp@pbx.example;user=phone', 'not ours: cdp.udp'],
    ['sip:911;phone-context=+1@pbx.example', 'not ours: +1'],
    ['tel:7042;phone-context=ims.mnc001.mcc234.3gppnetwork.org', 'not ours: ims.mnc001.mcc234.3gppnetwork.org'],
    ['sip:2071234567;phone-context=44@pbx.example', 'not ours: 44'],
    // Parameters, escapes and separators around a number.
    ['sip:+2348030000001;npdi;rn=+2348099999999;cic=+234-15@pbx.example', '+2348030000001'],
    ['sip:+2348030000001;tgrp=lagos;trunk-context=pbx.example@pbx.example;user=phone', '+2348030000001'],
    ['sip:+2348030000001;isub=42;postd=pp22@pbx.example', '+2348030000001'],
    ['sip:%2B2348030000001@pbx.example', '+2348030000001'],
    ['sip:%2B234%20803%20000%200001@pbx.example', '+234 803 000 0001'],
    ['sip:+234(803)000-0001:secret@pbx.example', '+234(803)000-0001'],
    ['tel:+234-803-000-0001', '+2348030000001'],
    ['sip:2348030000001', '2348030000001'],
    ['sip:pbx.example', ''],
    ['sip:192.0.2.1', ''],
    ['sip:1%0d%0aVia%20x@pbx.example', '1Via x'],
  ]
  for (const [uri, read] of table) t.equal(number(uri), read, uri)
})

t.test(
  'names are read without quotes, brackets in them are no address, and parameters belong to their part',
  async t => {
    const table: readonly (readonly [string, string | null, string, string | undefined])[] = [
      ['"<0412345678>" <sip:+2342010000001@x>;tag=a', '<0412345678>', '+2342010000001', 'a'],
      ['"Smith, Ada; Lagos" <sip:1@x>;tag=a', 'Smith, Ada; Lagos', '1', 'a'],
      ['"Ada \\"the first\\" L\\\\" <sip:1@x>;tag=a', 'Ada "the first" L\\', '1', 'a'],
      ['"x;tag=no" <sip:1@x;tag=no>;TAG=yes', 'x;tag=no', '1', 'yes'],
      ['Ada Lovelace <sip:1@x>;tag=a', 'Ada Lovelace', '1', 'a'],
      ['Zoë Adékúnlé <sip:1@x>;tag=a', 'Zoë Adékúnlé', '1', 'a'],
      ['"Zoë Adékúnlé" <sip:1@x>', 'Zoë Adékúnlé', '1', undefined],
      ['ada@example.com <sip:1@x>;tag=a', 'ada@example.com', '1', 'a'],
      ['"" <sip:1@x>;tag=a', null, '1', 'a'],
      ['""Ada Lovelace"" <sip:1@x>;tag=a', 'Ada Lovelace', '1', 'a'],
      ['"Ada "the first" L" <sip:1@x>;tag=a', 'Ada "the first" L', '1', 'a'],
      ['"Ada" or "<sip:2@x>" <sip:1@x>;tag=a', 'Ada" or "<sip:2@x>', '1', 'a'],
      ['<sip:1@x>', null, '1', undefined],
      ['sip:1@x;tag=a', null, '1', 'a'],
      ['tel:+234-803;tag=a', null, '+234-803', 'a'],
      ['<tel:803;phone-context=+234>;tag=a', null, '803', 'a'],
      ['"0412345678" <sip:anonymous@anonymous.invalid>', '0412345678', 'anonymous', undefined],
    ]
    for (const [value, name, user, tag] of table) {
      const read = readAddress(value)
      t.match(read, { name, user }, value)
      t.equal(read?.params.get('tag'), tag, value)
    }
    for (const bad of [
      '',
      '"open <sip:a@b>',
      '"a" b <sip:1@x>',
      '"a"b" <sip:1@x>',
      '<sip:a@b',
      `<sip:${'1'.repeat(3000)}@b>`,
      '<<<',
      null,
    ])
      t.equal(readAddress(bad), null, String(bad).slice(0, 40))
  },
)

t.test('lists are split outside quotes and brackets, and are bounded', async t => {
  const users = (value: string) => readAddresses(value).map(({ user }) => user)
  t.same(users('"a, b" <sip:1@x>, nonsense, <sip:2,3@x;p=a,b>,sip:4@x;q=1'), ['1', '2,3', '4'])
  t.equal(users(Array.from({ length: 50 }, (_, i) => `<sip:${i}@x>`).join(',')).length, 20)
  for (const unit of ['"', '\\"', ';', ',', '<', ';a="', '%', '=', '?&'])
    t.same(users(unit.repeat(50_000)), [], `${unit} repeated`)
})

t.test('the parameters that are not sent on, and the headers of a URI, are named', async t => {
  const address = readUri('sip:+234;npdi;rn=+2348099999999;phone-context=x@h?Reason=SIP%3Bcause%3D302&X-A=b')
  t.same(address && unsentParameters(address), ['npdi', 'rn=+2348099999999'])
  t.equal(address && headerOfUri(address, 'reason'), 'SIP;cause=302')
  t.equal(address && headerOfUri(address, 'to'), null)
})

t.test('a name that we write passes as it came and cannot leave its quotes', async t => {
  t.equal(quotedName('Zoë Adékúnlé'), '"Zoë Adékúnlé" ')
  t.equal(quotedName('Ada "x" \\ y'), '"Ada \\"x\\" \\\\ y" ')
  t.equal(quotedName('a\r\nVia: evil\0'), '"a Via: evil" ')
  t.equal(quotedName(null), '')
  t.equal(quotedName(' \t'), '')
  const long = readAddress(`${quotedName('é'.repeat(500))}<sip:1@x>`)
  t.equal(long?.name, 'é'.repeat(128))
  for (const name of ['"', '\\', '<sip:2@x>', 'a;tag=b', 'a, b', "o'Neil", '😀 Ada'])
    t.equal(readAddress(`${quotedName(name)}<sip:1@x>`)?.name, name)
})

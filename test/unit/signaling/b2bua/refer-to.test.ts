import { readReferTo } from '../../../../signaling/b2bua/refer-to.ts'
import t from '../../../support/harness/index.ts'

const target = (value: string) => {
  const reading = readReferTo(value)
  if ('refused' in reading) throw new Error(`refused with ${reading.refused}`)
  return reading.target
}

t.test('the number of a target is read from every form of URI, and the header is kept unchanged', async t => {
  const table: [string, string][] = [
    ['<sip:+2348030004711@pbx.example>', '+2348030004711'],
    ['sip:+2348030004711@pbx.example;user=phone', '+2348030004711'],
    ['"Front, Desk" <sips:100@[2001:db8::1]:5061;transport=tls>;x=1', '100'],
    ['Desk <sip:08030004711;npdi@pbx.example:5080>', '08030004711'],
    ['<sip:user:secret@pbx.example>', 'user'],
    ['<tel:+234-803-000-4711>', '+2348030004711'],
    ['<tel:803.000.4711;phone-context=+234>', '+2348030004711'],
    ['<tel:0803-000-4711;phone-context=+234>', '+2348030004711'],
    ['<tel:06-69812345;phone-context=+39>', '+390669812345'],
    ['<sip:8030004711;phone-context=+234@pbx.example;user=phone>', '+2348030004711'],
    ['<SIP:%2B2348030004711@x>', '+2348030004711'],
  ]
  for (const [value, number] of table) t.match(target(value), { raw: value, number, replaces: null }, value)
})

t.test('the escaped Replaces header names the dialog to take over; only X- headers pass besides', async t => {
  const value =
    '<sip:bob@x?Replaces=12345%40192.168.118.3%3Bto-tag%3D12345%3Bfrom-tag%3D5FFE-3994%3Bearly-only&X-A=b%20c&Route=x>'
  t.match(target(value).replaces, { call_id: '12345@192.168.118.3', to_tag: '12345', from_tag: '5FFE-3994' })
  t.same(target(value).headers, { 'X-A': 'b c' })
  const dialog = { call_id: 'a@h', to_tag: '1+2', from_tag: '3' }
  for (const bare of [
    'sip:100@x;method=INVITE?Replaces=a%40h%3Bto-tag%3D1+2%3Bfrom-tag%3D3&Require=replaces',
    'sip:100@x?Replaces=a@h;to-tag=1+2;from-tag=3',
  ])
    t.match(target(bare), { raw: bare, number: '100', replaces: dialog }, 'without brackets all of it is the URI')
  t.same(target('<sip:1@x?X-Strowger-CallSid=CA1>').headers, {}, 'our own X-Strowger headers do not pass')
  t.same(target('<sip:1@x?X-A=b%0d%0aVia:%20evil>').headers, { 'X-A': 'bVia: evil' }, 'without line breaks')
})

t.test('an invalid Refer-To is refused with 400, 416 or 501', async t => {
  const table: [string | null, number][] = [
    [null, 400],
    ['', 400],
    ['<sip:a@b>, <sip:c@d>', 400],
    ['sip:a@b, sip:c@d', 400],
    ['<sip:a@b', 400],
    ['<no uri>', 400],
    ['<sip:pbx.example>', 400],
    ['<sip:a@b?Replaces=x>', 400],
    [`<sip:${'1'.repeat(3000)}@b>`, 400],
    ['<mailto:a@b>', 416],
    ['<http://example.com/>', 416],
    ['<sip:a@b;method=BYE>', 501],
    ['<tel:911;phone-context=example.com>', 484],
  ]
  for (const [value, code] of table) t.match(readReferTo(value), { refused: code }, String(value).slice(0, 40))
})

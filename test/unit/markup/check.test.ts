import { checkDocument } from '../../../markup/check.ts'
import t from '../../support/harness/index.ts'
import { BASE, response } from './phone.ts'

function lines(text: string, options?: Parameters<typeof checkDocument>[1]): string[] {
  return checkDocument(text, options).advice.map(
    ({ line, column, level, number, rule, suggestion }) =>
      `${line}:${column} ${level} ${number} ${rule}${suggestion === null ? '' : ` (${suggestion})`}`,
  )
}

t.test('a valid document gets no advice', async t => {
  t.strictSame(checkDocument(response('<Say>Hello</Say>', '<Gather action="https://x.example/a"/>', '<Hangup/>')), {
    ok: true,
    advice: [],
  })
})

t.test('lists all faults in document order, with suggestions', async t => {
  t.strictSame(
    lines(
      response(
        '<say>a</say>',
        '<Say vioce="man" loop="x">a</Say>',
        '<Dial><Numbr>1</Numbr></Dial>',
        '<Gather><Dial/></Gather>',
      ),
      { url: BASE },
    ),
    [
      '2:1 warning 12200 unknown_element (did you mean "Say"?)',
      '3:6 warning 12200 unknown_attribute (did you mean "voice"?)',
      '3:18 warning 13510 bad_value',
      '4:1 warning 12200 missing',
      '4:7 warning 13215 misplaced_element (did you mean "Number"?)',
      '5:9 warning 13320 misplaced_element',
    ],
  )
})

t.test('a document that does not parse gets one error, with a suggested fix', async t => {
  t.strictSame(lines('\n<?xml version="1.0"?><Response/>'), [
    '2:6 error 12100 syntax (nothing, not even a line break, may stand before the XML declaration)',
  ])
  t.match(lines('<Response><Play>http://x/?a=1&b=2</Play></Response>'), [/1:30 error 12100 syntax/])
  t.match(lines('<!DOCTYPE x><Response/>'), [/12100 syntax \(remove the DOCTYPE/])
  t.match(lines('<Say>x</Say>'), [/12102 syntax \(put the verbs into/])
  t.equal(checkDocument('<Response').ok, false)
})

t.test('reports unreachable verbs once', async t => {
  for (const verb of [
    '<Redirect>https://x.example/</Redirect>',
    '<Hangup/>',
    '<Reject/>',
    '<Echo/>',
    '<Dial action="https://x.example/">+2348030000001</Dial>',
    '<Enqueue action="https://x.example/">q</Enqueue>',
  ]) {
    t.strictSame(
      lines(response(verb, '<Say>a</Say>', '<Say>b</Say>')),
      ['3:1 warning null unreachable (remove it, or move it up)'],
      verb,
    )
  }
  t.strictSame(lines(response('<Dial>+2348030000001</Dial>', '<Say>a</Say>')), [])
})

t.test('relative URLs are noted only in an inline document, with the level of a call', async t => {
  const text = response(
    '<Gather action="/a"><Play>b.wav</Play></Gather>',
    '<Record/>',
    '<Dial><Number url="w">+2348030000001</Number></Dial>',
    '<Redirect>next</Redirect>',
  )
  t.strictSame(lines(text, { url: BASE }), [])
  t.strictSame(lines(text), [
    '2:9 error 11100 relative_url (write an absolute URL)',
    '2:21 warning 11100 relative_url (write an absolute URL)',
    '3:1 warning 11100 relative_url (add an absolute action)',
    '4:15 warning 11100 relative_url (write an absolute URL)',
    '5:1 error 11100 relative_url (write an absolute URL)',
  ])
  t.strictSame(lines(response('<Gather action=""/>')), ['2:1 error 11100 relative_url (add an absolute action)'])
})

t.test('the check reports attributes without effect', async t => {
  t.strictSame(lines(response('<Dial callReason="hi">+2348030000001</Dial>')), ['2:7 warning null no_effect'])
})

t.test('the kind of a document decides which verbs it may contain', async t => {
  const text = response('<Leave/>', '<Dial>1234</Dial>')
  t.strictSame(lines(text), ['2:1 warning 12200 misplaced_element'])
  t.strictSame(lines(text, { kind: 'queue_wait' }), [
    '3:1 error 13201 misplaced_element',
    '3:1 warning null unreachable (remove it, or move it up)',
  ])
})

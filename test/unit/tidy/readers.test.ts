import t from '../../support/harness/index.ts'
import { readerFindings } from '../../tidy/readers.ts'

/** Returns the findings on one file of signaling, beside those on readers that are missing here. */
const findings = (text: string): string[] =>
  readerFindings([{ path: 'signaling/x.ts', text }]).filter(finding => finding.startsWith('signaling/x.ts'))

t.test('a header without a reader is found, however it is asked for', async t => {
  for (const text of [
    "request.header('x-unheard')",
    "message.lists('X-Unheard', 'a')",
    "headerOf(text, 'X-Unheard')",
    "if (h.kind.id === 'x-unheard') return",
    "if (headerId(name) === 'x-unheard') return",
    "headers['x-unheard']",
  ])
    t.match(findings(text), [/reads the header x-unheard/], text)
})

t.test('a second way to take a value apart is found', async t => {
  for (const text of [
    "Number(response.header('min-se') ?? '')",
    "/^refer/.test(request.header('event') ?? '')",
    "(invite.header('privacy') ?? '').split(';')",
    "(invite.header('privacy') ?? '')\n    .split(';')",
    "const hops = invite.header('max-forwards')\n  return /^\\d+$/.test(hops)",
  ])
    t.match(findings(text), [/takes the header \S+ apart/], text)
  t.match(findings('const tls = /^sips:/i.test(uri)'), [/reads a SIP URI/])
  t.match(findings('const tcp = /;transport=tcp/i.test(uri)'), [/reads the transport/])
  for (const text of [
    "readSeconds(response.header('min-se'))",
    "request.header('user-agent')?.slice(0, 200)",
    "request.lines('contact').includes('*')",
    "uri.params.get('expires').split(',')",
    "req.headers['sec-websocket-protocol'].split(',')",
  ])
    t.same(findings(text), [], text)
})

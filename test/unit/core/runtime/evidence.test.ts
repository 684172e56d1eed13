import { checkEvidence, type Evidence, publishedKey, signedEvidence } from '../../../../core/runtime/evidence.ts'
import t from '../../../support/harness/index.ts'

// Signed evidence of a call: every change of it is found, and named.

const KEY = Buffer.alloc(32, 7)
const OTHER = Buffer.alloc(32, 8)
const ABOUT = { call_id: 'CA1', made_at: '2026-03-11T12:00:00.000Z', made_by: 'https://voice.test' }
const PARTS = {
  call: { id: 'CA1', price: { amount_minor: 28 }, recordings: [{ id: 'RE1', sha256: 'ab' }] },
  ladder: { messages: [{ text: 'INVITE sip:a SIP/2.0' }] },
  decision: { decision: null, words: ['Admitted.'] },
  media: { legs: [{ figures: { mos: 4.1 } }] },
  audit: [{ id: 'aud_1', hash: 'cd' }],
}
const made = signedEvidence(ABOUT, PARTS, KEY)
const pem = publishedKey(KEY)
const check = (evidence: unknown, key: string | undefined = pem) => checkEvidence(JSON.stringify(evidence), key)

/** A deep copy with one change. */
function changed(change: (copy: { -readonly [K in keyof Evidence]: never }) => void): unknown {
  const copy = JSON.parse(JSON.stringify(made))
  change(copy)
  return copy
}

t.test('evidence as it was made is intact, however its JSON is laid out', async t => {
  t.match(check(made), { intact: true, about: ABOUT, findings: [] })
  t.match(checkEvidence(JSON.stringify(made, null, 2)), { intact: true })
  const turned = { ...made, parts: Object.fromEntries(Object.entries(made.parts).reverse()) }
  t.match(check(turned), { intact: true })
  t.equal(publishedKey(KEY), pem, 'the key follows from the master key')
})

t.test('a member that stands twice is found: other programs show the first of them, and we check the last', async t => {
  const text = JSON.stringify(made)
  for (const [forged, name] of [
    [text.replace('"parts":', '"parts":{"call":{"id":"CA9"}},"parts":'), 'parts'],
    [text.replace('"id":"CA1"', '"\\u0069d" :"CA9","id":"CA1"'), 'id'],
    [text.replace('"mos":4.1', '"mos":1,"mos":4.1'), 'mos'],
  ] as const) {
    t.match(JSON.parse(forged), made, 'the last of them is unchanged')
    t.match(checkEvidence(forged, pem), { intact: false, findings: [new RegExp(`"${name}" stands twice`)] })
  }
  const quoted = signedEvidence(ABOUT, { call: [{ a: '{"a":1,"a":2}' }, { a: 'b":"c' }, { a: '\\' }] }, KEY)
  t.match(check(quoted), { intact: true }, 'texts have no members, and each object its own')
})

for (const part of Object.keys(PARTS))
  t.test(`a change of the part ${part} is found and named`, async t => {
    const deep = changed(({ parts }) => {
      const found = JSON.stringify(parts[part]).replace(/"([a-z])/, '"x$1')
      ;(parts as Record<string, unknown>)[part] = JSON.parse(found)
    })
    t.match(check(deep), { intact: false, findings: [`The part "${part}" was changed.`] })
    const without = changed(({ parts }) => void delete parts[part])
    t.match(check(without), { intact: false, findings: [`The part "${part}" was removed.`] })
  })

t.test('what is added, and a changed head, digest, signature or key, is found', async t => {
  const cases: [what: string, evidence: unknown, finding: RegExp][] = [
    ['a part', changed(e => Object.assign(e.parts, { more: 1 })), /"more" was added/],
    ['a member', { ...made, note: 'x' }, /"note" was added/],
    ['the call', changed(e => Object.assign(e.about, { call_id: 'CA2' })), /signature does not fit/],
    ['the time', changed(e => Object.assign(e.about, { made_at: '2020-01-01T00:00:00.000Z' })), /signature does not/],
    ['the signature', changed(e => Object.assign(e, { signature: 'AAAA' })), /signature does not fit/],
    ['the key', changed(e => Object.assign(e, { public_key: 'AAAA' })), /signature does not fit/],
    ['all of it, by another', signedEvidence(ABOUT, PARTS, OTHER), /Another key/],
    [
      'a part with its digest',
      { ...made, ...(({ parts, digests }) => ({ parts, digests }))(signedEvidence(ABOUT, { call: {} }, OTHER)) },
      /signature does not fit/,
    ],
  ]
  for (const [what, evidence, finding] of cases) {
    const { intact, findings } = check(evidence)
    t.notOk(intact, what)
    t.match(findings.join(' '), finding, what)
  }
})

t.test('what is no evidence is refused with a sentence', async t => {
  for (const [text, why] of [
    ['', /no JSON/],
    ['[]', /no evidence/],
    ['{"format":"strowger-evidence-1"}', /members of it are missing/],
  ] as const)
    t.throws(() => checkEvidence(text), why, text)
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { publishedKey, signedEvidence } from '../../../core/runtime/evidence.ts'
import { strowger } from '../../support/child.ts'
import t from '../../support/harness/index.ts'

// `strowger verify`: offline, in a folder without an installation.

const folder = mkdtempSync(join(tmpdir(), 'strowger-verify-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
const [ours, another] = [Buffer.alloc(32, 7), Buffer.alloc(32, 8)]
const about = { call_id: 'CA1', made_at: '2026-03-11T12:00:00.000Z', made_by: 'https://voice.test' }
const good = JSON.stringify(signedEvidence(about, { call: { id: 'CA1', price_minor: 28 } }, ours))
const key = file('key.pem', publishedKey(ours))
const verify = (...words: string[]) => strowger(['verify', ...words], { HOME: folder, STROWGER_DATA: folder }).ended

t.test('strowger verify: a bundle as it was made is intact', async t => {
  const verdict = await verify(file('good.json', good), '--key', key)
  t.match(verdict, { code: 0, stdout: /call CA1.*\nintact, signed by the expected key/ })
})

t.test('strowger verify: one changed byte is found, and named', async t => {
  const verdict = await verify(file('changed.json', good.replace(':28', ':29')), '--key', key)
  t.match(verdict, { code: 1, stdout: /The part "call" was changed/, stderr: /the evidence was modified/ })
  t.notMatch(verdict.stdout, /intact/)
})

t.test('strowger verify: a bundle that another installation signed is refused', async t => {
  const verdict = await verify(join(folder, 'good.json'), '--key', file('other.pem', publishedKey(another)), '--json')
  t.match(verdict, { code: 1 })
  t.match(JSON.parse(verdict.stdout), { intact: false })
})

import { csvCell, readCell } from '../../../../../core/domain/text/csv.ts'
import { oneLine, visible } from '../../../../../core/domain/text/visible.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'

t.test('a terminal is shown the control characters of a text, and obeys none', async t => {
  t.equal(visible('a\u001b[2Jb\u0007\u009b5m\rc\u202ed'), 'a\\u001b[2Jb\\u0007\\u009b5m\\u000dc\\u202ed')
  t.equal(visible('INVITE sip:a SIP/2.0\r\nVia: x\n\tfolded\n'), 'INVITE sip:a SIP/2.0\r\nVia: x\n\tfolded\n')
  t.equal(visible('Zoë Adékúnlé 😀'), 'Zoë Adékúnlé 😀')
  for (const unseen of ['\u00ad', '\u200b', '\u2060', '\u3164', '\ufeff', '\u202e', '\u2066'])
    t.match(visible(`Ac${unseen}me`), /^Ac\\u[0-9a-f]{4}me$/, JSON.stringify(unseen))
  for (const joined of ['Ac\u200dme', 'Ac\u200cme', '\u200dAcme'])
    t.match(visible(joined), /\\u200[cd]/, 'a joiner that joins nothing')
  for (const plain of ['👩‍🚀 Ada', 'क्‍ष', 'می‌خواهم', 'ÀÉ\r\n'])
    t.equal(visible(plain), plain, 'scripts and emoji keep theirs')
  t.equal(oneLine('Shop\nok  paid\r\nx'), 'Shop ok  paid x', 'a value cannot add a line')
})

t.test('no CSV cell is a formula, and each is read back as it was', async t => {
  const hidden = ['\u200b=1', '\ufeff@x', '＝1', '＋1', '\n=1']
  for (const text of ['=HYPERLINK("http://x")', '+1', '-1', '@SUM(A1)', '\tx', ...hidden])
    t.match(csvCell(text), /^"?'/, text)
  t.equal(csvCell('Nigeria, mobile'), '"Nigeria, mobile"')
  t.equal(csvCell('Nigeria'), 'Nigeria')
  const parsed = (cell: string) => (cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell)
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...`='+-@",a \t\u200b＝\n`) }), text => {
      t.equal(readCell(parsed(csvCell(text))), text)
    }),
  )
})

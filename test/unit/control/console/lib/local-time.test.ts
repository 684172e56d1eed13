import { localTimeOf, localTimeText } from '../../../../../control/console/lib/local-time.ts'
import t from '../../../../support/harness/index.ts'

t.test('a date and time is read in one form, whatever the language of the browser', async t => {
  t.equal(localTimeOf('2026-11-26 14:30'), '2026-11-26T14:30')
  t.equal(localTimeOf(' 2026-11-26T14:30 '), '2026-11-26T14:30')
  t.equal(localTimeOf('2026-11-26'), '2026-11-26T00:00')
  for (const wrong of ['', '11/26/2026', '26.11.2026', '2026-11-2', '2026-02-30', '2026-13-01', '2026-11-26 24:30'])
    t.equal(localTimeOf(wrong), null, wrong)
  t.equal(localTimeText('2026-11-26T14:30'), '2026-11-26 14:30')
})

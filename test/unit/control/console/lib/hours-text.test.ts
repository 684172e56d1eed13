import { hoursText, readHours } from '../../../../../control/console/lib/hours-text.ts'
import t from '../../../../support/harness/index.ts'

t.test('hours of a policy are lines of text, which read back to the same windows', t => {
  const windows = [
    { days: ['monday', 'friday'], from: '08:00', to: '18:30' },
    { days: ['saturday'], from: '22:00', to: '06:00' },
  ] as const
  t.same(readHours(hoursText(windows)), windows)
  t.same(readHours(' Mon-Wed, fri 08:00-18:00\n\n'), [
    { days: ['monday', 'tuesday', 'wednesday', 'friday'], from: '08:00', to: '18:00' },
  ])
  t.same(readHours('sat-mon 09:00-10:00'), [{ days: ['saturday', 'sunday', 'monday'], from: '09:00', to: '10:00' }])
  t.equal(readHours(' \n'), null, 'no line: always')
  t.match(readHours('someday 25:00-x'), [{ days: ['someday'], from: '25:00', to: 'x' }], 'the API refuses it by name')
  t.end()
})

import {
  type CallingWindow,
  isWithin,
  localTimeOf,
  localTimeText,
} from '../../../../../core/domain/policies/calling-hours.ts'
import t from '../../../../support/harness/index.ts'

// The hours in which a policy lets calls begin.

const office: CallingWindow = { days: ['monday', 'friday'], from: '08:00', to: '18:30' }
const night: CallingWindow = { days: ['friday'], from: '22:00', to: '06:00' }
const at = (weekday: Parameters<typeof isWithin>[1]['weekday'], time: string) => {
  const [hours, minutes] = time.split(':').map(Number)
  return { weekday, minute: (hours ?? 0) * 60 + (minutes ?? 0) }
}

t.test('a window has its first minute and not its last; one that ends earlier ends on the next day', async t => {
  const cases: [windows: CallingWindow[], moment: ReturnType<typeof at>, open: boolean][] = [
    [[office], at('monday', '07:59'), false],
    [[office], at('monday', '08:00'), true],
    [[office], at('monday', '18:29'), true],
    [[office], at('monday', '18:30'), false],
    [[office], at('tuesday', '12:00'), false],
    [[night], at('friday', '21:59'), false],
    [[night], at('friday', '22:00'), true],
    [[night], at('saturday', '05:59'), true],
    [[night], at('saturday', '06:00'), false],
    [[night], at('friday', '05:00'), false],
    [[{ days: ['sunday'], from: '20:00', to: '02:00' }], at('monday', '01:00'), true],
    [[{ days: ['sunday'], from: '00:00', to: '24:00' }], at('sunday', '23:59'), true],
    [[{ days: ['sunday'], from: '00:00', to: '24:00' }], at('monday', '00:00'), false],
    [[{ days: ['sunday'], from: '09:00', to: '09:00' }], at('monday', '08:00'), true],
    [[office, night], at('saturday', '01:00'), true],
    [[], at('monday', '12:00'), false],
  ]
  for (const [windows, moment, open] of cases)
    t.equal(isWithin(windows, moment), open, `${JSON.stringify(windows)} at ${localTimeText(moment)}`)
})

t.test('clocks of the zone count, also when they are turned', async t => {
  const text = (instant: string, zone: string) => localTimeText(localTimeOf(Date.parse(instant), zone))
  t.equal(text('2026-03-08T23:30:00Z', 'Africa/Lagos'), 'Monday 00:30')
  t.equal(text('2026-03-29T00:59:00Z', 'Europe/London'), 'Sunday 00:59')
  t.equal(text('2026-03-29T01:00:00Z', 'Europe/London'), 'Sunday 02:00')
  t.equal(text('2026-03-09T00:00:00Z', 'UTC'), 'Monday 00:00')
})

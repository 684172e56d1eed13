import { heardSince, withHeard } from '../../../../../control/console/lib/heard-calls.ts'
import t from '../../../../support/harness/index.ts'

const heard = (...calls: readonly (readonly [id: string, status: string, heard_ms: number])[]) =>
  new Map(calls.map(([id, status, heard_ms]) => [id, { call: { id, status }, heard_ms }]))
const row = (id: string, status: string) => ({ id, status, codec: 'PCMA' })

t.test('a call that begins or changes while a read is on its way stays as its event told', async t => {
  // The read began at 100. The platform made its answer before both events.
  const events = heard(['new', 'ringing', 120], ['old', 'in-progress', 130])
  t.same(withHeard([row('old', 'ringing')], 100, events), [
    { id: 'new', status: 'ringing' },
    { id: 'old', status: 'in-progress', codec: 'PCMA' },
  ])
})

t.test('a read that began after an event has it', async t => {
  const events = heard(['gone', 'ringing', 120], ['old', 'ringing', 130], ['new', 'ringing', 200])
  t.same(withHeard([row('old', 'in-progress')], 200, events), [
    { id: 'new', status: 'ringing' },
    { id: 'old', status: 'in-progress', codec: 'PCMA' },
  ])
  t.same([...heardSince(events, 200).keys()], ['new'])
})

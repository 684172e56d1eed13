import t from 'tap'
import { coreTests } from './cpp.ts'

t.test('the core passes its own tests', { timeout: 280_000 }, async t => {
  await coreTests(t, 'none', [], 450)
})

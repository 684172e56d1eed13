import t from 'tap'
import { coreTests } from './cpp.ts'

t.test('the threads of the engine pass under ThreadSanitizer', { timeout: 280_000 }, async t => {
  await coreTests(t, 'thread', [], 5)
})

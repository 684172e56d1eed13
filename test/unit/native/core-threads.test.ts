import t from '../../support/harness/index.ts'
import { coreTests } from './cpp.ts'

// #own-process: it compiles and runs the tests of the C++ core.
t.test('the threaded tests of the C++ core pass under ThreadSanitizer', async t => {
  await coreTests(t, 'thread', [], 5)
})

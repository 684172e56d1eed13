import t from '../../support/harness/index.ts'
import { coreTests } from './cpp.ts'

// #own-process: it compiles and runs the tests of the C++ core.
t.test('the C++ core passes its own tests under AddressSanitizer and UBSan', async t => {
  await coreTests(t, 'address', [], 380)
})

import { fuzz } from '../../fuzz/markup/main.ts'
import t from '../../support/harness/index.ts'

// For a long run: `node build/test/fuzz/markup/main.js --count 500000`.
t.test('mutated documents do not crash the parser, the check or the interpreter', async t => {
  const seen = fuzz(4000, 20261121)
  t.equal(seen.refused + seen.warned + seen.clean, 4000)
  t.ok(seen.warned > 400, 'many documents are well-formed but faulty')
  t.ok(seen.clean > 40, 'some documents remain valid')
})

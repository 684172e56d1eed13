import t from 'tap'
import { fuzz } from '../../fuzz/markup/main.ts'

// `node build/test/fuzz/markup/main.js --count 500000` is the long run.
t.test('mutated documents never break the parser, the check or the interpreter', async t => {
  const seen = fuzz(4000, 20261121)
  t.equal(seen.refused + seen.warned + seen.clean, 4000)
  t.ok(seen.warned > 400, 'many are well-formed and faulty')
  t.ok(seen.clean > 40, 'some stay good')
})

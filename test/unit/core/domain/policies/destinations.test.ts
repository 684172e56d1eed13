import {
  applicableRules,
  compileRules,
  type DestinationRule,
  decideDestination,
  prefixesOf,
} from '../../../../../core/domain/policies/destinations.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'

const rule = (op: 'allow' | 'deny', prefix: string): DestinationRule => ({
  op,
  kind: 'prefix',
  value: prefix,
  prefix,
  label: null,
})
const decide = (rules: readonly DestinationRule[], digits: string) => {
  const compiled = compileRules(rules)
  return decideDestination(digits, applicableRules(compiled, digits))
}

t.test(
  'the longest match decides, deny wins a tie, and one allow rule denies everything it does not match',
  async t => {
    t.equal(decide([], '2348031234567').allowed, true)
    t.equal(decide([rule('deny', '23490')], '2348031234567').allowed, true)
    t.equal(decide([rule('deny', '234')], '2348031234567').allowed, false)
    t.equal(decide([rule('deny', '234'), rule('allow', '23480')], '2348031234567').allowed, true)
    t.equal(decide([rule('allow', '234'), rule('deny', '23480')], '2348031234567').allowed, false)
    t.equal(decide([rule('allow', '23480'), rule('deny', '23480')], '2348031234567').allowed, false)
    t.equal(decide([rule('deny', '23480'), rule('allow', '23480')], '2348031234567').allowed, false)
    t.equal(decide([rule('allow', '1')], '2348031234567').allowed, false)
    t.equal(decide([rule('allow', '1')], '2348031234567').rule, null)
    t.equal(decide([rule('deny', ''), rule('allow', '234')], '2348031234567').allowed, true)
  },
)

t.test('compiled rules decide as an evaluation of all rules does', async () => {
  const anyRule = fc.record({
    op: fc.constantFrom('allow' as const, 'deny' as const),
    prefix: fc.stringMatching(/^[12]{0,4}$/),
  })
  fc.assert(
    fc.property(fc.array(anyRule, { maxLength: 30 }), fc.stringMatching(/^[12]{6}$/), (list, digits) => {
      const rules = list.map(({ op, prefix }) => rule(op, prefix))
      const plain = decideDestination(digits, { rules, has_allow: rules.some(({ op }) => op === 'allow') })
      const compiled = decide(rules, digits)
      return plain.allowed === compiled.allowed && plain.rule?.prefix === compiled.rule?.prefix
    }),
    { numRuns: 3000 },
  )
})

t.test('lists every prefix of a number, longest first', async t => {
  t.same(prefixesOf('123'), ['123', '12', '1', ''])
})

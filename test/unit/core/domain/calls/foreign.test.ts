import { isForeign } from '../../../../../core/domain/calls/foreign.ts'
import t from '../../../../support/harness/index.ts'

t.test('a caller is foreign to every tenant that may not read its data', async t => {
  const tenant = (project_id: string, subaccount_id: string | null = null) => ({ project_id, subaccount_id })
  const cases = [
    ['a carrier', null, tenant('a'), false],
    ['its own peer', tenant('a'), tenant('a'), false],
    ['another project’s', tenant('a'), tenant('b'), true],
    ['its subaccount’s, to a project', tenant('a', 's'), tenant('a'), false],
    ['its project’s, to a subaccount', tenant('a'), tenant('a', 's'), true],
    ['another subaccount’s', tenant('a', 's'), tenant('a', 'r'), true],
    ['its own, to a subaccount', tenant('a', 's'), tenant('a', 's'), false],
    ['of a like-named subaccount elsewhere', tenant('a', 's'), tenant('b', 's'), true],
  ] as const
  for (const [who, caller, owner, foreign] of cases) t.equal(isForeign(caller, owner), foreign, who)
})

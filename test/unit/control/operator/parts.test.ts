import { OPERATOR_ROUTES } from '../../../../control/operator/index.ts'
import { operatorRoute } from '../../../../control/operator/parts.ts'
import t from '../../../support/harness/index.ts'

t.test('a command finds every endpoint of the operators’ API by its method and path, and no other', async t => {
  for (const route of OPERATOR_ROUTES)
    t.equal(await operatorRoute(route.method, route.path), route, `${route.method} ${route.path}`)
  for (const [method, path] of [
    ['delete', '/projects'],
    ['get', '/constructor'],
    ['get', '/'],
    ['get', ''],
  ] as const)
    t.equal(await operatorRoute(method, path), undefined, `${method} ${path}`)
})

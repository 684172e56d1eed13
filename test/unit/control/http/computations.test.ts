import type { Caller } from '../../../../control/http/caller.ts'
import { createComputations } from '../../../../control/http/computations.ts'
import { perform } from '../../../../control/http/perform.ts'
import { isRefusal, Refused } from '../../../../control/http/reply.ts'
import type { Route } from '../../../../control/http/route.ts'
import type { HttpServices } from '../../../../control/http/services.ts'
import { members } from '../../../../control/session/members.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { addTenant } from '../../../support/tenants.ts'

const SLICES = 3

/** A computation of so many slices, which notes each. */
const slices =
  (name: string, done: string[], fails = false) =>
  async (breathe: () => Promise<void>): Promise<string> => {
    for (let slice = 0; slice < SLICES; slice++) {
      await breathe()
      done.push(name)
    }
    if (fails) throw new Error(name)
    return name
  }

t.test('long computations take turns, so that a request waits for one slice at most', async t => {
  const computations = createComputations()
  const done: string[] = []
  let since_turn = 0
  let most = 0
  let over = false
  const turn = (): void => {
    most = Math.max(most, done.length - since_turn)
    since_turn = done.length
    if (!over) setImmediate(turn)
  }
  setImmediate(turn)
  const names = ['a', 'b', 'c', 'd']
  const ended = await Promise.allSettled(
    names.map((name, at) => computations.run(`key_${at}`, slices(name, done, name === 'b'))),
  )
  over = true
  t.same(done.join(''), 'aaabbbcccddd', 'one ends before the next goes on')
  t.same(
    ended.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
    'one that fails leaves its place',
  )
  t.equal(most, 1)
  t.equal(await computations.run('key_0', slices('e', done)), 'e')
})

t.test('a caller has two computations at a time, and all together eight; a rival is not refused for it', async t => {
  const computations = createComputations()
  const done: string[] = []
  const run = (caller: string) => computations.run(caller, slices(caller, done)).catch((error: unknown) => error)
  const refusal = { refusal: { refused: 'rate_limited' } }
  const outcomes = await Promise.all(['a', 'a', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(run))
  t.same(
    outcomes.map(one => (one instanceof Refused ? 'refused' : one)),
    ['a', 'a', 'refused', 'b', 'c', 'd', 'e', 'f', 'g', 'refused'],
  )
  t.match(outcomes[2], refusal)
  t.match(outcomes[9], refusal)
  t.equal(await run('a'), 'a', 'afterwards there is room')
})

t.test('passwords of members are hashed in turns, and the members of an organization have one share', async t => {
  const w = await controlPlane(t)
  const rival = await addTenant(w.state, w.settings.master_key, [])
  const services = { ...w, computations: createComputations() } as unknown as HttpServices
  const organizationOf = (project_id: string) =>
    w.state.db.selectFrom('project').select('organization_id').where('id', '=', project_id).executeTakeFirstOrThrow()
  const [own, other] = [await organizationOf(w.demo.project_id), await organizationOf(rival.project_id)]
  const route = members.find(({ method, path }) => method === 'post' && path === '/members') as Route
  const add = async (name: string, { organization_id }: { readonly organization_id: string }) => {
    const caller: Caller = {
      kind: 'member',
      id: name,
      organization_id,
      project_id: null,
      role: 'org:admin',
      scopes: new Set(),
      subaccount_id: null,
      operator: false,
      actor: { type: 'user', id: name, name, detail: null },
    }
    const body = { email: `${name}@example.com`, password: 'a password of members', role: 'org:viewer' }
    const answer = await perform(route, { body }, caller, services)
    return isRefusal(answer) ? answer.refused : answer.status
  }
  const outcomes = await Promise.all([add('a', own), add('b', own), add('c', own), add('d', other)])
  t.same(outcomes, [201, 201, 'rate_limited', 201])
  t.equal(await add('c', own), 201, 'afterwards there is room')
})

t.test('a short computation does not wait for a long one', async t => {
  const computations = createComputations()
  const done: string[] = []
  const long = computations.run('a', slices('a', done))
  t.equal(await computations.run('a', async () => 'hashed'), 'hashed')
  t.same(done, [])
  await long
})

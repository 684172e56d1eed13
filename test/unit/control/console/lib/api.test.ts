import { additionKey } from '../../../../../control/console/lib/additions.ts'
import t from '../../../../support/harness/index.ts'

// The session's module reads what the browser keeps.
Object.assign(globalThis, { localStorage: { getItem: () => null, setItem: () => undefined } })
const { ask } = await import('../../../../../control/console/lib/api.ts')

type Answer = () => Response | Promise<Response>

/** Puts the answers in the place of the network, one after the other. Returns the keys of the requests. */
function network(t: { teardown(undo: () => void): void }, ...answers: readonly Answer[]): readonly string[] {
  const keys: string[] = []
  const { fetch } = globalThis
  t.teardown(() => {
    globalThis.fetch = fetch
  })
  globalThis.fetch = async (_url, { headers } = {}) => {
    keys.push(new Headers(headers).get('Idempotency-Key') ?? '')
    return answers[keys.length - 1]?.() ?? booked()
  }
  return keys
}

const booked = (): Response => Response.json({ balance_minor: 5000 }, { status: 201 })
const lost = (): Promise<Response> => Promise.reject(new TypeError('Failed to fetch'))
const status = (code: number) => (): Response => new Response('', { status: code })
const cut = (): Response => new Response('{"balance_minor":', { status: 201 })

const body = { amount_minor: 5000, reason: 'cash' }
const topUp = (project: string, more = {}) =>
  ask('POST', `/operator/v1/projects/${project}/top-ups`, { body: { ...body, ...more }, once: true })

t.test(
  'what is added once is sent again by its key until an answer says that it was done; then it is another',
  async t => {
    const keys = network(t, lost, status(504), cut, status(401), booked, booked)
    for (const _ of 'four') await t.rejects(topUp('a'))
    await topUp('a')
    await topUp('a')
    t.equal(new Set(keys.slice(0, 5)).size, 1, 'each repetition has the key of the first')
    t.not(keys[5], keys[0], 'after a success the same amount is booked again')
  },
)

t.test('a request that differs has a key of its own, also between two of one', async t => {
  const keys = network(t, lost, booked, booked, booked)
  await t.rejects(topUp('b'))
  await topUp('c')
  await topUp('b', { reason: 'card' })
  await topUp('b')
  t.equal(keys[3], keys[0])
  t.equal(new Set(keys).size, 3)
})

t.test(
  'another write has a new key each time: a replay would lack its secret, or tell of a state that is over',
  async t => {
    const keys = network(t, lost, booked, lost, booked, lost, booked)
    const on = { id: 'prj_1', revision: 1 }
    for (const asked of [{}, { body }, { body, on }]) {
      await t.rejects(ask('POST', '/api-keys', asked))
      await ask('POST', '/api-keys', asked)
    }
    t.equal(new Set(keys).size, 6)
  },
)

t.test('long after a lost answer the same amount is another', async t => {
  const first = additionKey('top-up', 0)
  t.equal(additionKey('top-up', 600_000), first)
  t.not(additionKey('top-up', 1_200_001), first)
})

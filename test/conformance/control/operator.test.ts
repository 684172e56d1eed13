import { BAD_CREDENTIALS } from '../../../control/http/bad-credentials.ts'
import { createComputations } from '../../../control/http/computations.ts'
import { limitsBy } from '../../../control/http/limits.ts'
import { perform } from '../../../control/http/perform.ts'
import { createRateLimiter } from '../../../control/http/rate-limit.ts'
import { isRefusal } from '../../../control/http/reply.ts'
import { WrittenTexts } from '../../../control/http/written-texts.ts'
import { Listeners } from '../../../control/live/listeners.ts'
import { createMp3Encoder } from '../../../control/mp3/encoder.ts'
import { operatorCaller } from '../../../control/operator/authenticate.ts'
import { OPERATOR_ROUTES } from '../../../control/operator/index.ts'
import { OPERATOR_SCOPES } from '../../../core/domain/access/scopes.ts'
import { INSTALLATION } from '../../../core/state/people/audit.ts'
import { controlPlane } from '../../support/control-plane.ts'
import t from '../../support/harness/index.ts'
import { signIn } from '../../support/signed-in.ts'
import {
  filled,
  kitchenOf,
  OPERATOR_RECIPES,
  operatorEtag,
  operatorNameOf,
  operatorRecipeOf,
} from './operator-recipes.ts'

/** Tests in a loop over /operator/v1: every write is audited, in each trail that it is about, with the right actor. */

const boundless = { burst: 1_000_000, per_second: 1_000_000 }
const w = await controlPlane(t, { rate_limit: boundless, bad_credentials: boundless })
const kitchen = await kitchenOf(w, 'Ada Operator')
const me = await signIn(w)
const limiter = createRateLimiter(BAD_CREDENTIALS)
const listeners = new Listeners(w.clock)
const limits = {
  limits: limitsBy(null),
  sign_ins: limiter,
  bad_credentials: limiter,
  computations: createComputations(),
}
const services = { ...w, ...limits, mp3: createMp3Encoder(), listeners, texts: new WrittenTexts() }
/** The caller that a command is: the Unix user who runs it (bin/operator-route.ts). */
const command = operatorCaller({ id: 'unix:root', name: 'root', detail: 'command line', scopes: OPERATOR_SCOPES })

interface Told {
  readonly organization_id: string
  readonly actor_type: string
  readonly actor_id: string | null
  readonly actor_name: string
  readonly actor_detail: string | null
}

async function toldSince(position: number): Promise<readonly Told[]> {
  return w.state.db.selectFrom('audit_event').selectAll().where('position', '>', position).orderBy('position').execute()
}

async function newest(): Promise<number> {
  const row = await w.state.db
    .selectFrom('audit_event')
    .select(eb => eb.fn.max('position').as('position'))
    .executeTakeFirst()
  return Number(row?.position ?? 0)
}

/** A request that stores nothing. */
const SILENT = ['post /price-books/diff', 'post /cost-books/diff']

t.test('every recipe belongs to a route', async t => {
  const named = new Set(OPERATOR_ROUTES.map(operatorNameOf))
  t.same(
    Object.keys(OPERATOR_RECIPES).filter(name => !named.has(name)),
    [],
  )
})

for (const route of OPERATOR_ROUTES) {
  const name = operatorNameOf(route)
  t.test(name, async t => {
    const recipe = operatorRecipeOf(route)
    const audited = async (by: string, write: () => Promise<void>, organization_id?: string) => {
      const before = await newest()
      await write()
      const told = await toldSince(before)
      if (route.method === 'get' || SILENT.includes(name)) {
        t.same(told, [], 'a read leaves no event')
        return
      }
      const own = told.filter(event => event.organization_id === INSTALLATION)
      t.ok(own.length > 0, `${by}: the installation’s trail has it`)
      for (const event of own) t.match(event, { actor_type: 'operator', actor_name: by })
      const theirs = told.filter(event => event.organization_id !== INSTALLATION)
      t.equal(theirs.length > 0, organization_id !== undefined, 'the customer’s trail has it when it is about one')
      const anonymous = { actor_type: 'operator', actor_id: null, actor_name: 'Operator', actor_detail: null }
      for (const event of theirs) t.match(event, anonymous, 'and names no operator')
    }

    const made = await recipe(kitchen)
    const etag = await operatorEtag(kitchen, route, made)
    const query = new URLSearchParams(made.query).toString()
    await audited(
      'Ada Operator',
      async () => {
        const path = `${filled(route.path, made.params)}${query === '' ? '' : `?${query}`}`
        const { status, text } = await kitchen.ask(route.method.toUpperCase(), path, made.body, etag)
        t.ok(status < 300, `by a key: ${status} ${text.slice(0, 300)}`)
      },
      made.organization_id,
    )
    const once_more = await recipe(kitchen)
    await audited(
      w.demo.email,
      async () => {
        const path = `${filled(route.path, once_more.params)}${query === '' ? '' : `?${new URLSearchParams(once_more.query)}`}`
        const revision = await operatorEtag(kitchen, route, once_more)
        const headers = revision === undefined ? {} : { 'If-Match': revision }
        const { status, text } = await me.ask(
          route.method.toUpperCase(),
          `/operator/v1${path}`,
          once_more.body ?? (route.method === 'get' ? undefined : {}),
          headers,
        )
        t.ok(status < 300, `by a session: ${status} ${text.slice(0, 300)}`)
      },
      once_more.organization_id,
    )
    const again = await recipe(kitchen)
    await audited(
      'root',
      async () => {
        const { organization_id: _, ...wish } = again
        const answer = await perform(route, wish, command, services)
        t.notOk(isRefusal(answer), `by a command: ${JSON.stringify(answer).slice(0, 300)}`)
        if (!isRefusal(answer)) answer.stream?.destroy()
      },
      again.organization_id,
    )
  })
}

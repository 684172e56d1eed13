import type { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { BAD_CREDENTIALS } from '../control/http/bad-credentials.ts'
import { createComputations } from '../control/http/computations.ts'
import { limitsBy } from '../control/http/limits.ts'
import { perform, type RouteRequest } from '../control/http/perform.ts'
import { problem } from '../control/http/problem.ts'
import { createRateLimiter } from '../control/http/rate-limit.ts'
import { isRefusal } from '../control/http/reply.ts'
import type { Answer } from '../control/http/route.ts'
import type { Static, TSchema } from '../control/http/schema.ts'
import type { HttpServices } from '../control/http/services.ts'
import type { FieldError } from '../control/http/validate.ts'
import { WrittenTexts } from '../control/http/written-texts.ts'
import { Listeners } from '../control/live/listeners.ts'
import { createMp3Encoder } from '../control/mp3/encoder.ts'
import { operatorCaller } from '../control/operator/authenticate.ts'
import type { OPERATOR_ROUTES } from '../control/operator/index.ts'
import { operatorRoute } from '../control/operator/parts.ts'
import { OPERATOR_SCOPES } from '../core/domain/access/scopes.ts'
import { type Bus, connectBus } from '../core/runtime/bus.ts'
import { systemClock } from '../core/runtime/clock.ts'
import type { Config } from '../core/runtime/config.ts'
import { createLog, type Log } from '../core/runtime/log.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import type { Db, State } from '../core/state/index.ts'
import { withWholeIds } from './short-ids.ts'
import { withState } from './state.ts'
import { terminal } from './terminal.ts'

type OperatorRoute = (typeof OPERATOR_ROUTES)[number]
type EndpointOf<R> = R extends { readonly method: infer M extends string; readonly path: infer P extends string }
  ? `${M} ${P}`
  : never

/** An endpoint of /operator/v1, such as `post /organizations`. */
type Endpoint = EndpointOf<OperatorRoute>

type RepliesOf<R, E extends Endpoint> = R extends { readonly replies: infer S }
  ? E extends EndpointOf<R>
    ? S
    : never
  : never
type Body<S> = S extends TSchema ? Static<S> : undefined
/** What an endpoint answers, by its schema. */
export type AnswerOf<E extends Endpoint> = RepliesOf<OperatorRoute, E> extends infer S ? Body<S[keyof S]> : never
/** An item of a list that an endpoint answers. */
export type ItemOf<E extends Endpoint> = AnswerOf<E> extends { readonly data: readonly (infer Item)[] } ? Item : never

/** An endpoint refused the command. `errors` has a sentence for each wrong field. */
export class EndpointRefused extends StartRefused {
  readonly errors: readonly FieldError[]
  constructor(sentence: string, errors: readonly FieldError[] = []) {
    super([sentence, ...errors.map(({ pointer, message }) => `  ${pointer || '/'} ${message}`)].join('\n'))
    this.errors = errors
  }
}

/**
 * Does what an endpoint of /operator/v1 does, as the Unix user who runs the command: the same rules, the same
 * transaction, the same audit events. Returns the body of the answer. @throws StartRefused
 */
export const ask = <E extends Endpoint>(endpoint: E, wish: RouteRequest = {}): Promise<AnswerOf<E>> =>
  answerOf(endpoint, wish, async ({ body }) => body as AnswerOf<E>)

/** Returns the text of a download. @throws StartRefused */
export const askText = (endpoint: Endpoint, wish: RouteRequest = {}): Promise<string> =>
  answerOf(endpoint, wish, ({ stream }) => (stream ? text(stream) : Promise.resolve('')))

/** Writes a download into a stream, which it ends. @throws StartRefused */
export const askInto = (endpoint: Endpoint, wish: RouteRequest, target: Writable): Promise<void> =>
  answerOf(endpoint, wish, async ({ stream }) => {
    if (!stream) throw new Error(`${endpoint} has no file`)
    await pipeline(stream, target)
  })

const answerOf = <T>(endpoint: Endpoint, wish: RouteRequest, take: (answer: Answer) => Promise<T>): Promise<T> =>
  withState(async (state, config) => {
    const [method = '', path = ''] = endpoint.split(' ')
    const route = await operatorRoute(method, path)
    if (!route) throw new Error(`/operator/v1 has no ${endpoint}`)
    const { user: username } = terminal()
    const caller = operatorCaller({
      id: `unix:${username}`,
      name: username,
      detail: 'command line',
      scopes: OPERATOR_SCOPES,
    })
    const { services, close } = servicesOf(state, config)
    try {
      const answer = await perform(route, await whole(state.db, wish), caller, services)
      if (!isRefusal(answer)) return await take(answer)
      const { body } = problem(answer, { base_url: config.base_url, request_id: '' })
      throw new EndpointRefused(`${body.detail} (${body.code})`, answer.errors)
    } finally {
      await close()
    }
  })

/** What routes use. Commands that only read need neither the log nor the bus, which are made at their first use. */
function servicesOf(state: State, config: Config): { services: HttpServices; close(): Promise<void> } {
  let bus: Bus | undefined
  let log: Log | undefined
  const limiter = createRateLimiter(BAD_CREDENTIALS)
  const services: HttpServices = {
    state,
    clock: state.clock,
    settings: config,
    objects: null,
    get bus() {
      bus ??= connectBus(config.run_dir)
      return bus
    },
    get log() {
      log ??= createLog('cli', config)
      return log
    },
    limits: limitsBy(null),
    sign_ins: limiter,
    bad_credentials: limiter,
    computations: createComputations(),
    mp3: createMp3Encoder(),
    listeners: new Listeners(systemClock),
    texts: new WrittenTexts(),
  }
  return { services, close: async () => bus?.close() }
}

/** A request in which people may have typed the first characters of ids. */
const whole = async (db: Db, { params, query, body }: RouteRequest): Promise<RouteRequest> => ({
  ...(params ? { params: await withWholeIds(db, params) } : {}),
  ...(query ? { query: await withWholeIds(db, query) } : {}),
  ...(body ? { body: await withWholeIds(db, body) } : {}),
})

/** Every item of a paged list. */
export async function askAll<E extends Endpoint>(endpoint: E, wish: RouteRequest = {}): Promise<ItemOf<E>[]> {
  const all: ItemOf<E>[] = []
  let cursor: string | undefined
  do {
    const query = { ...wish.query, ...(cursor === undefined ? {} : { cursor }) }
    const page = (await ask(endpoint, { ...wish, query })) as Page<ItemOf<E>>
    all.push(...page.data)
    cursor = page.next_cursor
  } while (cursor !== undefined)
  return all
}

interface Page<Item> {
  readonly data: readonly Item[]
  readonly next_cursor?: string
}

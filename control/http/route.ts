import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { Breathe } from '../../core/domain/rating/index.ts'
import type { Reason } from '../../core/domain/reasons/index.ts'
import type { Topic } from '../../core/runtime/bus.ts'
import type { AuditKind, Db, Trx } from '../../core/state/index.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import type { OperatorScope, Scope } from './access.ts'
import type { Caller } from './caller.ts'
import type { Change, Refusal, WrittenJson } from './reply.ts'
import type { Static, TObject, TSchema } from './schema.ts'
import type { HttpServices } from './services.ts'

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** Names of the `{parameters}` of a path. */
type ParamNames<P extends string> = P extends `${string}{${infer N}}${infer Rest}` ? N | ParamNames<Rest> : never

/** Loads the resource that a path parameter identifies. */
export interface Loader<N extends string = string, Row = unknown> {
  /** The name under which `run` receives the row. */
  readonly name: N
  load(db: Db, within: Within): Promise<Row | undefined>
  readonly revision?: (row: Row) => number
  /** The subaccount that the row belongs to. To a key restricted to another one, the row does not exist. */
  readonly subaccount_id?: (row: Row) => string | null
}

/** Where a resource is looked up: in the caller's project, below the resources that precede it in the path. */
interface Within {
  readonly id: string
  readonly project_id: string
  readonly organization_id: string
  readonly params: Readonly<Record<string, string>>
}

// biome-ignore lint/suspicious/noExplicitAny: the row's type is known per entry; the table only bounds the keys.
export type Loaders = Readonly<Record<string, Loader<string, any>>>

type NameOf<L> = L extends Loader<infer N, infer _Row> ? N : never
type RowOf<L> = L extends Loader<string, infer Row> ? Row : never
type LoadedBy<L extends Loaders, K extends string> = {
  readonly [N in K & keyof L as NameOf<L[N]>]: RowOf<L[N]>
}

type Replies = Readonly<Record<number, TSchema | null>>

interface Written {
  /** The changes for the audit trail, the route's own resource first; null when nothing changed. */
  readonly change: Change | readonly Change[] | null
  readonly wake?: readonly Topic[]
}

type Answers<R extends Replies, M extends Method> = {
  [S in keyof R & number]: {
    readonly status: S
    /** Sent as ETag. */
    readonly revision?: number
    readonly headers?: Readonly<Record<string, string>>
    /** Sent instead of a JSON body. `headers` have its type and length. */
    readonly stream?: Readable
  } & (R[S] extends TSchema
    ? { readonly body: Static<R[S]> | (M extends 'get' ? WrittenJson : never) }
    : { readonly body?: undefined }) &
    (M extends 'get' ? unknown : Written)
}[keyof R & number]

interface RunContext {
  readonly project: ProjectRow
  readonly caller: Caller
  /** ISO 8601; the same in every row that one request writes. */
  readonly now: string
  readonly request_id: string
  readonly services: HttpServices
  /** For the Range headers that only answers with audio read. */
  readonly request: Pick<IncomingMessage, 'headers' | 'method'>
}

/** The context of every route. It also has the rows that the path names, under the names of their loaders. */
export interface RouteContext extends Omit<RunContext, 'project'> {
  readonly db: Db
  /** Null when the route does not concern a project. */
  readonly project: ProjectRow | null
  readonly params: Readonly<Record<string, string>>
  /** Fits the schema of the route's query. */
  readonly query: object
  /** Fits the schema of the route's body. */
  readonly body: object | undefined
  /** The result of `prepare`. */
  readonly prepared: unknown
}

/** Reasons that any route may refuse with. A route declares its other reasons in `refusals`. */
type CommonReason = 'not_found' | 'validation_failed'

interface Definition<
  L extends Loaders,
  M extends Method,
  P extends string,
  R extends Replies,
  F extends Reason,
  Q extends TObject | undefined,
  B extends TObject | undefined,
  T,
  W extends keyof L & string,
> {
  readonly method: M
  readonly path: P
  readonly summary: string
  readonly description?: string
  /** The scope that a key needs; null when any valid credential is enough. */
  readonly scope: Scope | OperatorScope | null
  /** A scope that is enough instead of `scope`. The route then shows only what that scope allows. */
  readonly or_scope?: Scope
  /** The roles that may perform an action that needs a person. */
  readonly roles?: readonly Caller['role'][]
  /** `organization`: the route is not about one project and ignores X-Project-ID. */
  readonly context?: 'project' | 'organization'
  /** The route limits itself to the subaccount of a restricted key, or returns nothing that belongs to one. */
  readonly restricted_keys?: boolean
  /** The loaded resource whose revision If-Match names. */
  readonly if_match?: NameOf<L[(ParamNames<P> | W) & keyof L]>
  /** Resources to load that the path does not name, because a project has one. */
  readonly loads?: readonly W[]
  /** True: Idempotency-Key is required. False: it is ignored, because the answer must not be stored. */
  readonly idempotent?: boolean
  /** The route needs no credential: the sign-in. */
  readonly anonymous?: boolean
  /** A member of a suspended organization may do it too. */
  readonly while_suspended?: boolean
  /** Signaling nodes must apply the change, so that it bumps the configuration revision. */
  readonly applies?: boolean
  readonly audit?: {
    readonly kind: AuditKind
    readonly action: string
    readonly category?: 'configuration' | 'security'
  }
  readonly query?: Q
  readonly body?: B
  readonly replies: R
  readonly refusals?: readonly F[]
  /** Returns the answer for replays: without its one-time secrets. */
  readonly for_replay?: (body: never) => unknown
  /** The media type of a streamed answer. */
  readonly produces?: string
  /** An example of the body. A test checks it against the schema. */
  readonly example?: unknown
  /**
   * Does slow work before the transaction, such as hashing a password. Functions that compute for long ask for
   * `breathe`, which `run` does not get: the state waits for no computation.
   */
  prepare?(context: {
    readonly body: B extends TObject ? Static<B> : undefined
    readonly services: HttpServices
    readonly caller: Caller
    readonly breathe: Breathe
  }): Promise<T>
  run(
    context: RunContext & {
      /** The database for reads; the transaction of the request for writes. */
      readonly db: M extends 'get' ? Db : Trx
      readonly params: { readonly [K in ParamNames<P>]: string }
      readonly query: Q extends TObject ? Static<Q> : undefined
      readonly body: B extends TObject ? Static<B> : undefined
      readonly prepared: T
    } & LoadedBy<L, ParamNames<P> | W>,
  ): Promise<Answers<NoInfer<R>, M> | Refusal<NoInfer<F> | CommonReason>>
}

/** A route with its types erased, for the dispatcher, the OpenAPI document and the conformance tests. */
export interface Route {
  readonly method: Method
  readonly path: string
  readonly summary: string
  readonly description?: string
  readonly scope: Scope | OperatorScope | null
  readonly or_scope?: Scope
  readonly roles?: readonly Caller['role'][]
  readonly context?: 'project' | 'organization'
  readonly restricted_keys?: boolean
  readonly if_match?: string
  readonly loads?: readonly string[]
  readonly idempotent?: boolean
  readonly anonymous?: boolean
  readonly while_suspended?: boolean
  readonly applies?: boolean
  readonly audit?: {
    readonly kind: AuditKind
    readonly action: string
    readonly category?: 'configuration' | 'security'
  }
  readonly query?: TObject
  readonly body?: TObject
  readonly replies: Replies
  readonly refusals?: readonly Reason[]
  readonly for_replay?: (body: unknown) => unknown
  readonly produces?: string
  readonly example?: unknown
  readonly prepare?: (
    context: Pick<RouteContext, 'body' | 'services' | 'caller'> & { readonly breathe: Breathe },
  ) => Promise<unknown>
  readonly run: (context: RouteContext) => Promise<Answer | Refusal>
  readonly loaders: Loaders
}

export interface Answer {
  readonly status: number
  readonly body?: unknown
  readonly stream?: Readable
  readonly revision?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly change?: Change | readonly Change[] | null
  readonly wake?: readonly Topic[]
}

/** A route whose endpoint and answers a caller in the same program knows by their types. */
interface TypedRoute<M extends Method, P extends string, R extends Replies> extends Route {
  readonly method: M
  readonly path: P
  readonly replies: R
}

/** Returns the `route()` of an API whose path parameters are resolved by `loaders`. */
export const routesWith =
  <L extends Loaders>(loaders: L) =>
  <
    M extends Method,
    const P extends string,
    R extends Replies,
    F extends Reason = never,
    Q extends TObject | undefined = undefined,
    B extends TObject | undefined = undefined,
    T = undefined,
    const W extends keyof L & string = never,
  >(
    definition: Definition<L, M, P, R, F, Q, B, T, W>,
  ): TypedRoute<M, P, R> => ({ ...(definition as unknown as Omit<TypedRoute<M, P, R>, 'loaders'>), loaders })

import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { Topic } from '../../core/runtime/bus.ts'
import type { VoiceAccountOfProject } from '../../core/state/people/voice-accounts.ts'
import type { Static, TSchema } from '../http/schema.ts'
import type { HttpServices } from '../http/services.ts'
import type { VoiceRefusal } from './errors.ts'
import type { Form } from './form.ts'

type Suffix = '.json' | '.wav' | '.mp3'

type Names<P extends string> = P extends `${string}{${infer N}}${infer Rest}` ? N | Names<Rest> : never

export interface VoiceContext {
  readonly account: VoiceAccountOfProject
  readonly services: HttpServices
  readonly now_ms: number
  readonly request: IncomingMessage
  readonly query: URLSearchParams
  /** The path of the request without the query. */
  readonly path: string
}

type Replies = Readonly<Record<number, TSchema | null>>

type Answers<R extends Replies> = {
  [S in keyof R & number]: {
    readonly status: S
    readonly headers?: Readonly<Record<string, string>>
    readonly wake?: readonly Topic[]
  } & (R[S] extends TSchema ? { readonly body: Static<R[S]> } : { readonly stream?: Readable })
}[keyof R & number]

interface Definition<P extends string, R extends Replies> {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Relative to the account. The dispatcher checks the format of each `{parameter}` (`SHAPES` in dispatch.ts). */
  readonly path: P
  /** `.json` is optional in a request. `.wav` and `.mp3` are separate resources. */
  readonly suffix: Suffix
  /** The route is not in the table of the specification: only accounts with `voice_api: extended` are served. */
  readonly extended?: true
  readonly summary: string
  /** The rules of the form's fields, for the API reference. A key names fields with one rule, separated by `, `. */
  readonly fields?: Readonly<Record<string, string>>
  /** A form that the route takes. A value that begins with `$` is a variable of the reference's samples. */
  readonly example?: Readonly<Record<string, string>>
  /** The call of the stock library, where it does not follow from the path. */
  readonly library?: string
  /** A status without a schema has no JSON body: it is empty or a stream. */
  readonly replies: R
  run(
    context: VoiceContext & { readonly params: { readonly [K in Names<P>]: string }; readonly form: Form },
  ): Promise<Answers<NoInfer<R>> | VoiceRefusal>
}

export interface VoiceAnswer {
  readonly status: number
  readonly body?: unknown
  readonly stream?: Readable
  readonly headers?: Readonly<Record<string, string>>
  readonly wake?: readonly Topic[]
}

/** An endpoint of the voice-calls API with its types erased. */
export interface VoiceRoute {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly suffix: Suffix
  readonly extended?: true
  readonly summary: string
  readonly fields?: Readonly<Record<string, string>>
  readonly example?: Readonly<Record<string, string>>
  readonly library?: string
  readonly replies: Replies
  readonly run: (
    context: VoiceContext & { readonly params: Readonly<Record<string, string>>; readonly form: Form },
  ) => Promise<VoiceAnswer | VoiceRefusal>
}

export const voiceRoute = <const P extends string, R extends Replies>(definition: Definition<P, R>): VoiceRoute =>
  definition as unknown as VoiceRoute

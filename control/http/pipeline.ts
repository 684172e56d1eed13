import type { ParameterizedContext } from 'koa'
import { preconditionsHold } from './conditional.ts'
import { Refused, refuse } from './reply.ts'

/** The facts that are known before the first step. */
export interface Asked {
  readonly ctx: ParameterizedContext
  readonly request_id: string
}

/** How an API writes its answers and its refusals. */
interface Wording<Answer, Refusal> {
  isRefusal(value: unknown): value is Refusal
  /** The refusal for an exception. `step` is the name of the step that threw it. */
  failed(error: unknown, at: { readonly request_id: string; readonly step: string }): Refusal
  send(ctx: ParameterizedContext, answer: Answer): void
  refuse(ctx: ParameterizedContext, refusal: Refusal, request_id: string): void
}

/**
 * The steps that an API runs for every request. Each step refuses the request or passes it on. The order is part of the
 * API's contract, and conformance tests check it. `Known` holds the facts that earlier steps have gathered.
 */
export interface Pipeline<Known extends object, Answer, Refusal, Start extends object = Asked> {
  /** Adds facts to `Known`, or refuses. */
  gather<Facts extends object>(
    name: string,
    step: (known: Known) => Facts | Refusal | Promise<Facts | Refusal>,
  ): Pipeline<Known & Exclude<Facts, Refusal>, Answer, Refusal, Start>
  /** Refuses the request; null passes it on. */
  check(
    name: string,
    step: (known: Known) => Refusal | null | Promise<Refusal | null>,
  ): Pipeline<Known, Answer, Refusal, Start>
  /** Adds the last step, which carries out the request, and returns the handler. */
  answer(name: string, step: (known: Known) => Promise<Answer | Refusal>): (ctx: ParameterizedContext) => Promise<void>
  /** Adds the last step and returns what runs them all for a request that HTTP did not bring. Exceptions pass. */
  outcome(name: string, step: (known: Known) => Promise<Answer | Refusal>): (start: Start) => Promise<Answer | Refusal>
}

/** A step with its types erased. The last one returns the answer. */
interface Step {
  readonly name: string
  readonly run: (known: never) => unknown
}

/** Returns a pipeline without steps. */
export const pipeline = <Answer extends object, Refusal extends object>(
  wording: Wording<Answer, Refusal>,
): Pipeline<Asked, Answer, Refusal> => extended([], wording)

/** Returns a pipeline without steps for requests that HTTP did not bring: its last step is an `outcome`. */
export const bareSteps = <Answer extends object, Refusal extends object, Start extends object>(
  isRefusal: Wording<Answer, Refusal>['isRefusal'],
): Pick<Pipeline<Start, Answer, Refusal, Start>, 'gather' | 'check' | 'outcome'> => {
  const unheard = (): never => {
    throw new Error('nobody asked by HTTP')
  }
  return extended([], { isRefusal, failed: unheard, send: unheard, refuse: unheard })
}

function extended<Known extends object, Answer extends object, Refusal extends object, Start extends object>(
  steps: readonly Step[],
  wording: Wording<Answer, Refusal>,
): Pipeline<Known, Answer, Refusal, Start> {
  return {
    gather: (name, run) => extended([...steps, { name, run }], wording),
    check: (name, run) => extended([...steps, { name, run }], wording),
    answer: (name, run) => handler(steps, { name, run }, wording),
    outcome: (name, run) => start => outcomeOf([...steps, { name, run }], { ...start }, wording),
  }
}

async function outcomeOf<Answer, Refusal>(
  steps: readonly Step[],
  known: object,
  { isRefusal }: Pick<Wording<Answer, Refusal>, 'isRefusal'>,
): Promise<Answer | Refusal> {
  let outcome: unknown
  for (const step of steps) {
    outcome = await step.run(known as never)
    if (isRefusal(outcome)) return outcome
    Object.assign(known, outcome)
  }
  return outcome as Answer
}

function handler<Answer extends object, Refusal extends object>(
  steps: readonly Step[],
  last: Step,
  wording: Wording<Answer, Refusal>,
): (ctx: ParameterizedContext) => Promise<void> {
  return async ctx => {
    const request_id = ctx.response.get('X-Request-ID')
    ctx.set('Cache-Control', 'no-store')
    const known: Asked = { ctx, request_id }
    let at = last
    try {
      for (at of steps) {
        const running = at.run(known as never)
        const outcome = running instanceof Promise ? await running : running
        if (wording.isRefusal(outcome)) return wording.refuse(ctx, outcome, request_id)
        // One object is reused for the whole request: a copy at each step would cost more than most steps.
        Object.assign(known, outcome)
      }
      at = last
      const outcome = await last.run(known as never)
      if (wording.isRefusal(outcome)) return wording.refuse(ctx, outcome, request_id)
      wording.send(ctx, outcome as Answer)
      if (!preconditionsHold(ctx)) throw new Refused(refuse('precondition_failed'))
    } catch (error) {
      wording.refuse(ctx, wording.failed(error, { request_id, step: at.name }), request_id)
    }
  }
}

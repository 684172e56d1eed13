import { isRefusal, type Refusal } from '../http/reply.ts'
import type { LiveRequest } from '../live/asked.ts'
import { VoiceRefused } from './dispatch.ts'
import { forReason, isVoiceRefusal, type VoiceRefusal } from './errors.ts'
import type { VoiceContext } from './route.ts'

/**
 * Changes what runs, in one transaction, and wakes the node that carries it out. `work` may refuse by a reason, as the
 * functions of control/live do. A refusal writes nothing.
 */
export async function changed<A extends object>(
  { account, services, now_ms }: VoiceContext,
  work: (asked: LiveRequest) => Promise<A | Refusal | VoiceRefusal>,
): Promise<A & { readonly wake: readonly ['commands'] }> {
  const { project_id } = account
  const answer = await services.state.transaction(async trx => {
    const done = await work({ trx, services, project_id, now_ms })
    if (isRefusal(done)) throw new VoiceRefused(forReason(done.refused, done.facts))
    if (isVoiceRefusal(done)) throw new VoiceRefused(done)
    return done as A
  })
  return { ...answer, wake: ['commands'] }
}

import type { ParameterizedContext } from 'koa'
import { iso } from '../../core/runtime/clock.ts'
import { findAnyCallExport } from '../../core/state/calls/call-exports.ts'
import type { Db } from '../../core/state/index.ts'
import { findAnyKey, keyIsOver } from '../../core/state/people/api-keys.ts'
import { findAnyMember } from '../../core/state/people/password-resets.ts'
import { countBadCredential } from '../http/bad-credentials.ts'
import { isRefusal, notFound, refuse } from '../http/reply.ts'
import { sendAnswer, sendRefusal } from '../http/send.ts'
import type { HttpServices } from '../http/services.ts'
import { exportAnswer } from './jobs.ts'
import { readLink } from './link.ts'

/** Whether the key or member that made a link is in force. Every role may read calls, and the scopes of a key stay. */
async function isInForce(db: Db, maker: string, now: string): Promise<boolean> {
  const key = maker.startsWith('key_') ? await findAnyKey(db, maker) : undefined
  if (key) return !keyIsOver(key, now)
  const member = await findAnyMember(db, maker)
  return member?.locked_at === null
}

/** Serves the files of exports by signed links, below /downloads. */
export const exportDownloads =
  (services: HttpServices) =>
  async (ctx: ParameterizedContext): Promise<void> => {
    const { settings, state, clock } = services
    const at = { base_url: settings.base_url, request_id: ctx.response.get('X-Request-ID') }
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
      return sendRefusal(ctx, refuse('method_not_allowed', { value: ctx.method }, { headers: { Allow: 'GET' } }), at)
    const link = readLink(settings.master_key, ctx.path.slice('/downloads/'.length), clock.now())
    if (link === null) {
      const { allowed, headers } = await countBadCredential(services, ctx.req)
      ctx.set(headers)
      const refusal = allowed
        ? notFound('this link')
        : refuse('rate_limited', { value: 'of requests from this address' })
      return sendRefusal(ctx, refusal, at)
    }
    const stands = await isInForce(state.db, link.maker, iso(clock.now()))
    const job = stands ? await findAnyCallExport(state.db, link.id) : undefined
    const answer = job && (await exportAnswer(services, job, ctx.req))
    if (!answer) sendRefusal(ctx, notFound('this file'), at)
    else if (isRefusal(answer)) sendRefusal(ctx, answer, at)
    else sendAnswer(ctx, answer)
  }

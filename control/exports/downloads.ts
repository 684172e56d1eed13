import type { ParameterizedContext } from 'koa'
import { findAnyCallExport } from '../../core/state/calls/call-exports.ts'
import { countBadCredential } from '../http/bad-credentials.ts'
import { isRefusal, notFound, refuse } from '../http/reply.ts'
import { sendAnswer, sendRefusal } from '../http/send.ts'
import type { HttpServices } from '../http/services.ts'
import { exportAnswer } from './jobs.ts'
import { readLink } from './link.ts'

/** Serves the files of exports by signed links, below /downloads. */
export const exportDownloads =
  (services: HttpServices) =>
  async (ctx: ParameterizedContext): Promise<void> => {
    const { settings, state, clock } = services
    const at = { base_url: settings.base_url, request_id: ctx.response.get('X-Request-ID') }
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
      return sendRefusal(ctx, refuse('method_not_allowed', { value: ctx.method }, { headers: { Allow: 'GET' } }), at)
    const id = readLink(settings.master_key, ctx.path.slice('/downloads/'.length), clock.now())
    if (id === null) {
      const { allowed, headers } = countBadCredential(services, ctx.req)
      ctx.set(headers)
      const refusal = allowed
        ? notFound('this link')
        : refuse('rate_limited', { value: 'of requests from this address' })
      return sendRefusal(ctx, refusal, at)
    }
    const job = await findAnyCallExport(state.db, id)
    const answer = job && (await exportAnswer(services, job, ctx.req))
    if (!answer) sendRefusal(ctx, notFound('this file'), at)
    else if (isRefusal(answer)) sendRefusal(ctx, answer, at)
    else sendAnswer(ctx, answer)
  }

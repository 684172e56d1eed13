import type { ParameterizedContext } from 'koa'
import { fillTemplate } from '../core/domain/webhooks/template.ts'
import { signedDocument } from '../core/runtime/document-address.ts'
import { findAddressedDocument } from '../core/state/configuration/voice-documents.ts'
import { countBadCredential } from './http/bad-credentials.ts'
import type { HttpServices } from './http/services.ts'
import { isVoiceRefusal } from './voice/errors.ts'
import { readForm } from './voice/form.ts'

/** Serves saved documents at their signed addresses, filled with the parameters of the request, like any web server. */
export const voiceDocumentPages = (services: HttpServices) => async (ctx: ParameterizedContext) => {
  const query = new URLSearchParams(ctx.querystring)
  const id = signedDocument(services.settings.master_key, ctx.path, query.get('signature'))
  const row = id === null ? undefined : await findAddressedDocument(services.state.db, id)
  if (!row) {
    const { allowed, headers } = await countBadCredential(services, ctx.req)
    ctx.status = allowed ? 404 : 429
    ctx.set({ ...headers })
    ctx.body = 'There is no such document.\n'
    return
  }
  const form = ctx.method === 'POST' ? await readForm(ctx) : null
  const sent = form === null || isVoiceRefusal(form) ? [] : form.entries
  ctx.set('Cache-Control', 'no-store')
  // A customer wrote it, and it has the origin of the console: in a browser it runs no script and asks for nothing.
  ctx.set('Content-Security-Policy', "default-src 'none'; sandbox")
  ctx.type = 'text/xml; charset=utf-8'
  ctx.body = fillTemplate(row.content, Object.fromEntries([...query, ...sent]))
}

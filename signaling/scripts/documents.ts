import type { CookieJar } from '../../core/domain/webhooks/cookies.ts'
import { documentText } from '../../core/domain/webhooks/document.ts'
import { fillTemplate } from '../../core/domain/webhooks/template.ts'
import { delay } from '../../core/runtime/clock.ts'
import { documentAt, isDocumentUrl } from '../../core/runtime/document-address.ts'
import type { VoiceReply } from '../../core/runtime/voice-request.ts'
import { recordExchange } from '../../core/state/calls/calls.ts'
import { findDocument } from '../../core/state/configuration/voice-documents.ts'
import type { Callback, Fetch, Fetched } from '../../markup/interpreter/types.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'
import type { ScriptContext } from './context.ts'
import { missingSound } from './missing-sound.ts'
import { NO_SUCH_SOUND } from './stored-sounds.ts'

/** The script that requests a document, as far as the request needs it. */
export interface DocumentRequester {
  readonly ctx: ScriptContext
  readonly call: ScriptedCall
  readonly cookies: CookieJar
  readonly signal: AbortSignal
  /** Parameters that a queue or conference adds to the standard set. */
  readonly parameters: () => Readonly<Record<string, string>>
}

/** Fetches a document. Returns the event that the interpreter waits for. */
export async function fetchDocument(requester: DocumentRequester, command: Fetch): Promise<Fetched> {
  const { ctx, call, cookies, signal } = requester
  const auth_token = ctx.authToken(call.project_id)
  // A revoked account runs no saved document either.
  if (auth_token === null)
    return {
      type: 'fetched',
      id: command.id,
      result: { ok: false, number: 11200, detail: 'the voice account is not active' },
    }
  if (ctx.sounds.isOwn(command.url))
    return { type: 'fetched', id: command.id, result: await ownSound(requester, command) }
  if (isDocumentUrl(command.url, ctx.config.base_url))
    return { type: 'fetched', id: command.id, result: await ownDocument(requester, command) }
  if (command.delay_ms !== undefined) await delay(call.clock, command.delay_ms, signal)
  const reply = await ctx.voice.send({
    url: command.url,
    method: command.method,
    parameters: Object.entries(parametersOf(requester, command)),
    auth_token,
    project_id: call.project_id,
    reply: 'document',
    cookies,
    signal,
  })
  remember(requester, command, reply)
  return { type: 'fetched', id: command.id, result: resultOf(command, reply) }
}

/** Returns a recording of this platform without an HTTP request. The interpreter plays it like any other audio. */
async function ownSound({ ctx, call }: DocumentRequester, { url }: Fetch): Promise<Fetched['result']> {
  if (await ctx.sounds.find(call, url)) return { ok: true, content_type: 'audio/wav', text: '', final_url: url }
  const number = 11200
  missingSound(call, { url, number, detail: NO_SUCH_SOUND })
  return { ok: false, number, detail: NO_SUCH_SOUND }
}

/**
 * Returns a saved document of the call's project without an HTTP request, filled with the parameters that the request
 * would have. Secret parameters stay out, because documents are kept in logs.
 */
async function ownDocument(requester: DocumentRequester, command: Fetch): Promise<Fetched['result']> {
  const { call, ctx } = requester
  const { config, state } = ctx
  const { clock } = call
  if (command.delay_ms !== undefined) await delay(clock, command.delay_ms, requester.signal)
  const id = documentAt(command.url, config)
  const row = id === null ? undefined : await findDocument(state.db, call.project_id, id)
  const secret = new Set(command.secret)
  const parameters = parametersOf(requester, command)
  const known = Object.fromEntries(Object.entries(parameters).filter(([name]) => !secret.has(name)))
  const text = row && fillTemplate(row.content, known)
  const reply =
    text === undefined
      ? ({ ok: false, status: 404, number: 11200, detail: 'there is no such document' } as const)
      : ({ ok: true, status: 200, headers: { 'content-type': 'text/xml' }, body: Buffer.from(text) } as const)
  // Whoever has the signature may read the document.
  const url = command.url.replace(/([?&]signature=)[^&#]*/, '$1[hidden]')
  void call.persist(trx =>
    recordExchange(
      trx,
      {
        call_sid: call.sid,
        method: command.method,
        url,
        parameters,
        secret: command.secret ?? [],
        reply: { duration_ms: 0, ...reply },
      },
      clock.now(),
    ),
  )
  if (text === undefined || !reply.ok) return { ok: false, number: 11200, detail: 'there is no such document' }
  return { ok: true, content_type: 'text/xml', text, final_url: command.url }
}

/** Sends a request whose reply is ignored. It is not aborted when the script ends. */
export async function sendCallback(requester: DocumentRequester, command: Callback): Promise<void> {
  const { ctx, call, cookies } = requester
  const auth_token = ctx.authToken(call.project_id)
  if (auth_token === null) return
  const reply = await ctx.voice.send({
    url: command.url,
    method: command.method,
    parameters: Object.entries(parametersOf(requester, command)),
    auth_token,
    project_id: call.project_id,
    reply: 'ignored',
    cookies,
  })
  remember(requester, command, reply)
}

function resultOf(command: Fetch, reply: VoiceReply): Fetched['result'] {
  if (!reply.ok) return { ok: false, number: reply.number, detail: reply.detail }
  // The sent URL has our parameters in its query and lacks the user info. Relative URLs resolve against the given URL.
  const final_url = reply.redirects === 0 ? command.url : reply.url
  return { ok: true, ...documentText({ content_type: reply.headers['content-type'], body: reply.body }), final_url }
}

const parametersOf = ({ call, parameters }: DocumentRequester, command: Fetch | Callback): Record<string, string> => ({
  ...call.parameters(),
  ...parameters(),
  ...command.parameters,
})

function remember(requester: DocumentRequester, command: Fetch | Callback, reply: VoiceReply): void {
  const { call } = requester
  const now_ms = call.clock.now()
  const { method } = command
  const secret = (command.type === 'fetch' && command.secret) || []
  const parameters = parametersOf(requester, command)
  const { ok, status, duration_ms } = reply
  const exchanged = {
    ok,
    status,
    duration_ms,
    ...(reply.ok
      ? { headers: reply.headers, body: new Uint8Array(reply.body) }
      : { number: reply.number, detail: reply.detail }),
  }
  void call.persist(trx =>
    recordExchange(trx, { call_sid: call.sid, method, url: reply.url, parameters, secret, reply: exchanged }, now_ms),
  )
}

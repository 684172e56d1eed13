import { MAX_MESSAGE_BYTES, mediaType } from '../../core/domain/sip/body.ts'
import type { InboundRequest } from '../drachtio/types.ts'
import type { Party } from './call.ts'
import { ALLOW } from './methods.ts'

const TEXT: ReadonlySet<string> = new Set(['text/plain', ''])
const JSON_TYPE = 'application/json'

/**
 * Passes the text of a MESSAGE within a call (RFC 3428 §4) to the other side and returns that side's status. Answers
 * 405 when the leg has no peer, for example because a script runs on it. JSON goes to the programs that have subscribed
 * to the messages of the call.
 */
export async function passMessage({ call, leg }: Party, request: InboundRequest): Promise<void> {
  const dialog = call.pairing.peerOf(leg)?.leg.sipDialog
  const type = request.header('content-type') ?? request.header('c') ?? 'text/plain'
  const listeners = call.ctx.calls.messageListeners.get(call.sid)
  if (listeners && mediaType(type) === JSON_TYPE) {
    if (Buffer.byteLength(request.body) > MAX_MESSAGE_BYTES) return request.respond(413)
    for (const listener of listeners) listener(request.body)
    return request.respond(202)
  }
  const { refused } = request.content(TEXT)
  if (!dialog) return request.respond(405, { headers: { Allow: ALLOW } })
  if (refused || mediaType(type) !== 'text/plain') return request.respond(415, { headers: { Accept: 'text/plain' } })
  if (Buffer.byteLength(request.body) > MAX_MESSAGE_BYTES) return request.respond(413)
  try {
    const answer = await dialog.request('MESSAGE', { headers: { 'Content-Type': type }, body: request.body })
    request.respond(answer.status)
  } catch (err) {
    leg.log.info({ err }, 'a MESSAGE was not passed on')
    request.respond(500)
  }
}

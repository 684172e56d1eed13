import { uriOf } from '../../core/domain/sip/address.ts'
import { tagOf } from '../../core/domain/sip/uri.ts'
import { parseCSeq } from '../../core/domain/sip/values.ts'
import type { Log } from '../../core/runtime/log.ts'
import { Authorizer } from '../../core/runtime/sip/authorizer.ts'
import type { LibraryAnswer, LibraryRequest } from './library.ts'
import { challengeHeaders, outgoing, requestView, sendableStatus, statusText } from './messages.ts'
import {
  CallerGone,
  Cancelled,
  type Dialog,
  type DialogHandler,
  type Headers,
  type InboundInvite,
  type InboundRequest,
  LinkLost,
  RequestFailed,
  type ResponseOptions,
  type ServerEnd,
} from './types.ts'

// Requests from the SIP server, and our responses.

/** The identity of a dialog, and the handler of its requests. */
export type DialogFacts = Omit<Dialog, 'request' | 'bye' | 'ended'> & {
  handler: DialogHandler
  /** CSeq of the peer's INVITE; -1 when the INVITE is ours. */
  remote_seq: number
}

/** The parts of the stack that an INVITE uses. */
export interface Surroundings {
  readonly log: Log
  /** Whether the SIP server supports reliable provisional responses. */
  reliable(): boolean
  /** The handlers of requests within dialogs, by the library's dialog id. */
  readonly dialogs: Map<string, (request: LibraryRequest, answer: LibraryAnswer) => void>
  /** Returns a promise that `work` settles, or `lost` when the link is lost or silent before that. */
  waiting<T>(lost: () => T, work: (settle: (value: T) => void) => void): Promise<T>
  dialog(facts: DialogFacts & { readonly authorizer: Authorizer | null }): Dialog
  /** The header that hands the credentials of a dialog to the SIP server, for requests that it sends by itself. */
  handOver(authorizer: Authorizer | null): Record<string, string>
}

/** Wraps an INVITE for a new call. */
export function inboundInvite(around: Surroundings, request: LibraryRequest, answer: LibraryAnswer): InboundInvite {
  const { log, dialogs } = around
  const view = requestView(request)
  let cancelled: Headers | null = null
  let early: DialogHandler = incoming => incoming.respond(incoming.method === 'PRACK' ? 200 : 500)
  const cancelListeners = new Set<(headers: Headers) => void>()
  const pracks = new Set<() => void>()
  request.on('cancel', cancel => {
    cancelled = cancel.headers
    if (!accepted) endEarly()
    for (const listener of cancelListeners) listener(cancel.headers)
  })
  request.on('update', (update, updateAnswer) => deliver(log, update, updateAnswer, early))
  // The SIP server reports a dialog's id after the provisional response has been sent. The call may be over by then.
  const earlyDialog = (id: string | undefined): void => {
    if (!id || over || dialogs.has(id)) return
    dialogs.set(id, (r, a) => {
      if (r.method === 'PRACK') {
        for (const done of pracks) done()
        pracks.clear()
      }
      deliver(log, r, a, early)
    })
  }
  const endEarly = (): void => {
    over = true
    if (early_id) dialogs.delete(early_id)
  }
  let early_id: string | undefined
  let over = false
  let accepted = false
  return {
    ...view,
    progress: (status, options = {}) =>
      around.waiting<void>(
        () => undefined,
        settle => {
          if (cancelled) return settle()
          const reliable = options.reliable && around.reliable()
          const headers = reliable ? { ...options.headers, Require: '100rel' } : options.headers
          const answerOptions = { ...options, ...(headers ? { headers } : {}) }
          respond(log, request, answer, status, answerOptions, (error, dialog_id) => {
            early_id = dialog_id || early_id
            earlyDialog(dialog_id)
            if (error || !reliable) settle()
            else pracks.add(settle)
          })
        },
      ),
    refuse: (status, options = {}) => {
      // The 200 has been sent. The code that awaits its dialog hangs up with BYE, after the ACK.
      if (accepted) return
      endEarly()
      if (cancelled) return
      respond(log, request, answer, status, options, error => {
        if (error) log.debug({ detail: String(error), status }, 'refusal was not sent')
      })
    },
    accept: (options, handler) =>
      around
        .waiting<Dialog | Error>(
          () => new LinkLost(),
          settle => {
            if (cancelled) return settle(new Cancelled())
            accepted = true
            const authorizer = options.auth ? new Authorizer(options.auth) : null
            const response = { ...options, handed: around.handOver(authorizer) }
            respond(log, request, answer, 200, response, (error, dialog_id, to) => {
              accepted = !error && Boolean(dialog_id)
              if (error || !dialog_id) return settle(cancelled ? new Cancelled() : whyUnsent(String(error)))
              settle(
                around.dialog({
                  id: dialog_id,
                  call_id: view.call_id,
                  local_tag: tagOf(to ?? ''),
                  remote_tag: tagOf(view.header('from') ?? ''),
                  remote_target: uriOf(view.header('contact')),
                  handler,
                  remote_seq: parseCSeq(view.header('cseq') ?? '')?.seq ?? -1,
                  authorizer,
                }),
              )
            })
          },
        )
        .then(outcome => {
          if (outcome instanceof Error) throw outcome
          return outcome
        }),
    onCancel: listener => {
      if (cancelled) listener(cancelled)
      cancelListeners.add(listener)
    },
    onEarly: handler => {
      early = handler
    },
  }
}

/** What the SIP server says of a transaction that it has ended. */
const ENDED = /unknown transaction/i

/** Why a 200 was not sent, by what the SIP server says. */
const whyUnsent = (said: string): Error =>
  /transport for response/i.test(said) || ENDED.test(said) ? new CallerGone(said) : new RequestFailed(said)

/** Passes a request within a dialog to its owner. */
export function deliver(log: Log, request: LibraryRequest, answer: LibraryAnswer, handler: DialogHandler): void {
  const server_end = request.source === 'network' ? null : serverEnd(request.get('reason') ?? '')
  handler(answerable(log, request, answer), { server_end })
}

/** Reads why the server ended a dialog. Only the text of its BYE's Reason header says it. */
function serverEnd(reason: string): ServerEnd {
  if (/session timer/i.test(reason)) return 'session_expired'
  return /ack timeout/i.test(reason) ? 'no_ack' : 'other'
}

/** Wraps a request that can be answered. Answers to an ACK, or to a request of the server itself, are not sent. */
export function answerable(log: Log, request: LibraryRequest, answer: LibraryAnswer): InboundRequest {
  return {
    ...requestView(request),
    respond: (status, options = {}) => {
      if (request.method === 'ACK' || request.source !== 'network') return
      respond(log, request, answer, status, options, error => {
        if (!error) return
        log.debug({ detail: String(error), method: request.method, status }, 'answer was not sent')
        if (ENDED.test(String(error))) options.unsent?.()
      })
    },
  }
}

function respond(
  log: Log,
  request: LibraryRequest,
  answer: LibraryAnswer,
  status: number,
  options: ResponseOptions & { readonly handed?: Record<string, string> },
  callback: (error: unknown, dialog_id: string | undefined, to: string | null) => void,
): void {
  const code = sendableStatus(status)
  try {
    answer.send(
      code,
      (options.reason ?? statusText(code)).replace(/[\r\n\0]+/g, ' '),
      {
        headers: {
          ...outgoing(options.headers, { initial: false }),
          ...challengeHeaders(options.challenges ?? []),
          ...options.handed,
        },
        ...(options.body ? { body: options.body } : {}),
      },
      (error, sent) => callback(error ?? null, answer.stackDialogId, error ? null : (sent?.get('to') ?? null)),
    )
  } catch (error) {
    log.error({ err: error, method: request.method, status }, 'a response could not be sent')
    callback(error, undefined, null)
  }
}

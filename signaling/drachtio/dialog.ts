import { readBody } from '../../core/domain/sip/body.ts'
import type { Log } from '../../core/runtime/log.ts'
import { answerable, type DialogFacts, deliver } from './inbound.ts'
import type { LibraryAnswer, LibraryRequest } from './library.ts'
import { statusText } from './messages.ts'
import { Sequence } from './sequence.ts'
import {
  type Acknowledging,
  type Dialog,
  type InboundRequest,
  LinkLost,
  RequestFailed,
  type RequestOptions,
  type SipResponse,
} from './types.ts'

/** What a dialog needs of the stack. */
interface DialogSurroundings {
  readonly log: Log
  /** The dialog exists at the SIP server: from now on `take` gets its requests. */
  opened(take: (request: LibraryRequest, answer: LibraryAnswer) => void): void
  closed(): void
  /** Sends a request in the dialog. @throws LinkLost, RequestFailed */
  request(wanted: RequestOptions & { readonly acknowledging?: Acknowledging }): Promise<SipResponse>
}

/** Returns a dialog of the SIP server, and handles the peer's requests in it until it ends. */
export function openDialog(facts: DialogFacts, around: DialogSurroundings): Dialog {
  const { log } = around
  const { handler, remote_seq, ...identity } = facts
  let ended = false
  const sequence = new Sequence(remote_seq)
  const take = (request: LibraryRequest, answer: LibraryAnswer): void => {
    const incoming = answerable(log, request, answer)
    // The server's own BYE has a number of ours.
    if (request.source === 'network' && sequence.isOld(incoming)) {
      incoming.respond(500)
      return
    }
    if (request.method === 'BYE') {
      // A BYE that crosses ours is answered with 200 and not passed on (RFC 5407 §3.2.1).
      if (ended) {
        incoming.respond(200)
        return
      }
      ended = true
      around.closed()
      deliver(log, request, answer, (bye, how) => handler(sequence.counted(keptIfForeign(bye)), how))
      return
    }
    deliver(log, request, answer, (other, how) => handler(sequence.counted(other), how))
  }
  /** The owner refuses a stranger's BYE with 403. The dialog then goes on. */
  const keptIfForeign = (bye: InboundRequest): InboundRequest => ({
    ...bye,
    respond: (status, options) => {
      if (status === 403) {
        ended = false
        remember()
      }
      bye.respond(status, options)
    },
  })
  const remember = (): void => around.opened(take)
  remember()
  const request: Dialog['request'] = (method, options = {}) =>
    around.request({ method, uri: facts.remote_target, ...options }).catch(error => {
      if (isUnknownDialog(error)) return gone(facts.call_id)
      throw error
    })
  const dialog: Dialog = {
    ...identity,
    request,
    bye: async headers => {
      if (ended) return
      ended = true
      try {
        await request('BYE', headers ? { headers } : {})
      } catch (error) {
        // The server still has the dialog, because the BYE was not sent: keep it for the sweep.
        if (error instanceof LinkLost) return
        log.debug({ detail: String(error), sip_call_id: facts.call_id }, 'BYE was not answered')
      }
      around.closed()
    },
    get ended() {
      return ended
    },
  }
  return dialog
}

/** Whether the SIP server has refused a request because it does not know the dialog. */
export const isUnknownDialog = (error: unknown): boolean =>
  error instanceof RequestFailed && /unable to find dialog/i.test(error.message)

const gone = (call_id: string): SipResponse => ({
  status: 481,
  reason: statusText(481),
  call_id,
  header: () => null,
  headers: {},
  body: '',
  content: () => readBody('', { type: null, disposition: null, encoding: null }),
  source: { address: '', port: 0, transport: 'udp' },
})

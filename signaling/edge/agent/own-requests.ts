import type { Authorizer } from '../../../core/runtime/sip/authorizer.ts'
import type { SipDialog } from '../dialog/dialog.ts'
import type { Draft } from '../sip/message.ts'
import { bodyOf } from '../sip/sent-text.ts'
import type { EdgeStack, RequestEvents, SentRequest } from '../stack.ts'
import { UNHEARD } from '../transaction/client.ts'

/**
 * Sends a request that the edge makes by itself in a dialog. Challenges to it are answered with the credentials that
 * the application handed over with the dialog, as the same request with a higher CSeq (RFC 3261 §22.2); `response` gets
 * what remains. `build` adds the headers and body of the method. `sent` is called for the first attempt alone.
 */
export function requestInDialog(
  stack: EdgeStack,
  { dialog, authorizer }: { readonly dialog: SipDialog; readonly authorizer: Authorizer | undefined },
  method: 'BYE' | 'INVITE' | 'UPDATE',
  build: (draft: Draft) => Draft,
  events: Partial<RequestEvents> = {},
): void {
  const heard: RequestEvents = { ...UNHEARD, ...events }
  const challenged = authorizer?.request()
  const send = (credentials: Readonly<Record<string, string>>, reports: RequestEvents): void => {
    const seq = dialog.nextSeq()
    const draft = (): Draft => {
      const made = build(dialog.draft(method, seq))
      for (const [name, value] of Object.entries(credentials)) made.add(name, value)
      return made
    }
    stack.request(method, dialog.nextHop(), draft, {
      ...reports,
      response: (response, from, sent) => {
        const view = {
          status: response.status,
          header: (name: string) => response.lines(name).join(', ') || null,
        }
        const again = challenged?.answer(view, {
          method,
          uri: uriOf(sent),
          body: Buffer.from(bodyOf(sent.text), 'latin1'),
        })
        if (again) send(again, { ...heard, sent: () => undefined })
        else heard.response(response, from, sent)
      },
    })
  }
  send({}, heard)
}

/** The request-URI as it was sent, which the digest covers (RFC 7616 §3.4.6). */
const uriOf = ({ text }: SentRequest): string => text.slice(text.indexOf(' ') + 1, text.indexOf(' SIP/2.0\r\n'))

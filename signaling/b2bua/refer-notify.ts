import type { Dialog, SipResponse } from '../drachtio/types.ts'

/** Sends a NOTIFY about a REFER's progress (RFC 3515 §2.4.5). `state`: the Subscription-State. @throws LinkLost */
export const notifyReferrer = (dialog: Dialog, status: string, state: string): Promise<SipResponse> =>
  dialog.request('NOTIFY', {
    headers: { Event: 'refer', 'Subscription-State': state, 'Content-Type': 'message/sipfrag;version=2.0' },
    body: `SIP/2.0 ${status}\r\n`,
  })

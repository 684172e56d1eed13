import type { ReplayOptions } from './replay.ts'
import { testTls } from './test-tls.ts'

// Lists the transcripts that need a special set-up, and deliberate differences from the reference. The decisions are
// docs/edge.md.

/** Transcripts that cannot be compared at all, with the reason. */
export const SKIPPED: Readonly<Record<string, string>> = {
  '23-reinvite-glare.txt': 'crossing re-INVITEs: the edge answers 491 itself (RFC 3261 §14.2), docs/edge.md',
  '71-unauthenticated.txt': 'the edge refuses commands before authentication, docs/edge.md',
  '74-big-messages-from-network.txt': 'the edge takes messages up to 64 KiB, the reference refuses 8 KiB, docs/edge.md',
  '79-remove-route.txt': 'remove_route removes only the named verb, docs/edge.md',
  '85-early-dialog-requests.txt': 'the application answers requests in an early dialog, docs/edge.md',
  '86-early-dialog-bye-prack-errors.txt': 'BYE in an early dialog ends the call, docs/edge.md',
  '80b-control-tls-reconnect.txt': 'contains no messages: it records a defect of the client',
}

const T1_50: ReplayOptions = { speed: 1, edge: { timers: { t1: 50, t2: 400, t4: 500 } } }
// The recordings come from a fast machine. On a busy one the grace period of lost applications must not expire.
const CUT: ReplayOptions = { cut: ['ctl1'], edge: { limits: { failures: 1_000_000, orphan_grace_ms: 600_000 } } }
const tls = await testTls()

const DUPLICATE_ACK = 'ACKs of retransmissions and of failures are absorbed (docs/drachtio.md)'
const FORK = 'a second fork gets an ACK with its own tag and a BYE (docs/drachtio.md)'
const ACK_OF_FAILURE = 'no second ACK after a failed re-INVITE (docs/drachtio.md)'
const UNSUPPORTED = 'an unsupported required extension gets 420 (decision 0111)'
const NAMELESS = 'a line without a name is left out, and the message counts (docs/drachtio.md)'
const NO_URI = 'an invalid request-URI gets 400 (decision 0111)'
const NO_CONTACT = 'a 200 without Contact is acknowledged (docs/drachtio.md)'
const NOTIFY = 'the application answers a terminating NOTIFY, which ends only the subscription (docs/drachtio.md)'
const LARGE = 'commands of any size up to 4 MiB are carried out (docs/edge.md)'
const ORPHAN = 'calls of a lost application are ended after 5 s (docs/edge.md)'
const REFUSED = 'unknown and misplaced methods get 405, 501 or 481 instead of silence (decision 0111)'
const NO_PROXY = 'the edge does not proxy (decision 1071)'
const NO_DIALOG = 'a request in an unknown dialog that no application serves gets 481 (decision 0111)'

export const FLOWS: Readonly<Record<string, ReplayOptions>> = {
  '05-no-app-503.txt': {
    added: [
      ['SIP/2.0 405', REFUSED],
      ['SIP/2.0 501', REFUSED],
    ],
  },
  '06-validation.txt': {
    omitted: [
      ['Call-ID: v1\r\n', NAMELESS],
      ['Call-ID: v13', UNSUPPORTED],
      ['Call-ID: v18', NO_URI],
    ],
    skipped_inputs: ['this is broken', 'Call-ID: v13\r\ncseq', 'Call-ID: v18\r\ncseq'],
    added: [
      ['SIP/2.0 420', UNSUPPORTED],
      ['SIP/2.0 400', NO_URI],
    ],
  },
  '10b-uas-duplicate-ack.txt': { omitted: [['CSeq: 1 ACK', DUPLICATE_ACK, 2]] },
  '20-uas-indialog-requests.txt': {
    omitted: [['SIP/2.0 503 Service Unavailable', NO_DIALOG]],
    added: [['SIP/2.0 481 Call', NO_DIALOG]],
  },
  '21-uas-reinvite-from-network.txt': {
    omitted: [
      ['ACK sip:127.0.0.1:26144 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:26147;branch=z9hG4bK-qp5ov8u0iw', DUPLICATE_ACK],
    ],
  },
  '22b-reinvite-via-dlg-request.txt': {
    omitted: [['z9hG4bK4D62y1evHF4gg', ACK_OF_FAILURE]],
    added: [
      ['|NOK|Server error: ACK for non-success', ACK_OF_FAILURE],
      ['SIP/2.0 487', 'the end of a cancelled re-INVITE is delivered (docs/drachtio.md)'],
    ],
  },
  '24-reinvite-180-then-200.txt': {
    added: [['SIP/2.0 200 OK', 'a 200 after a 180 to a re-INVITE is delivered (docs/drachtio.md)']],
  },
  '26-bye-from-app-variants.txt': T1_50,
  '27-indialog-timeout.txt': T1_50,
  '28-app-disconnects-mid-call.txt': CUT,
  '29-app-disconnects-while-ringing.txt': CUT,
  '35-uac-timeout-408.txt': T1_50,
  '36-uac-unreachable.txt': T1_50,
  '43-uac-forked-18x.txt': {
    omitted: [['CSeq: 123062123 ACK', FORK, 2]],
    added: [
      [' ACK\r\n', FORK],
      [' BYE\r\n', FORK],
    ],
  },
  '48-uac-message-subscribe.txt': {
    omitted: [
      ['SIP/2.0 500 Internal Server Error', NOTIFY],
      ['027e70df-33d5-4ecd-860c-bd2984c84426', NOTIFY],
    ],
    added: [['SIP/2.0 200 OK', NOTIFY]],
  },
  '60-session-timer-uac-refresher.txt': { omitted: [['CSeq: 2 ACK', DUPLICATE_ACK]] },
  '70-errors.txt': {
    omitted: [['d5f74544-81af-4663-b570-2043346851e9|NOK', NO_PROXY]],
    added: [['|NO|Unknown message type', NO_PROXY]],
  },
  '70b-tel-uri-crash.txt': {
    stays_open: ['ctl1'],
    added: [
      ['|NOK|invalid request-uri', 'a tel: URI without a proxy is refused, and the server survives (docs/drachtio.md)'],
    ],
  },
  '72-framing.txt': { junk: { ctl3: '\r\n', ctl5: '123456789012#' } },
  '73-big-messages.txt': {
    added: [
      ['Content-Length: 12300', LARGE],
      ['Content-Length: 16000', LARGE],
      ['Content-Length: 40000', LARGE],
    ],
  },
  '88-uac-no-contact-in-200.txt': {
    omitted: [['unable to find route when sending', NO_CONTACT]],
    added: [[' ACK\r\n', NO_CONTACT]],
  },
  '91-sip-tls.txt': { tls },
  '94-app-gone-during-outbound-call.txt': {
    ...CUT,
    added: [
      [' ACK\r\n', ORPHAN],
      [' BYE\r\n', ORPHAN],
    ],
  },
  '98-uac-refer-notify.txt': {
    omitted: [['SIP/2.0 481', NOTIFY]],
    added: [[' INFO\r\n', NOTIFY]],
  },
  '95-dialog-after-reconnect.txt': CUT,
}

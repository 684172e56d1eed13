import { answered, hangUp, untilBye } from '../b2bua-world.ts'
import { inDialog } from '../sip-steps.ts'
import { caller, provisionals, receive } from '../sipp.ts'
import type { Story } from './story.ts'

const headersInOrder = (...begins: readonly string[]): RegExp =>
  new RegExp(begins.map(begin => `^${begin.replace(/[+.]/g, '\\$&')}`).join('[\\s\\S]*'), 'm')

const [CALLER_ID, TARGET_ID] = ['a1'.repeat(16), 'b2'.repeat(16)]

/** Headers that identify the caller and record earlier diversions. */
export const HEADERS: readonly Story[] = [
  {
    title:
      'P-Asserted-Identity identifies the caller, and History-Info reaches the target without host names of the peer',
    peer: [
      caller
        .invite({
          headers:
            'P-Asserted-Identity: "Desk" <sip:[from]@[local_ip]>\n' +
            'History-Info: <sip:+2348031112222@x.example>;index=1, <sip:[service]@x.example>;index=1.1',
        })
        .replace('From: <sip:[from]@', 'From: "Anonymous" <sip:anonymous@'),
      ...provisionals,
      receive.response(200, { dialog: true }),
      caller.ack.replace('From: <sip:[from]@', 'From: "Anonymous" <sip:anonymous@'),
      inDialog('BYE', 2).replace('From: <sip:[from]@', 'From: "Anonymous" <sip:anonymous@'),
      receive.response(200),
    ],
    target: untilBye,
    atTarget: headersInOrder(
      'Diversion: <sip:+2348031112222@localhost>',
      'History-Info: <sip:+2348031112222@localhost>;index=1,',
      'P-Asserted-Identity: <sip:+234201',
    ),
    notAtTarget: /x\.example/,
  },
  {
    title:
      'the id of the session passes in the ringing, the answer and the BYE, with the receiver as remote (RFC 7989)',
    peer: [caller.invite({ headers: `Session-ID: ${CALLER_ID};remote=${'0'.repeat(32)}` }), ...answered, ...hangUp(2)],
    target: untilBye.map(step =>
      step.replace(/SIP\/2\.0 (180 Ringing|200 OK)\n/, line => `${line}Session-ID: ${TARGET_ID};remote=${CALLER_ID}\n`),
    ),
    atTarget: headersInOrder(
      'INVITE ',
      `Session-ID: ${CALLER_ID};remote=${'0'.repeat(32)}`,
      'BYE ',
      `Session-ID: ${CALLER_ID};remote=${TARGET_ID}`,
    ),
    atPeer: headersInOrder(
      'SIP/2.0 180 ',
      `Session-ID: ${TARGET_ID};remote=${CALLER_ID}`,
      'SIP/2.0 200 ',
      `Session-ID: ${TARGET_ID};remote=${CALLER_ID}`,
    ),
  },
  {
    title: 'a Remote-Party-ID of the peer identifies the caller',
    peer: [
      caller
        .invite({ headers: 'Remote-Party-ID: <sip:[from]@[local_ip]>;party=calling;privacy=off' })
        .replace('From: <sip:[from]@', 'From: <sip:100@'),
      ...provisionals,
      receive.response(200, { dialog: true }),
      caller.ack.replace('From: <sip:[from]@', 'From: <sip:100@'),
      inDialog('BYE', 2).replace('From: <sip:[from]@', 'From: <sip:100@'),
      receive.response(200),
    ],
    target: untilBye,
    atTarget: /From: <sip:\+234201\d+@/,
    notAtTarget: /Remote-Party-ID/,
  },
  {
    title: 'a Remote-Party-ID that asks for privacy hides the caller from the target',
    peer: [
      caller.invite({
        headers:
          'Remote-Party-ID: "Hall" <sip:[service]@[local_ip]>;party=called, ' +
          '"Desk, 1" <sip:[from]@[local_ip]>;party=calling;privacy=full;screen=yes',
      }),
      ...answered,
      ...hangUp(2),
    ],
    target: untilBye,
    atTarget: headersInOrder('From: "Anonymous" <sip:anonymous@anonymous.invalid>', 'Privacy: id'),
    notAtTarget: /Remote-Party-ID|Desk/,
  },
]

import { answered, answers, hangUp, untilBye } from '../b2bua-world.ts'
import {
  answerInvite,
  answerKeepingTo,
  audioSdp,
  inDialog,
  inviteToAnswerLater,
  KEPT_TO,
  ofCallee,
  receiveInvite,
} from '../sip-steps.ts'
import { awaits, callee, caller, pause, provisionals, receive, tells } from '../sipp.ts'
import type { Story } from './story.ts'

const ended = [receive.request('BYE'), callee.ok]
/** Waits until the caller also has its answer. */
const untilAnswered = awaits('caller_is_answered')
const callerIsAnswered = tells('caller_is_answered')

/** Receives our BYE and keeps the headers that its answer needs. */
const receiveBye = `<recv request="BYE"><action>
${['Via', 'From', 'To', 'CSeq'].map(name => `<ereg regexp=".*" search_in="hdr" header="${name}:" assign_to="bye_${name}"/>`).join('\n')}
</action></recv>`
const answerBye = `<send><![CDATA[
SIP/2.0 200 OK
${['Via', 'From', 'To', 'CSeq'].map(name => `${name}: [$bye_${name}]`).join('\n')}
Call-ID: [call_id]
Content-Length: 0

]]></send>`

/** How calls end, and requests that cross at the end. */
export const ENDING: readonly Story[] = [
  {
    title: 'without an ACK the 200 is retransmitted, then both legs end',
    peer: [caller.invite(), ...provisionals, receive.response(200), '<recv request="BYE" timeout="90000"/>', callee.ok],
    target: untilBye,
    row: { status: 'completed', reason: 'no_ack' },
    only: 'udp',
  },
  {
    title: 'when a BYE of the target crosses ours, both are answered and the call ends once',
    peer: [caller.invite(), ...answered, ...hangUp(2)],
    target: [receiveInvite, ...answers.slice(1), receiveBye, ofCallee('BYE', 1), receive.response(200), answerBye],
    row: { status: 'completed', ended_by: 'caller' },
  },
  {
    title: 'when a BYE of the caller crosses ours, both are answered and the call ends once',
    peer: [
      caller.invite(),
      ...provisionals,
      answerKeepingTo,
      caller.ack,
      callerIsAnswered,
      receiveBye,
      inDialog('BYE', 2, { to: KEPT_TO }),
      receive.response(200),
      answerBye,
    ],
    target: [receiveInvite, ...answers.slice(1), untilAnswered, ofCallee('BYE', 1), receive.response(200)],
    row: { status: 'completed', ended_by: 'called' },
  },
  {
    title: 'a BYE of a caller that sent no ACK ends both legs',
    peer: [caller.invite(), ...provisionals, receive.response(200, { dialog: true }), ...hangUp(2)],
    target: untilBye,
    row: { status: 'completed', ended_by: 'caller', sip_code: 200 },
  },
  {
    title: 'when the target hangs up right after the ACK, the caller gets either a 200 and a BYE or a 480',
    peer: [
      caller.invite(),
      receive.response(100, { optional: true }),
      receive.response(180),
      '<recv response="480" optional="true" next="40"/>',
      receive.response(200, { dialog: true }),
      caller.ack,
      ...ended,
      '<nop next="41"/>',
      '<label id="40"/>',
      caller.ackOfFailure,
      '<label id="41"/>',
    ],
    target: [receiveInvite, ...answers.slice(1), ofCallee('BYE', 1), receive.response(200)],
    row: { ended_by: 'called' },
  },
  {
    title: 'when the target hangs up before the ACK of the caller, our BYE waits for that ACK',
    peer: [
      caller.invite(),
      ...provisionals,
      receive.response(200, { dialog: true }),
      callerIsAnswered,
      awaits('target_is_gone'),
      // A BYE that does not wait arrives within this time.
      pause(500),
      caller.ack,
      ...ended,
    ],
    target: [
      receiveInvite,
      ...answers.slice(1),
      untilAnswered,
      ofCallee('BYE', 1),
      receive.response(200),
      tells('target_is_gone'),
    ],
    row: { status: 'completed', ended_by: 'called' },
    only: 'udp',
  },
  {
    title: 'when a CANCEL crosses the answer, the late 200 gets an ACK and a BYE',
    peer: [
      caller.invite(),
      receive.response(100, { optional: true }),
      receive.response(180),
      caller.cancel,
      receive.response(200),
      receive.response(487),
      caller.ackOfFailure,
    ],
    target: [
      inviteToAnswerLater,
      callee.respond(180, 'Ringing'),
      receive.request('CANCEL'),
      callee.ok,
      answerInvite(200, 'OK', { sdp: audioSdp() }),
      receive.request('ACK'),
      ...ended,
    ],
    row: { status: 'canceled', sip_code: 487 },
  },
  {
    title: 'a target that answers with a codec that was not offered gets an ACK and a BYE, and the caller a 502',
    peer: [caller.invite(), ...provisionals, receive.response(502), caller.ackOfFailure],
    target: [
      inviteToAnswerLater,
      answerInvite(200, 'OK', { sdp: audioSdp({ payloads: '3', maps: 'a=rtpmap:3 GSM/8000' }) }),
      receive.request('ACK'),
      ...ended,
    ],
    row: { status: 'failed', sip_code: 502 },
    only: 'udp',
  },
  {
    title: 'a CANCEL during ringing reaches the target',
    peer: [
      caller.invite(),
      receive.response(100, { optional: true }),
      receive.response(180),
      caller.cancel,
      receive.response(200),
      receive.response(487),
      caller.ackOfFailure,
    ],
    target: [
      inviteToAnswerLater,
      callee.respond(180, 'Ringing'),
      receive.request('CANCEL'),
      callee.ok,
      answerInvite(487, 'Request Terminated'),
      receive.request('ACK'),
    ],
    atTarget: /^CANCEL [\s\S]*\nReason: SIP;cause=200;text="Call completed elsewhere"/m,
    row: { status: 'canceled', ended_by: 'caller' },
  },
  {
    title: 'the Q.850 cause of the callee’s BYE reaches the caller without its text',
    peer: [caller.invite(), ...answered, callerIsAnswered, ...ended],
    target: [
      receiveInvite,
      ...answers.slice(1),
      untilAnswered,
      ofCallee('BYE', 1, { headers: 'Reason: Q.850;cause=41;text="by [local_ip]"' }),
      receive.response(200),
    ],
    atPeer: /Reason: Q\.850;cause=41\r?\n/,
    row: { status: 'completed', ended_by: 'called' },
  },
]

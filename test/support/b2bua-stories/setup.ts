import { answered, answers, hangUp, refusedWith, untilBye } from '../b2bua-world.ts'
import { UNHEARD_PORT } from '../ports.ts'
import {
  ackOf,
  answerInvite,
  answerWith,
  audioSdp,
  inDialog,
  inviteToAnswerLater,
  lateInvite,
  ofCallee,
  prack,
  receiveInvite,
  reliableProvisional,
} from '../sip-steps.ts'
import { awaits, callee, caller, provisionals, receive, tells } from '../sipp.ts'
import { finalOf, provisionalOf, type Story, sdpOf } from './story.ts'

const ended = [receive.request('BYE'), callee.ok]
/** Waits until the peer has sent its requests before the answer. */
const untilPeerIsThrough = awaits('peer_is_through')
const peerIsThrough = tells('peer_is_through')
const sdp = (options: Parameters<typeof audioSdp>[0] = {}) => ({ type: 'application/sdp', text: audioSdp(options) })

/** From the INVITE to the answer: ringing, early media, forks, late offers, reliable provisional responses, expiry. */
export const SETUP: readonly Story[] = [
  {
    title: 'ringing without early media reaches the caller as 180, not 183',
    peer: [
      caller.invite(),
      receive.response(100, { optional: true }),
      receive.response(180),
      ...answered.slice(3),
      ...hangUp(2),
    ],
    target: untilBye,
    row: { status: 'completed', ended_by: 'caller' },
    notAtPeer: /SIP\/2\.0 183/,
  },
  {
    title: 'early media reaches the caller as 183 with our SDP, a later 180 is dropped, and the 200 has the same SDP',
    peer: [
      caller.invite(),
      receive.response(100, { optional: true }),
      answerWith(183, 'm=audio [0-9]+ RTP/AVP 0', 'body'),
      peerIsThrough,
      receive.response(200, { dialog: true }),
      caller.ack,
      ...hangUp(2),
    ],
    target: [
      receive.request('INVITE'),
      callee.respond(183, 'Session Progress', { sdp: true }),
      callee.respond(180, 'Ringing'),
      untilPeerIsThrough,
      callee.respond(200, 'OK', { sdp: true }),
      receive.request('ACK'),
      ...ended,
    ],
    notAtPeer: /SIP\/2\.0 180/,
  },
  {
    title: 'a 183 without SDP reaches the caller as 183',
    peer: [
      caller.invite(),
      receive.response(100, { optional: true }),
      receive.response(183),
      peerIsThrough,
      ...answered.slice(3),
      ...hangUp(2),
    ],
    target: [
      receive.request('INVITE'),
      callee.respond(183, 'Session Progress'),
      untilPeerIsThrough,
      ...answers.slice(2),
      ...ended,
    ],
  },
  {
    title: 'of two forks with early media, the one that answers gets the call',
    peer: [
      caller.invite(),
      receive.response(100, { optional: true }),
      answerWith(183, 'm=audio', 'body'),
      peerIsThrough,
      receive.response(200, { dialog: true }),
      caller.ack,
      ...hangUp(2),
    ],
    target: [
      receive.request('INVITE'),
      provisionalOf('one', 183, sdpOf(UNHEARD_PORT + 10)),
      provisionalOf('two', 183, sdpOf(UNHEARD_PORT + 20)),
      untilPeerIsThrough,
      finalOf('one', sdpOf(UNHEARD_PORT + 10)),
      receive.request('ACK'),
      ...ended,
    ],
  },
  {
    title: 'the 200 to an INVITE without an offer carries our offer, and the ACK the answer',
    peer: [lateInvite(), ...provisionals, answerWith(200, 'm=audio', 'body'), ackOf(1, audioSdp()), ...hangUp(2)],
    target: untilBye,
  },
  {
    title:
      'a caller that supports 100rel gets early media in a reliable 183, and its UPDATE before the 200 is answered',
    peer: [
      caller.invite({ headers: 'Supported: 100rel' }),
      receive.response(100, { optional: true }),
      reliableProvisional(183),
      prack(2),
      receive.response(200),
      inDialog('UPDATE', 3, {
        body: { type: 'application/sdp', text: audioSdp({ version: 2, direction: 'sendonly' }) },
      }),
      answerWith(200, 'a=recvonly|a=inactive', 'body'),
      peerIsThrough,
      receive.response(200, { dialog: true }),
      ackOf(1),
      ...hangUp(4),
    ],
    target: [
      receive.request('INVITE'),
      callee.respond(183, 'Session Progress', { sdp: true }),
      untilPeerIsThrough,
      ...answers.slice(2),
      ...ended,
    ],
  },
  {
    title: 'an INVITE without an offer that requires 100rel gets our offer in a reliable 180',
    peer: [
      lateInvite('Require: 100rel'),
      receive.response(100, { optional: true }),
      reliableProvisional(180),
      inDialog('PRACK', 2, { headers: 'RAck: [$rseq] 1 INVITE', body: sdp() }),
      receive.response(200),
      peerIsThrough,
      answerWith(200, 'Content-Length: 0'),
      ackOf(1),
      ...hangUp(3),
    ],
    target: [
      receive.request('INVITE'),
      callee.respond(180, 'Ringing'),
      untilPeerIsThrough,
      ...answers.slice(2),
      ...ended,
    ],
  },
  {
    title: 'a call survives a PRACK that never comes',
    peer: [
      caller.invite({ headers: 'Require: 100rel' }),
      receive.response(100, { optional: true }),
      receive.response(180),
      '<recv response="180" optional="true"/>',
      '<recv response="200" rrs="true"/>',
      ackOf(1),
      ...hangUp(2),
    ],
    target: [...answers, ...ended],
    only: 'tcp',
  },
  {
    title: 'a target that sends a reliable 180 gets a PRACK',
    peer: [caller.invite(), ...answered, ...hangUp(2)],
    target: [
      inviteToAnswerLater,
      callee.respond(180, 'Ringing', { headers: 'Require: 100rel\nRSeq: 17' }),
      `<recv request="PRACK"><action><ereg regexp="17 [0-9]+ INVITE" search_in="hdr" header="RAck:" check_it="true" assign_to="rack"/></action></recv>`,
      '<nop><action><log message="[$rack]"/></action></nop>',
      callee.ok,
      answerInvite(200, 'OK', { sdp: audioSdp(), tagged: true }),
      receive.request('ACK'),
      ...ended,
    ],
    only: 'udp',
  },
  {
    title: 'an INVITE that expires during ringing is cancelled, and the caller gets 487',
    peer: [caller.invite({ headers: 'Expires: 3' }), ...refusedWith(487)],
    target: [
      inviteToAnswerLater,
      callee.respond(180, 'Ringing'),
      receive.request('CANCEL'),
      callee.ok,
      answerInvite(487, 'Request Terminated'),
      receive.request('ACK'),
    ],
    row: { status: 'no-answer', reason: 'no_answer', sip_code: 487 },
  },
  {
    title: 'an offer in a PRACK is answered in its 200',
    peer: [
      caller.invite({ headers: 'Supported: 100rel' }),
      receive.response(100, { optional: true }),
      reliableProvisional(183),
      inDialog('PRACK', 2, {
        headers: 'RAck: [$rseq] 1 INVITE',
        body: sdp({ version: 2, payloads: '8', maps: 'a=rtpmap:8 PCMA/8000' }),
      }),
      answerWith(200, 'm=audio [0-9]+ RTP/AVP 8', 'body'),
      peerIsThrough,
      receive.response(200, { dialog: true }),
      ackOf(1),
      ...hangUp(3),
    ],
    target: [
      receive.request('INVITE'),
      callee.respond(183, 'Session Progress', { sdp: true }),
      untilPeerIsThrough,
      ...answers.slice(2),
      ...ended,
    ],
  },
  {
    title: 'a target may move acknowledged early media by UPDATE and answer without SDP',
    peer: [caller.invite(), ...answered, ...hangUp(2)],
    target: [
      inviteToAnswerLater.replace(
        '</action>',
        `${receiveInvite.replace(/^<recv[^>]*><action>|<\/action><\/recv>$/g, '')}</action>`,
      ),
      callee.respond(183, 'Session Progress', { sdp: true, headers: 'Require: 100rel\nRSeq: 7' }),
      receive.request('PRACK'),
      callee.ok,
      ofCallee('UPDATE', 1, { body: sdp({ version: 2, payloads: '8', maps: 'a=rtpmap:8 PCMA/8000' }) }),
      answerWith(200, 'm=audio [0-9]+ RTP/AVP 8', 'body'),
      answerInvite(200, 'OK', { tagged: true }),
      receive.request('ACK'),
      ...ended,
    ],
  },
]

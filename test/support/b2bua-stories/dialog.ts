import { answered, answers, hangUp, untilBye } from '../b2bua-world.ts'
import { UNHEARD_PORT } from '../ports.ts'
import {
  ackOf,
  answerKeepingTo,
  answerWith,
  audioSdp,
  inDialog,
  KEPT_TO,
  ofCallee,
  receiveInvite,
  reInvite,
} from '../sip-steps.ts'
import { awaits, callee, caller, provisionals, receive, tells } from '../sipp.ts'
import { type Story, sdpOf } from './story.ts'

const ended = [receive.request('BYE'), callee.ok]
const untilTargetIsThrough = awaits('target_is_through')
const targetIsThrough = tells('target_is_through')
const reinvited = (cseq: number, step: string): string[] => [step, answerWith(200, 'm=audio', 'body'), ackOf(cseq)]

/** Requests within the dialog: offers from either side, session timers, and requests that change nothing. */
export const DIALOG: readonly Story[] = [
  {
    title: 'hold, resume, a new codec and a new port are answered and do not reach the other leg',
    peer: [
      caller.invite(),
      ...answered,
      ...reinvited(2, reInvite(2, audioSdp({ version: 2, direction: 'sendonly' }))),
      ...reinvited(3, reInvite(3, audioSdp({ version: 3 }))),
      ...reinvited(4, reInvite(4, audioSdp({ version: 4, payloads: '8', maps: 'a=rtpmap:8 PCMA/8000' }))),
      ...reinvited(5, reInvite(5, sdpOf(UNHEARD_PORT + 40, 5))),
      ...hangUp(6),
    ],
    target: untilBye,
  },
  {
    title: 'simultaneous re-INVITEs from both ends are all answered, and the call continues',
    peer: [
      caller.invite(),
      ...answered,
      ...[2, 3, 4, 5, 6].flatMap(cseq => reinvited(cseq, reInvite(cseq, audioSdp({ version: cseq })))),
      untilTargetIsThrough,
      ...hangUp(7),
    ],
    target: [
      receiveInvite,
      ...answers.slice(1),
      ...[1, 2, 3, 4, 5].flatMap(cseq => [
        ofCallee('INVITE', cseq, { body: { type: 'application/sdp', text: audioSdp({ version: cseq + 1 }) } }),
        receive.response(100, { optional: true }),
        answerWith(200, 'm=audio', 'body'),
        ofCallee('ACK', cseq).replace(' retrans="500"', ''),
      ]),
      targetIsThrough,
      ...ended,
    ],
  },
  {
    title: 'the 200 keeps the session refresher that the caller chose',
    peer: [
      caller.invite({ headers: 'Supported: timer\nSession-Expires: 90;refresher=uas' }),
      ...provisionals,
      answerWith(200, 'Session-Expires: 90;refresher=uas'),
      caller.ack,
      ...hangUp(2),
    ],
    target: untilBye,
  },
  {
    title: 'a target that answers 422 gets a second INVITE with its Min-SE',
    peer: [caller.invite(), ...answered, ...hangUp(2)],
    target: [
      '<recv request="INVITE" rrs="true"><action><ereg regexp="3600" search_in="hdr" header="Min-SE:" assign_to="least"/></action></recv>',
      '<nop next="40" test="least"/>',
      callee.respond(422, 'Session Interval Too Small', { headers: 'Min-SE: 3600;why=policy' }),
      receive.request('ACK'),
      '<nop next="41"/>',
      '<label id="40"/>',
      ...answers.slice(1),
      ...ended,
      '<label id="41"/>',
    ],
    calls: 2,
    only: 'udp',
  },
  {
    title: 'OPTIONS, UPDATE, DTMF INFO and unknown bodies are answered on each leg and do not reach the other',
    peer: [
      caller.invite(),
      ...answered,
      inDialog('OPTIONS', 2),
      answerWith(200, 'Allow: INVITE'),
      inDialog('UPDATE', 3),
      receive.response(200),
      inDialog('INFO', 4, { body: { type: 'application/media_control+xml', text: '<media_control/>' } }),
      receive.response(415),
      inDialog('SUBSCRIBE', 5, { headers: 'Event: dialog' }),
      receive.response(489),
      untilTargetIsThrough,
      ...hangUp(6),
    ],
    target: [
      receiveInvite,
      ...answers.slice(1),
      ofCallee('OPTIONS', 1),
      answerWith(200, 'Allow: INVITE'),
      ofCallee('UPDATE', 2),
      receive.response(200),
      ofCallee('INFO', 3, { body: { type: 'application/dtmf', text: '7' } }),
      receive.response(200),
      targetIsThrough,
      ...ended,
    ],
  },
  {
    title: 'a text MESSAGE reaches the other side and its answer comes back; other content gets 415',
    peer: [
      caller.invite(),
      ...provisionals,
      answerKeepingTo,
      caller.ack,
      inDialog('MESSAGE', 2, { to: KEPT_TO, body: { type: 'text/plain', text: 'on my way' } }),
      receive.response(200),
      inDialog('MESSAGE', 3, { to: KEPT_TO, body: { type: 'application/octet-stream', text: 'x' } }),
      receive.response(415),
      tells('peer_is_through'),
      receive.request('MESSAGE'),
      callee.respond(486, 'Busy Here').replace(';tag=[pid]callee[call_number]', ''),
      ...ended,
    ],
    target: [
      receiveInvite,
      ...answers.slice(1),
      `<recv request="MESSAGE"><action><ereg regexp="on my way" search_in="body" check_it="true" assign_to="text"/></action></recv>`,
      '<nop><action><log message="[$text]"/></action></nop>',
      callee.ok,
      awaits('peer_is_through'),
      ofCallee('MESSAGE', 1, { body: { type: 'text/plain', text: 'wait' } }),
      receive.response(486),
      ofCallee('BYE', 2),
      receive.response(200),
    ],
  },
  {
    title: 'a target that refreshes the session by UPDATE or re-INVITE gets the interval that it asked for',
    peer: [caller.invite(), ...answered, untilTargetIsThrough, ...hangUp(2)],
    target: [
      receiveInvite,
      callee.respond(180, 'Ringing'),
      callee.respond(200, 'OK', { sdp: true, headers: 'Require: timer\nSession-Expires: 300;refresher=uas' }),
      receive.request('ACK'),
      ofCallee('UPDATE', 1, { headers: 'Supported: timer\nSession-Expires: 300;refresher=uac' }),
      answerWith(200, 'Session-Expires: 300;refresher=uac'),
      ofCallee('INVITE', 2, {
        headers: 'Supported: timer\nSession-Expires: 300;refresher=uac',
        body: { type: 'application/sdp', text: audioSdp() },
      }),
      receive.response(100, { optional: true }),
      answerWith(200, 'Session-Expires: 300;refresher=uac'),
      ofCallee('ACK', 2).replace(' retrans="500"', ''),
      ofCallee('UPDATE', 3, { headers: 'Supported: timer\nSession-Expires: 60;refresher=uac' }),
      answerWith(422, 'Min-SE: 90'),
      targetIsThrough,
      ...ended,
    ],
  },
]

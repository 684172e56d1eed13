/**
 * Steps of SIPp scenarios within a dialog, in addition to those of sipp.ts: requests after the call is answered.
 */

import { callee, cued, receive } from './sipp.ts'

const cdata = (text: string): string => `<![CDATA[\n${text}\n]]>`

export const audioSdp = (
  options: { version?: number; direction?: string; payloads?: string; maps?: string } = {},
): string =>
  `v=0
o=peer 53655765 ${options.version ?? 1} IN IP[local_ip_type] [local_ip]
s=-
c=IN IP[media_ip_type] [local_ip]
t=0 0
m=audio [rtp_port] RTP/AVP ${options.payloads ?? '0 8 101'}
${options.maps ?? 'a=rtpmap:0 PCMU/8000\na=rtpmap:8 PCMA/8000\na=rtpmap:101 telephone-event/8000\na=fmtp:101 0-15'}
a=${options.direction ?? 'sendrecv'}`

interface Body {
  readonly type: string
  readonly text: string
}

const tail = (body: Body | undefined): string =>
  body ? `Content-Type: ${body.type}\nContent-Length: [len]\n\n${body.text}` : 'Content-Length: 0\n'

/** Sends a request of the caller in its dialog; `cseq` must increase. */
export const inDialog = (
  method: string,
  cseq: number,
  options: { headers?: string; body?: Body; to?: string } = {},
): string =>
  `<send retrans="500">${cdata(`${method} [next_url] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
[routes]
From: <sip:[from]@[local_ip]:[local_port]>;tag=[pid]peer[call_number]
${options.to ?? '[last_To:]'}
Call-ID: [call_id]
CSeq: ${cseq} ${method}
Contact: <sip:peer@[local_ip]:[local_port];transport=[transport]>
Max-Forwards: 70${options.headers ? `\n${options.headers}` : ''}
${tail(options.body)}`)}</send>`

/** Receives the 200 and keeps its To, because a request that the caller receives later changes `[last_To:]`. */
export const answerKeepingTo = `<recv response="200" rrs="true"><action><ereg regexp=".*" search_in="hdr" header="To:" assign_to="to"/></action></recv>`
export const KEPT_TO = 'To: [$to]'

export const reInvite = (cseq: number, sdp: string, headers?: string): string =>
  inDialog('INVITE', cseq, { ...(headers ? { headers } : {}), body: { type: 'application/sdp', text: sdp } })

export const ackOf = (cseq: number, sdp?: string): string =>
  `<send>${cdata(`ACK [next_url] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
[routes]
From: <sip:[from]@[local_ip]:[local_port]>;tag=[pid]peer[call_number]
[last_To:]
Call-ID: [call_id]
CSeq: ${cseq} ACK
Max-Forwards: 70
${tail(sdp === undefined ? undefined : { type: 'application/sdp', text: sdp })}`)}</send>`

/** Sends an INVITE without an offer. The callee makes the offer and the ACK answers it (RFC 3264 §5). */
export const lateInvite = (headers = ''): string =>
  `<send retrans="500">${cdata(`INVITE sip:[service]@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:[from]@[local_ip]:[local_port]>;tag=[pid]peer[call_number]
To: <sip:[service]@[remote_ip]:[remote_port]>
Call-ID: [call_id]
CSeq: 1 INVITE
Contact: <sip:peer@[local_ip]:[local_port];transport=[transport]>
Max-Forwards: 70${headers ? `\n${headers}` : ''}
Content-Length: 0
`)}</send>`

/** Receives a reliable provisional response and keeps its RSeq. */
export const reliableProvisional = (status: number): string =>
  `<recv response="${status}" rrs="true"><action><ereg regexp="[0-9]+" search_in="hdr" header="RSeq:" check_it="true" assign_to="rseq"/></action></recv>`

export const prack = (cseq: number): string => inDialog('PRACK', cseq, { headers: 'RAck: [$rseq] 1 INVITE' })

/** Receives a response whose body or message must match. */
export const answerWith = (status: number, pattern: string, where: 'body' | 'msg' = 'msg'): string =>
  `<recv response="${status}" rrs="true"><action><ereg regexp="${pattern}" search_in="${where}" check_it="true" assign_to="seen"/></action></recv>
<nop><action><log message="[$seen]"/></action></nop>`

/** Receives the INVITE and keeps the addresses of both ends, for a callee that will send requests. */
export const receiveInvite = `<recv request="INVITE" rrs="true"><action>
<ereg regexp=".*" search_in="hdr" header="From:" assign_to="remote"/>
<ereg regexp=".*" search_in="hdr" header="To:" assign_to="local"/>
</action></recv>`

/** Sends a request of the callee in its dialog, after `receiveInvite`. */
export const ofCallee = (method: string, cseq: number, options: { headers?: string; body?: Body } = {}): string =>
  `<send retrans="500">${cdata(`${method} [next_url] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
[routes]
From: [$local];tag=[pid]callee[call_number]
To: [$remote]
Call-ID: [call_id]
CSeq: ${cseq} ${method}
Contact: <sip:callee@[local_ip]:[local_port];transport=[transport]>
Max-Forwards: 70${options.headers ? `\n${options.headers}` : ''}
${tail(options.body)}`)}</send>`

/** Waits for a BYE, and sends a BYE when cued first. */
export const endsWhenCued: readonly string[] = [
  '<recv request="BYE" optional="true" next="20"/>',
  cued,
  ofCallee('BYE', 1),
  receive.response(200),
  '<nop next="21"/>',
  '<label id="20"/>',
  callee.ok,
  '<label id="21"/>',
]

/** Receives the INVITE and keeps what its final response needs after other requests. */
export const inviteToAnswerLater =
  '<recv request="INVITE" rrs="true"><action><ereg regexp=".*" search_in="hdr" header="Via:" assign_to="via"/><ereg regexp="[0-9]+" search_in="hdr" header="CSeq:" assign_to="cseq"/></action></recv>'

/** Sends that final response, with the [last_To:] of a later request; `tagged` when that request had our tag. */
export const answerInvite = (
  status: number,
  reason: string,
  options: { sdp?: string; tagged?: boolean } = {},
): string =>
  `<send${status === 200 ? ' retrans="500"' : ''}>${cdata(`SIP/2.0 ${status} ${reason}
Via:[$via]
[last_From:]
[last_To:]${options.tagged ? '' : ';tag=[pid]callee[call_number]'}
[last_Call-ID:]
CSeq: [$cseq] INVITE
Contact: <sip:callee@[local_ip]:[local_port];transport=[transport]>
${tail(options.sdp === undefined ? undefined : { type: 'application/sdp', text: options.sdp })}`)}</send>`

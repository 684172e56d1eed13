/** A SIP message of a call, as stored for the ladder. */
export interface CallMessage {
  readonly sip_call_id: string
  /** Unix time, in ms. */
  readonly at_ms: number
  readonly direction: 'in' | 'out'
  readonly protocol: string
  /** `host:port` */
  readonly local: string
  /** `host:port` */
  readonly remote: string
  readonly retransmission: 0 | 1
  /** Without secrets (see redact.ts). */
  readonly text: string
}

/** Returns the messages that are not among the known ones. */
export function missingFrom(known: readonly CallMessage[], messages: readonly CallMessage[]): CallMessage[] {
  const keyOf = ({ sip_call_id, at_ms, direction, text }: CallMessage): string =>
    JSON.stringify([sip_call_id, at_ms, direction, text])
  const keys = new Set(known.map(keyOf))
  return messages.filter(message => !keys.has(keyOf(message)))
}

/** The longest Call-ID of a message that is kept, in characters. Those of devices have less than 150. */
export const LONGEST_CALL_ID = 1000

/**
 * Passes what a peer repeats of its DTLS handshake only where the library takes it. A peer repeats a flight when our
 * answer is late (RFC 6347 §4.2.4), by as little as 50 ms in browsers. werift computes keys anew from each
 * ClientKeyExchange, over all messages that came until then, so that a repeated one breaks the handshake. It also
 * begins again at each first ClientHello. It answers the repeated second ClientHello and Finished as it should.
 */
export class HandshakeRepeats {
  readonly #passed = new Set<string>()
  #hello = 0

  /** Returns the datagram without the records that must not be repeated. */
  pass(datagram: Buffer): Buffer {
    return Buffer.concat(recordsOf(datagram).filter(record => this.#passes(record)))
  }

  #passes(record: Buffer): boolean {
    const encrypted = record.length >= RECORD_BYTES && record.readUInt16BE(3) > 0
    if (record[0] !== HANDSHAKE || encrypted || record.length < RECORD_BYTES + MESSAGE_BYTES) return true
    const type = record[RECORD_BYTES]
    const sequence = record.readUInt16BE(RECORD_BYTES + 4)
    if (type === CLIENT_HELLO) {
      if (sequence < this.#hello) return false
      this.#hello = sequence
    }
    if (type !== CERTIFICATE && type !== CERTIFICATE_VERIFY && type !== CLIENT_KEY_EXCHANGE) return true
    const id = `${sequence} ${record.readUIntBE(RECORD_BYTES + 6, 3)}`
    if (this.#passed.size === MOST_FRAGMENTS || this.#passed.has(id)) return false
    this.#passed.add(id)
    return true
  }
}

/** Headers of RFC 6347 §4.1 and §4.2.2, and types of RFC 5246. */
const RECORD_BYTES = 13
const MESSAGE_BYTES = 12
const HANDSHAKE = 22
const CLIENT_HELLO = 1
const CERTIFICATE = 11
const CERTIFICATE_VERIFY = 15
const CLIENT_KEY_EXCHANGE = 16
/** A flight has three such messages; a certificate of 16 KiB in fragments of 200 bytes has 80. */
const MOST_FRAGMENTS = 100

function recordsOf(datagram: Buffer): Buffer[] {
  const records: Buffer[] = []
  for (let at = 0; at < datagram.length; ) {
    const bytes = at + RECORD_BYTES > datagram.length ? datagram.length : RECORD_BYTES + datagram.readUInt16BE(at + 11)
    records.push(datagram.subarray(at, at + bytes))
    at += bytes
  }
  return records
}

import type { Socket } from 'node:net'

/** undici accepts no larger head either. */
const MAX_HEAD_BYTES = 32 * 1024
const INTERIM = ['HTTP/1.1 1', 'HTTP/1.0 1']
const STATUS_BYTES = 'HTTP/1.1 100'.length
/** 101 ends HTTP on the connection, so it is final (RFC 9110 §15.2.2). */
const SWITCHES = /101$/
const HEAD_END = '\r\n\r\n'

/**
 * Drops the 1xx responses that precede a response on this socket. A client accepts those that it did not ask for (RFC
 * 9110 §15.2); undici closes the connection on a `100 Continue`. undici takes the bytes by `read()`, so this replaces
 * that method of the socket. Returns a function to call before each request: what looks like a 1xx is dropped only
 * where a response begins.
 */
export function dropInterim(socket: Socket): () => void {
  const read = socket.read.bind(socket)
  let at_start = false
  let held: Buffer | null = null
  socket.read = (size?: number): Buffer | null => {
    if (!at_start) return read(size)
    for (;;) {
      const chunk: Buffer | null = read()
      if (chunk === null) return null
      const arrived: Buffer = held === null ? chunk : Buffer.concat([held, chunk])
      const begin = responseStart(arrived)
      held = begin === null ? arrived : null
      if (begin === null || begin === arrived.length) continue
      at_start = false
      return arrived.subarray(begin)
    }
  }
  return () => {
    at_start = true
  }
}

/** Returns where the final response begins; null when more bytes are needed to tell. */
function responseStart(bytes: Buffer): number | null {
  for (let at = 0; ; ) {
    const status = bytes.toString('latin1', at, at + STATUS_BYTES)
    if (status === '' || SWITCHES.test(status)) return at
    if (!INTERIM.some(start => start.startsWith(status.slice(0, start.length)))) return at
    const end = bytes.indexOf(HEAD_END, at)
    if (end < 0) return bytes.length - at > MAX_HEAD_BYTES ? at : null
    at = end + HEAD_END.length
  }
}

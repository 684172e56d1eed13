import type { Socket } from 'node:net'

/**
 * Reads the first bytes of a connection and puts them back. `read` gets all bytes so far. It returns its result, or
 * undefined when it needs more. `found` is called once with the result. The caller must bound the time this takes.
 */
export function peek<T>(socket: Socket, read: (bytes: Buffer) => T | undefined, found: (result: T) => void): void {
  let got: Buffer = Buffer.alloc(0)
  const look = (): void => {
    for (let chunk = socket.read() as Buffer | null; chunk; chunk = socket.read() as Buffer | null) {
      got = Buffer.concat([got, chunk])
    }
    const result = read(got)
    if (result === undefined) return
    socket.off('readable', look)
    socket.unshift(got)
    found(result)
  }
  socket.on('error', () => undefined)
  socket.on('readable', look)
}

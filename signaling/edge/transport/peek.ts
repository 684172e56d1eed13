import type { Socket } from 'node:net'

/**
 * Looks at the first bytes of a connection, and puts them back. `read` gets all that is there so far, and says what it
 * found or undefined when it needs more; `found` is called once. Whoever accepted the connection bounds its time.
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

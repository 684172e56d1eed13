import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import type { Test } from 'tap'

/** An address that nothing of ours may reach: it listens on UDP and TCP, and remembers whatever comes. */
interface Trap {
  readonly address: string
  readonly port: number
  /** First line of each datagram and connection. */
  readonly caught: readonly string[]
}

export async function openTrap(t: Test, address: string): Promise<Trap> {
  const caught: string[] = []
  const keep = (bytes: Buffer): void => {
    caught.push(bytes.toString('latin1').split('\r\n')[0] ?? '')
  }
  const server = createServer(socket => {
    caught.push('a connection')
    socket.on('data', keep).on('error', () => socket.destroy())
    t.teardown(() => socket.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, address, resolve))
  t.teardown(() => new Promise(resolve => server.close(resolve)))
  const bound = server.address()
  const port = typeof bound === 'object' && bound ? bound.port : 0
  const socket = createSocket('udp4').on('message', keep)
  await new Promise<void>(resolve => socket.bind(port, address, resolve))
  t.teardown(() => socket.close())
  return { address, port, caught }
}

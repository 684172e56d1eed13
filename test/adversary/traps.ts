import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import type { Test } from '../support/harness/index.ts'
import { freePort } from '../support/ports.ts'

/** An address that the platform must not contact. It listens on UDP and TCP and records what arrives. */
interface Trap {
  readonly address: string
  readonly port: number
  /** The first line of each datagram and each read, and `a connection` for each TCP connection. */
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
  // A port that the system chooses for TCP may be in use for UDP, on all addresses.
  const port = await freePort()
  await new Promise<void>(resolve => server.listen(port, address, resolve))
  t.teardown(() => new Promise(resolve => server.close(resolve)))
  const socket = createSocket('udp4').on('message', keep)
  await new Promise<void>(resolve => socket.bind(port, address, resolve))
  t.teardown(() => socket.close())
  return { address, port, caught }
}

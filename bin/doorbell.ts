import type { ChildProcess } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import type { Datagram, Word } from '../core/runtime/lifecycle.ts'

/** Where a process that sleeps gets its datagrams. */
export interface UdpPlace {
  readonly host: string
  readonly port: number
}

/** The most datagrams that wait for the process. SIP sends lost requests again (RFC 3261 §17.1.1.2). */
const MOST_WAITING = 64

/**
 * Holds the UDP port of a process that sleeps, calls `rung` at the first datagram, and gives the process the socket and
 * the datagrams once it runs. The port never closes between, because the edge would take a closed port for a peer that
 * is gone. What strangers sent is not read here, only passed on.
 */
export class Doorbell {
  readonly #socket: Socket
  readonly #waiting: Datagram[] = []

  private constructor(socket: Socket, rung: () => void) {
    this.#socket = socket
    socket.on('message', (bytes, { address, family, port }) => {
      if (this.#waiting.length >= MOST_WAITING) return
      this.#waiting.push({ bytes: bytes.toString('base64'), address, family, port })
      if (this.#waiting.length === 1) rung()
    })
  }

  /** @throws when the port is in use */
  static async open({ host, port }: UdpPlace, rung: () => void): Promise<Doorbell> {
    const ipv6 = host.includes(':')
    const socket = createSocket({ type: ipv6 ? 'udp6' : 'udp4', ipv6Only: ipv6 })
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind(port, host, resolve)
    })
    return new Doorbell(socket, rung)
  }

  /** Lends the socket to the process. Both read it until `leaveTo`. */
  lendTo(child: ChildProcess): void {
    if (child.connected) child.send({ door: true } satisfies Word, this.#socket)
  }

  /** Leaves the socket to the process, with the datagrams that waited. */
  leaveTo(child: ChildProcess): void {
    this.close()
    if (child.connected) child.send({ datagrams: this.#waiting } satisfies Word)
  }

  close(): void {
    this.#socket.close()
  }
}

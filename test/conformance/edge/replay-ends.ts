import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, Server as TlsServer } from 'node:tls'
import { FrameReader, frame } from '../../../signaling/edge/control/framing.ts'
import { StreamFramer } from '../../../signaling/edge/sip/stream.ts'
import { isMediaOfOthers } from '../../support/ports.ts'

// The two sides of the edge in a replay: SIP peers, and clients of the control link.

/** A SIP peer on one port number, UDP and TCP. */
export class Peer {
  readonly port: number
  readonly #udp: DatagramSocket
  readonly #tcp: Server
  readonly #streams = new Set<Socket>()
  readonly #arrived: (text: string) => void

  private constructor(udp: DatagramSocket, tcp: Server, port: number, arrived: (text: string) => void) {
    this.#udp = udp
    this.#tcp = tcp
    this.port = port
    this.#arrived = arrived
    udp.on('message', data => {
      const text = data.toString('latin1')
      if (text.trim() !== '' && !isMediaOfOthers(data)) arrived(text)
    })
    tcp.on(tcp instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => this.#stream(socket))
  }

  static async open(tls: { key: string; cert: string } | undefined, arrived: (text: string) => void): Promise<Peer> {
    for (;;) {
      const udp = createSocket('udp4')
      udp.bind(0, '127.0.0.1')
      await once(udp, 'listening')
      const tcp = tls ? createTlsServer(tls) : createServer()
      const free = await new Promise<boolean>(resolve => {
        tcp.once('error', () => resolve(false))
        tcp.listen(udp.address().port, '127.0.0.1', () => resolve(true))
      })
      if (free && udp.address().port > 9_999) return new Peer(udp, tcp, udp.address().port, arrived)
      udp.close()
      if (free) tcp.close()
    }
  }

  /** Sends a message. Returns the local port of the connection when it goes over TCP. */
  async send(text: string, stream: boolean, response: boolean, edge_port: number): Promise<number | undefined> {
    if (!stream) {
      this.#udp.send(Buffer.from(text, 'latin1'), edge_port, '127.0.0.1')
      return undefined
    }
    let socket = [...this.#streams].find(s => !s.destroyed && s.writable)
    if (!socket && response) return undefined
    if (!socket) {
      socket = connect(edge_port, '127.0.0.1')
      this.#stream(socket)
      await once(socket, 'connect')
    }
    socket.write(text, 'latin1')
    return socket.localPort
  }

  closeStreams(): void {
    for (const socket of this.#streams) socket.destroy()
    this.#streams.clear()
  }

  close(): void {
    this.closeStreams()
    this.#udp.close()
    this.#tcp.close()
  }

  #stream(socket: Socket): void {
    this.#streams.add(socket)
    const framer = new StreamFramer(1_000_000)
    socket.on('data', data => {
      for (const item of framer.push(data.toString('latin1'))) if (item.kind === 'message') this.#arrived(item.text)
    })
    socket.on('error', () => undefined)
    socket.on('close', () => this.#streams.delete(socket))
  }
}

/** A client's end of a control connection. */
export class Control {
  readonly #socket: Socket
  #closed = false

  constructor(socket: Socket, arrived: (payload: string) => void) {
    this.#socket = socket
    const reader = new FrameReader(100_000_000)
    socket.on('data', data => {
      for (const payload of reader.push(data.toString('latin1'))) if (payload !== undefined) arrived(payload)
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#closed = true
    })
  }

  static async open(port: number, arrived: (payload: string) => void): Promise<Control> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new Control(socket, arrived)
  }

  send(payload: string, raw: boolean): void {
    this.#socket.write(raw ? payload : frame(payload), 'latin1')
  }

  async closedWithin(ms: number): Promise<boolean> {
    if (this.#closed) return true
    await Promise.race([once(this.#socket, 'close'), new Promise(resolve => setTimeout(resolve, ms))])
    return this.#closed
  }

  close(): void {
    this.#socket.destroy()
  }
}

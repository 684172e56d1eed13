import { connect, createServer, type Server, type Socket } from 'node:net'

/** A TCP way to a port, with the faults of networks. It is whole at first. */
export interface Wire {
  readonly host: string
  readonly port: number
  /** Refuses connections, and breaks those that are open. */
  refuse(): Promise<void>
  /** Lets nothing through in either direction, and closes nothing. What was sent arrives when it is mended. */
  blackhole(): void
  /** Loses the open connections: their clients hear nothing, not even an end. New connections are whole. */
  halfOpen(): void
  /** Lets each byte through after a while. */
  delay(ms: number): void
  /** Makes it whole again. */
  mend(): Promise<void>
  /** Connections of clients that are open. */
  readonly open: number
  close(): Promise<void>
}

interface Ends {
  readonly near: Socket
  readonly far: Socket
}

class Relay implements Wire {
  readonly host: string
  readonly port: number
  readonly #to: { readonly host: string; readonly port: number }
  readonly #ends = new Set<Ends>()
  #server: Server | null = null
  #held = false
  #delay_ms = 0

  constructor(
    at: { readonly host: string; readonly port: number },
    to: { readonly host: string; readonly port: number },
  ) {
    this.host = at.host
    this.port = at.port
    this.#to = to
  }

  get open(): number {
    return this.#ends.size
  }

  async refuse(): Promise<void> {
    const server = this.#server
    this.#server = null
    for (const { near, far } of this.#ends) for (const end of [near, far]) end.resetAndDestroy()
    if (server) await new Promise(resolve => server.close(resolve))
  }

  blackhole(): void {
    this.#held = true
    for (const { near, far } of this.#ends) for (const end of [near, far]) end.pause()
  }

  halfOpen(): void {
    for (const { near, far } of this.#ends) {
      near.pause().removeAllListeners('data')
      far.removeAllListeners('close').destroy()
    }
  }

  delay(ms: number): void {
    this.#delay_ms = ms
  }

  async mend(): Promise<void> {
    this.#delay_ms = 0
    this.#held = false
    for (const { near, far } of this.#ends) for (const end of [near, far]) end.resume()
    if (!this.#server) await this.listen()
  }

  async close(): Promise<void> {
    await this.refuse()
  }

  listen(): Promise<void> {
    // An end that its peer has closed may still have something to send.
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, near => this.#relay(near))
    this.#server = server
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.port, this.host, resolve)
    })
  }

  #relay(near: Socket): void {
    const far = connect({ ...this.#to, allowHalfOpen: true })
    const ends = { near, far }
    this.#ends.add(ends)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true)
      from.on('data', bytes => this.#later(() => to.write(bytes)))
      from.on('end', () => this.#later(() => to.end()))
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
      if (this.#held) from.pause()
      else from.resume()
    }
    near.on('close', () => this.#ends.delete(ends))
  }

  #later(pass: () => void): void {
    if (this.#delay_ms === 0) pass()
    else setTimeout(pass, this.#delay_ms)
  }
}

/** Opens a way to `to` at a port of this machine. */
export async function openWire(
  at: { readonly host: string; readonly port: number },
  to: { readonly host: string; readonly port: number },
): Promise<Wire> {
  const relay = new Relay(at, to)
  await relay.listen()
  return relay
}

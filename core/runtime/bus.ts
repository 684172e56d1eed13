import { EventEmitter } from 'node:events'
import { rmSync } from 'node:fs'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Clock, systemClock } from './clock.ts'
import type { Log } from './log.ts'

/**
 * What a wake-up may be about. Losing one costs latency, never state: every listener also looks by itself now and
 * then.
 */
export type Topic = 'configuration' | 'calls' | 'commands' | 'outbox' | 'jobs' | 'nodes'

export interface Bus {
  /**
   * Tells every process, this one included, that rows of `topic` changed; `key` names what (an id), for listeners
   * that can use it.
   */
  ring(topic: Topic, key: string): void
  on(topic: Topic, listener: (key: string) => void): () => void
  /** Resolves when what was said has left. */
  close(): Promise<void>
}

const MAX_LINE_BYTES = 1024
const busPath = (run_dir: string): string => join(run_dir, 'bus.sock')

/** The hub, held by the supervisor: what one process says, all the others hear. */
export function createBusHub(run_dir: string, log: Log): Promise<{ close(): void }> {
  const members = new Set<Socket>()
  const server: Server = createServer(socket => {
    members.add(socket)
    socket.on('close', () => members.delete(socket))
    socket.on('error', error => log.debug({ err: error }, 'bus member went away'))
    onLines(socket, line => {
      if (line.length > MAX_LINE_BYTES) return
      for (const other of members) if (other !== socket && other.writable) other.write(`${line}\n`)
    })
  })
  rmSync(busPath(run_dir), { force: true })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(busPath(run_dir), () =>
      resolve({
        close() {
          server.close()
          for (const member of members) member.destroy()
        },
      }),
    )
  })
}

/** This process's end of the bus. Works alone too (the CLI with no platform running): then only this process hears. */
export function connectBus(run_dir: string, clock: Clock = systemClock): Bus {
  const heard = new EventEmitter().setMaxListeners(0)
  let socket: Socket | null = null
  let closed = false

  const connect = (): void => {
    if (closed) return
    const attempt = createConnection(busPath(run_dir))
    attempt.unref()
    // What is said before the hub has answered waits in the socket.
    socket = attempt
    // No hub (yet): the next attempt finds it. Sleepers poll meanwhile.
    attempt.on('error', () => undefined)
    attempt.on('close', () => {
      socket = null
      clock.after(500, connect)
    })
    onLines(attempt, line => {
      const [topic, key] = splitOnce(line)
      heard.emit(topic, key)
    })
  }
  connect()

  return {
    ring(topic, key) {
      if (/[\r\n]/.test(key)) throw new Error('a bus key is one line')
      if (socket?.writable) socket.write(`${topic} ${key}\n`)
      setImmediate(() => heard.emit(topic, key))
    },
    on(topic, listener) {
      heard.on(topic, listener)
      return () => heard.off(topic, listener)
    },
    close() {
      closed = true
      heard.removeAllListeners()
      const last = socket
      if (!last) return Promise.resolve()
      return new Promise(resolve => {
        last.once('close', resolve)
        last.ref().end(() => {
          last.unref()
          resolve()
        })
      })
    },
  }
}

/** readline repeats the errors of its input as its own; the socket's own listener has them already. */
const onLines = (socket: Socket, listener: (line: string) => void): void => {
  createInterface({ input: socket })
    .on('line', listener)
    .on('error', () => undefined)
}

const splitOnce = (line: string): [string, string] => {
  const at = line.indexOf(' ')
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)]
}

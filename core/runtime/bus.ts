import { EventEmitter } from 'node:events'
import { rmSync } from 'node:fs'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { type Clock, systemClock } from './clock.ts'
import type { Log } from './log.ts'

/**
 * Topics of wake-ups. Losing a wake-up costs latency, never state: every listener also polls the rows at long
 * intervals.
 */
const TOPICS = [
  'configuration',
  'calls',
  'commands',
  'outbox',
  'jobs',
  'exports',
  'nodes',
  'registrations',
  'certificates',
] as const
export type Topic = (typeof TOPICS)[number]

/** Topics whose rows one machine writes and reads: a machine sends its own callbacks, and writes its own exports. */
const OF_ONE_MACHINE: ReadonlySet<Topic> = new Set(['outbox', 'exports'])

export interface Bus {
  /**
   * Wakes the listeners of `topic` in every process, this one included: its rows changed. The first ring leaves at
   * once; rings that follow within `GAP_MS` leave together as one. Listeners cannot tell one ring from many.
   */
  ring(topic: Topic): void
  on(topic: Topic, listener: () => void): () => void
  /** Resolves when the last ring has left. */
  close(): Promise<void>
}

/**
 * Each ring costs a write in this process and a read in every other one. At 100 calls a second each call rings several
 * times, and a listener looks at all due rows at once.
 */
const GAP_MS = 25
const MAX_LINE_BYTES = 64
const busPath = (run_dir: string): string => join(run_dir, 'bus.sock')

/** Carries rings between the hubs of machines. It may lose some. */
export interface BusBridge {
  /** Sends a ring to the hubs of the other machines. */
  ring(topic: Topic): void
  /** Sets the only listener to their rings. It also hears what it may have missed while the bridge was down. */
  onRing(listener: (topic: Topic) => void): void
  close(): Promise<void>
}

export const topicNamed = (name: string): Topic | undefined => TOPICS.find(known => known === name)

/** The topics that a bridge carries. */
export const SHARED_TOPICS: readonly Topic[] = TOPICS.filter(topic => !OF_ONE_MACHINE.has(topic))

/**
 * Creates the hub, which runs in the supervisor and forwards each ring to all the other processes, and with a bridge to
 * those of other machines. A ring that came over the bridge does not go back.
 */
export function createBusHub(run_dir: string, log: Log, bridge: BusBridge | null = null): Promise<{ close(): void }> {
  const members = new Set<Socket>()
  const tell = (line: string, but: Socket | null): void => {
    for (const member of members) if (member !== but && member.writable) member.write(`${line}\n`)
  }
  const server: Server = createServer(socket => {
    members.add(socket)
    socket.on('close', () => members.delete(socket))
    socket.on('error', error => log.debug({ err: error }, 'bus member went away'))
    onLines(socket, line => {
      if (line.length > MAX_LINE_BYTES) return
      tell(line, socket)
      const topic = topicNamed(line)
      if (topic && !OF_ONE_MACHINE.has(topic)) bridge?.ring(topic)
    })
  })
  bridge?.onRing(topic => tell(topic, null))
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

/** Reports whether a hub listens in a folder. The socket of a killed platform refuses. */
export function hasHub(run_dir: string): Promise<boolean> {
  const socket = createConnection(busPath(run_dir))
  return new Promise<boolean>(resolve => {
    socket.once('connect', () => resolve(true))
    // EAGAIN: as many wait for it as its queue holds.
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'EAGAIN'))
  }).finally(() => socket.destroy())
}

/** Connects to the hub. Without one (the CLI while no platform runs), rings reach only this process. */
export function connectBus(run_dir: string, clock: Clock = systemClock): Bus {
  const heard = new EventEmitter().setMaxListeners(0)
  let socket: Socket | null = null
  let closed = false

  const connect = (): void => {
    if (closed) return
    const attempt = createConnection(busPath(run_dir))
    attempt.unref()
    // The socket buffers rings until it has connected.
    socket = attempt
    // There may be no hub yet: 'close' schedules the next attempt, and sleepers poll meanwhile.
    attempt.on('error', () => undefined)
    attempt.on('close', () => {
      socket = null
      clock.after(500, connect)
    })
    onLines(attempt, line => {
      const topic = topicNamed(line)
      if (topic) heard.emit(topic)
    })
  }
  connect()

  const send = (topic: Topic): void => {
    if (socket?.writable) socket.write(`${topic}\n`)
    setImmediate(() => heard.emit(topic))
  }
  /** Topics that rang within the last `GAP_MS`, with whether they rang again since. */
  const resting = new Map<Topic, boolean>()
  const rested = (topic: Topic): void => {
    const again = resting.get(topic)
    resting.delete(topic)
    if (again) ring(topic)
  }
  const ring = (topic: Topic): void => {
    if (resting.has(topic)) {
      resting.set(topic, true)
      return
    }
    resting.set(topic, false)
    clock.after(GAP_MS, () => rested(topic))
    send(topic)
  }

  return {
    ring,
    on(topic, listener) {
      heard.on(topic, listener)
      return () => heard.off(topic, listener)
    },
    close() {
      closed = true
      for (const [topic, again] of resting) if (again) send(topic)
      resting.clear()
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

/** Reads lines. Of one that is too long, it keeps enough to see that. */
function onLines(socket: Socket, listener: (line: string) => void): void {
  let begun = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    const lines = (begun + text).split('\n')
    begun = (lines.pop() ?? '').slice(0, MAX_LINE_BYTES + 1)
    for (const line of lines) listener(line)
  })
}

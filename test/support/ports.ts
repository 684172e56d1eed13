import { createSocket, type Socket } from 'node:dgram'
import { createServer } from 'node:net'
import { PORTS_REFUSED_BY_BROWSERS } from '../../core/domain/network/browser-ports.ts'
import { until } from './wait.ts'

/** Other files, also those of another run, hold their ports while they run. A free row may take them as long. */
const OTHERS_END_MS = 600_000
/** A look tries hundreds of ports. */
const LOOK_MS = 1000

/**
 * Reports whether a datagram is RTP or RTCP (RFC 7983), which a call of another test may still send to an earlier owner
 * of a port.
 */
export const isMediaOfOthers = (datagram: Buffer): boolean => (datagram[0] ?? 0) >= 0x80

const udp = (port: number): Promise<number | undefined> =>
  new Promise(resolve => {
    const socket = createSocket('udp4')
    socket.once('error', () => socket.close(() => resolve(undefined)))
    socket.bind(port, '127.0.0.1', () => {
      const taken = socket.address().port
      socket.close(() => resolve(taken))
    })
  })

const tcp = (port: number): Promise<number | undefined> =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : undefined))
    })
  })

interface Slots {
  readonly first: number
  /** The number of ports in a slot. */
  readonly size: number
  readonly slots: number
  /** The loopback port that the holder of slot 0 keeps bound. The ports of the other slots follow. */
  readonly guards: number
}

// All are outside the ephemeral ports. An ephemeral port may go to another socket before its holder binds it.
const SINGLE: Slots = { first: 2000, size: 40, slots: 200, guards: 1200 }
const BLOCKS: Slots = { first: 10_000, size: 256, slots: 86, guards: 1024 }
/** For blocks of one slot: scattered in `BLOCKS` they leave too few long rows for the platforms that run at once. */
const SMALL_BLOCKS: Slots = { first: 61_184, size: 256, slots: 16, guards: 1110 }

/**
 * The destination of media that no socket should receive. It is below the ports that this file and the system assign,
 * where media could reach another test's socket.
 */
export const UNHEARD_PORT = 1500

/** Holds a slot until the process ends, so that no other test in this or another process gets it. */
const claim = (of: Slots, slot: number): Promise<Socket | undefined> =>
  new Promise(resolve => {
    const guard = createSocket('udp4').unref()
    // A socket that cannot be bound stays open, and a wait for a row tries thousands.
    guard.once('error', () => guard.close(() => resolve(undefined)))
    guard.bind({ port: of.guards + slot, address: '127.0.0.1', exclusive: true }, () => resolve(guard))
  })

/** Returns the slots where a row may begin, in the order in which to try them. */
function starts(of: Slots, wanted: number): number[] {
  const all = Array.from({ length: of.slots - wanted + 1 }, (_value, slot) => slot)
  // Single slots begin in the lower half, long rows at the top: scattered single slots would leave no room for rows.
  if (wanted > 1) return all.reverse()
  const half = of.slots >> 1
  const first = Math.floor(Math.random() * half)
  return [...all.slice(first, half), ...all.slice(0, first), ...all.slice(half)]
}

/** Claims consecutive slots and returns their first port. When none are free, waits until other processes end. */
async function claimRow(areas: readonly Slots[], wanted: number): Promise<number> {
  const look = async (): Promise<number | undefined> => {
    for (const of of areas)
      for (const slot of starts(of, wanted)) {
        const guards: Socket[] = []
        while (guards.length < wanted) {
          const guard = await claim(of, slot + guards.length)
          if (guard === undefined) break
          guards.push(guard)
        }
        if (guards.length === wanted) return of.first + slot * of.size
        for (const guard of guards) guard.close()
      }
    return undefined
  }
  return until(`${wanted} slots of ports in a row`, look, OTHERS_END_MS, LOOK_MS)
}

let next = 0
let end = 0

let asked: Promise<unknown> = Promise.resolve()

/** Returns a port that is free for UDP and TCP on loopback and reserved for this test. */
export const freePort = (): Promise<number> => freeRow(1)

/** Returns the first of `count` consecutive ports like that, at most as many as a slot has. */
export function freeRow(count: number): Promise<number> {
  const first = asked.then(() => nextRow(count))
  asked = first.catch(() => undefined)
  return first
}

async function nextRow(count: number): Promise<number> {
  for (;;) {
    if (next + count > end) {
      next = await claimRow([SINGLE], 1)
      end = next + SINGLE.size
    }
    const first = next
    next += count
    const row = Array.from({ length: count }, (_value, offset) => first + offset)
    if ((await Promise.all(row.map(isFree))).every(Boolean)) return first
  }
}

const isFree = async (port: number): Promise<boolean> =>
  !PORTS_REFUSED_BY_BROWSERS.has(port) && (await tcp(port)) === port && (await udp(port)) === port

/** Returns a block of `count` UDP ports, the first one even, reserved for this test. */
export async function freeBlock(count: number): Promise<{ first: number; last: number }> {
  for (let tries = 0; tries < 50; tries++) {
    const slots = Math.ceil(count / BLOCKS.size)
    const first = await claimRow(slots === 1 ? [SMALL_BLOCKS, BLOCKS] : [BLOCKS], slots)
    const looked = await Promise.all([0, 1, count >> 1, count - 1].map(offset => udp(first + offset)))
    if (looked.every(port => port !== undefined)) return { first, last: first + count - 1 }
  }
  throw new Error('no free block of ports')
}

/** Settings of a machine that hears the others at a port for edges and the next one for files. */
export async function linkedAt(host: string): Promise<{ STROWGER_HOST: string; STROWGER_LINK: string }> {
  let [port, next] = [await freePort(), await freePort()]
  while (next !== port + 1) [port, next] = [next, await freePort()]
  return { STROWGER_HOST: host, STROWGER_LINK: `${host}:${port}` }
}

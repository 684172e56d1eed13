import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

const udp = (port: number): Promise<number | undefined> =>
  new Promise(resolve => {
    const socket = createSocket('udp4')
    socket.once('error', () => resolve(undefined))
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

/**
 * A port that is free for UDP and TCP on loopback now. Below the machine's ephemeral ports, as the blocks are: there
 * another socket may get it by chance before who asked has bound it.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 50; tries++) {
    const port = 2000 + Math.floor(Math.random() * 8000)
    if ((await tcp(port)) === port && (await udp(port)) === port) return port
  }
  throw new Error('no free port')
}

/**
 * A block of `count` UDP ports, the first one even, below the machine's ephemeral ports so that nobody else gets one
 * by chance.
 */
export async function freeBlock(count: number): Promise<{ first: number; last: number }> {
  for (let tries = 0; tries < 50; tries++) {
    const first = 10_000 + 2 * Math.floor(Math.random() * ((32_000 - 10_000 - count) / 2))
    const looked = await Promise.all([0, 1, count >> 1, count - 1].map(offset => udp(first + offset)))
    if (looked.every(port => port !== undefined)) return { first, last: first + count - 1 }
  }
  throw new Error('no free block of ports')
}

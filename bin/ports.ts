import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import type { Config } from '../core/runtime/config.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'

/** Reports whether a TCP server could listen on the port now. */
export const tcpPortFree = (host: string, port: number): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host, ipv6Only: true }, () => server.close(() => resolve(true)))
  })

/** Reports whether a UDP socket could be bound to the port now. */
export const udpPortFree = (host: string, port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = createSocket({ type: host.includes(':') ? 'udp6' : 'udp4', ipv6Only: host.includes(':') })
    socket.once('error', () => resolve(false))
    socket.bind(port, host, () => socket.close(() => resolve(true)))
  })

/**
 * A range above the ephemeral ports of Linux (32768-60999): no other socket gets such a port by chance before the
 * process that it is meant for has bound it.
 */
const INTERNAL = { first: 61_000, last: 65_535 }

type Configured = Pick<Config, 'bind' | 'http_port' | 'sip_port' | 'sips_port' | 'ws_port' | 'rtp_ports'>

/**
 * Chooses the ports between our own processes, which are not configured: the edge's control link, the sandbox carrier.
 */
export async function internalPorts(config: Configured): Promise<{ control_link: number; sandbox: number }> {
  return {
    control_link: await internalPort(config, port => tcpPortFree('127.0.0.1', port)),
    sandbox: await internalPort(config, port => udpPortFree(config.bind, port)),
  }
}

/** Finds a free port. The search starts at a port by pid, so that concurrent supervisors find different ports. */
async function internalPort(config: Configured, isFree: (port: number) => Promise<boolean>): Promise<number> {
  const { http_port, sip_port, sips_port, ws_port, rtp_ports } = config
  const count = INTERNAL.last - INTERNAL.first + 1
  for (let tries = 0; tries < count; tries++) {
    const port = INTERNAL.first + ((process.pid + tries) % count)
    const configured =
      [http_port, sip_port, sips_port, ws_port].includes(port) || (port >= rtp_ports.first && port <= rtp_ports.last)
    if (!configured && (await isFree(port))) return port
  }
  throw new StartRefused(`no port from ${INTERNAL.first} to ${INTERNAL.last} is free for our own processes`)
}

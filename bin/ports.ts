import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { addressesOf, type Config, VARIABLES } from '../core/runtime/config.ts'
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

/** Returns why no socket can be bound to the address, as a code of the system; null when one can. */
const bindError = (address: string): Promise<string | null> =>
  new Promise(resolve => {
    const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4', ipv6Only: address.includes(':') })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? 'unknown'))
    socket.bind(0, address, () => socket.close(() => resolve(null)))
  })

/**
 * Refuses addresses that no interface of this machine has. Behind the NAT of a cloud the public address is one of
 * these: peers see it, and sockets are bound to a private one.
 * @throws StartRefused
 */
export async function refuseForeignAddresses(config: Parameters<typeof addressesOf>[0]): Promise<void> {
  for (const { host, bind } of addressesOf(config)) {
    if ((await bindError(bind)) !== 'EADDRNOTAVAIL') continue
    const family = bind.includes(':') ? 'IPv6' : 'IPv4'
    const own = Object.values(networkInterfaces())
      .flatMap(found => found ?? [])
      .filter(found => found.family === family && !found.internal && !found.address.startsWith('fe80:'))
      .map(({ address }) => address)
    const has = own.length === 0 ? `it has no ${family} address of a network` : `it has ${own.join(', ')}`
    const [host_name, bind_name] = [VARIABLES.host.name, VARIABLES.bind.name]
    throw new StartRefused(
      bind === host
        ? `${host_name}=${host} is not an address of this machine (${has}): when NAT leads it here, set ${bind_name} ` +
            'to the address that this machine has'
        : `${bind_name}=${bind} is not an address of this machine (${has})`,
    )
  }
}

/**
 * A range above the ephemeral ports of Linux (32768-60999): no other socket gets such a port by chance before the
 * process that it is meant for has bound it.
 */
const INTERNAL = { first: 61_000, last: 65_535 }

type Configured = Pick<Config, 'bind' | 'http_port' | 'https_port' | 'sip_port' | 'sips_port' | 'ws_port' | 'rtp_ports'>

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
  const { http_port, https_port, sip_port, sips_port, ws_port, rtp_ports } = config
  const count = INTERNAL.last - INTERNAL.first + 1
  for (let tries = 0; tries < count; tries++) {
    const port = INTERNAL.first + ((process.pid + tries) % count)
    const configured =
      [http_port, https_port, sip_port, sips_port, ws_port].includes(port) ||
      (port >= rtp_ports.first && port <= rtp_ports.last)
    if (!configured && (await isFree(port))) return port
  }
  throw new StartRefused(`no port from ${INTERNAL.first} to ${INTERNAL.last} is free for our own processes`)
}

import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import ipaddr from 'ipaddr.js'
import { hostGroup } from '../../core/domain/identity/address.ts'
import { addressMatcher } from '../../core/domain/network/address-guard.ts'
import { clientOf as determine, type RequestClient } from '../../core/domain/network/forwarded.ts'

/** The client of a request, stored on the request. */
const CLIENT = Symbol('client')
type Met = IncomingMessage & { [CLIENT]?: RequestClient }

/** Returns what the HTTP server calls first for each request: it determines the client, which all others ask for. */
export function meeting(trusted_proxies: readonly string[]): (request: IncomingMessage) => void {
  const trusts = addressMatcher(trusted_proxies)
  return (request: Met) => {
    const { socket, headers } = request
    const encrypted = (socket as Partial<TLSSocket>).encrypted === true
    request[CLIENT] = determine({ peer: socket.remoteAddress ?? '', encrypted, headers }, trusts)
  }
}

/** Returns the client of a request that the HTTP server has met. */
export function requestClient(request: IncomingMessage): RequestClient {
  const { [CLIENT]: client } = request as Met
  if (!client) throw new Error('a request whose client was not determined')
  return client
}

/** Returns the key by which limits count the client of a request. */
export const addressGroup = (request: IncomingMessage): string => hostGroup(requestClient(request).address)

/** Reports whether a request comes from this machine and was not forwarded by a proxy on it. */
export function isLocal(request: IncomingMessage): boolean {
  const { address, forwarded } = requestClient(request)
  return !forwarded && isLoopback(address)
}

/**
 * Reports whether a request comes from one of these networks. A forwarded one does when a trusted proxy names its
 * client, but never as this machine: what any proxy here passes on would be local otherwise.
 */
export function comesFrom(request: IncomingMessage, matches: (address: string) => boolean): boolean {
  const { address, forwarded, proved } = requestClient(request)
  return proved && matches(address) && !(forwarded && isLoopback(address))
}

const isLoopback = (text: string): boolean => ipaddr.isValid(text) && ipaddr.process(text).range() === 'loopback'

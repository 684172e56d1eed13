import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'

/** Who asks, as far as limits go: an IPv4 address, or the /64 of an IPv6 one, all of which one machine may use. */
export function addressGroup({ socket }: IncomingMessage): string {
  const text = socket.remoteAddress ?? ''
  if (!ipaddr.isValid(text)) return text
  const address = ipaddr.process(text)
  return address.kind() === 'ipv4'
    ? address.toString()
    : `${ipaddr.IPv6.networkAddressFromCIDR(`${address.toString()}/64`).toString()}/64`
}

/** Whether a request comes from this machine itself, and not from a proxy on it that passes on another's. */
export function isLocal(request: IncomingMessage): boolean {
  const text = request.socket.remoteAddress ?? ''
  const forwarded = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some(name => name in request.headers)
  return !forwarded && ipaddr.isValid(text) && ipaddr.process(text).range() === 'loopback'
}

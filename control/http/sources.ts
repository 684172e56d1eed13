import type { Socket } from 'node:net'
import { hostGroup } from '../../core/domain/identity/address.ts'
import { addressMatcher } from '../../core/domain/network/address-guard.ts'

/**
 * Returns what counts the sockets of each address (IPv6: of each /64) and says whether one more may stay. A trusted
 * proxy brings the sockets of many clients, so that it has no limit of its own.
 */
export function socketsOfSources(most: number, trusted_proxies: readonly string[]): (socket: Socket) => boolean {
  const trusts = addressMatcher(trusted_proxies)
  const held = new Map<string, number>()
  return socket => {
    const address = socket.remoteAddress ?? ''
    if (trusts(address)) return true
    const source = hostGroup(address)
    const others = held.get(source) ?? 0
    if (others >= most) return false
    held.set(source, others + 1)
    socket.once('close', () => {
      const left = (held.get(source) ?? 1) - 1
      if (left > 0) held.set(source, left)
      else held.delete(source)
    })
    return true
  }
}

import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import { hostGroup } from '../../core/domain/identity/index.ts'

/** Returns the key by which limits count the client of a request. */
export const addressGroup = ({ socket }: IncomingMessage): string => hostGroup(socket.remoteAddress ?? '')

/** Reports whether a request comes from this machine and was not forwarded by a proxy on it. */
export function isLocal(request: IncomingMessage): boolean {
  const text = request.socket.remoteAddress ?? ''
  const forwarded = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some(name => name in request.headers)
  return !forwarded && ipaddr.isValid(text) && ipaddr.process(text).range() === 'loopback'
}

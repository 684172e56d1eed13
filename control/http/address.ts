import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import { hostGroup } from '../../core/domain/identity/index.ts'

/** Who asks, as far as limits go. */
export const addressGroup = ({ socket }: IncomingMessage): string => hostGroup(socket.remoteAddress ?? '')

/** Whether a request comes from this machine itself, and not from a proxy on it that passes on another's. */
export function isLocal(request: IncomingMessage): boolean {
  const text = request.socket.remoteAddress ?? ''
  const forwarded = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some(name => name in request.headers)
  return !forwarded && ipaddr.isValid(text) && ipaddr.process(text).range() === 'loopback'
}

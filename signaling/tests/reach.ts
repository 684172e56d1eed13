import { lookup, resolveSrv } from 'node:dns/promises'
import { checkServerIdentity, connect, type PeerCertificate } from 'node:tls'
import { parseAddress } from '../../core/domain/identity/index.ts'
import { type CertificateFacts, judgeDns, judgeTls, type Verdict } from '../../core/domain/trunk-tests/index.ts'
import type { Context } from '../b2bua/context.ts'
import { hostOf } from '../drachtio/uri.ts'
import type { Target } from '../trunks/snapshot.ts'

/** Whether a target can be reached at all: its name, and its certificate. */

const DNS_LIMIT_MS = 5000
const TLS_LIMIT_MS = 5000

/** What keeps calls from reaching the first target that has such a fault; null when it is not that. */
export async function faultOfReach(ctx: Context, targets: readonly Target[]): Promise<Verdict | null> {
  for (const target of targets) {
    const host = hostOf(target.uri)
    const name = judgeDns(host, await resolve(target))
    if (name.state === 'failed') return name
    if (!isTls(target)) continue
    const tls = judgeTls(host, await certificate(target), ctx.clock.now())
    if (tls.state === 'failed') return tls
  }
  return null
}

export const isTls = (target: Target): boolean => target.transport === 'tls' || /^sips:/i.test(target.uri)

const portOf = (target: Target): number | null => {
  const text = /^sips?:(?:[^@]*@)?(?:\[[^\]]*\]|[^:;?>\s]+):(\d{1,5})/i.exec(target.uri)?.[1]
  return text === undefined ? null : Number(text)
}

/** SRV where the URI has no port, then addresses (RFC 3263 §4.2). */
export async function resolve(target: Target): Promise<{ addresses: readonly string[] } | { error: string }> {
  const host = hostOf(target.uri)
  if (parseAddress(host)) return { addresses: [host] }
  try {
    return await within(DNS_LIMIT_MS, async () => {
      const service = { udp: '_sip._udp', tcp: '_sip._tcp', tls: '_sips._tcp' }[target.transport]
      const records = portOf(target) === null ? await resolveSrv(`${service}.${host}`).catch(() => []) : []
      const names = records.length > 0 ? records.slice(0, 5).map(record => record.name) : [host]
      const found = await Promise.all(names.map(name => lookup(name, { all: true })))
      return { addresses: found.flat().map(one => one.address) }
    })
  } catch (error) {
    return { error: codeOf(error) }
  }
}

export const codeOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}

/** The certificate is looked at here, so that a bad one is told instead of refused. */
export function certificate(target: Target): Promise<CertificateFacts | { error: string }> {
  const host = hostOf(target.uri)
  const port = portOf(target) ?? 5061
  return new Promise(done => {
    const socket = connect({
      host,
      port,
      rejectUnauthorized: false,
      ...(parseAddress(host) ? {} : { servername: host }),
    })
    const end = (outcome: CertificateFacts | { error: string }): void => {
      socket.destroy()
      done(outcome)
    }
    socket.setTimeout(TLS_LIMIT_MS, () => end({ error: 'no answer in time' }))
    socket.once('error', error => end({ error: codeOf(error) }))
    socket.once('secureConnect', () => {
      const peer = socket.getPeerCertificate()
      if (!peer?.valid_to) return end({ error: 'the peer showed no certificate' })
      end({
        subject: nameOf(peer.subject, peer),
        issuer: nameOf(peer.issuer, peer),
        valid_from_ms: Date.parse(peer.valid_from),
        valid_to_ms: Date.parse(peer.valid_to),
        matches_host: checkServerIdentity(host, peer) === undefined,
        untrusted: socket.authorized ? null : String(socket.authorizationError ?? 'unknown'),
      })
    })
  })
}

const nameOf = (name: PeerCertificate['subject'] | undefined, peer: PeerCertificate): string => {
  const text = name?.CN ?? name?.O ?? peer.fingerprint256 ?? 'unnamed'
  return (Array.isArray(text) ? text.join(', ') : text).slice(0, 120)
}

export class TooLate extends Error {
  override readonly name = 'TooLate'
}

/** @throws TooLate when `work` takes longer; what it does then is nobody's any more */
export function within<T>(limit_ms: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new TooLate('no answer in time')), limit_ms)
    work()
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}

import { checkServerIdentity, connect, type PeerCertificate } from 'node:tls'
import { parseAddress } from '../../core/domain/identity/index.ts'
import { type CertificateFacts, judgeDns, judgeTls, type Verdict } from '../../core/domain/trunk-tests/index.ts'
import { trustedPeers } from '../../core/runtime/certificate.ts'
import type { Context } from '../b2bua/context.ts'
import { hostOf } from '../drachtio/uri.ts'
import { targetUri } from '../trunks/health.ts'
import type { Target } from '../trunks/snapshot.ts'
import type { Way } from '../trunks/ways-out.ts'

/** Whether a target can be reached at all: its name, and its certificate. */

const TLS_LIMIT_MS = 5000

/** What keeps calls from reaching the first target that has such a fault; null when it is not that. */
export async function faultOfReach(ctx: Context, targets: readonly Target[]): Promise<Verdict | null> {
  for (const target of targets) {
    const host = hostOf(target.uri)
    const found = await resolve(ctx, target)
    const name = judgeDns(host, found)
    if (name.state === 'failed') return name
    if (!isTls(target) || !('way' in found)) continue
    const tls = judgeTls(host, await certificate(ctx, target, found.way), ctx.clock.now(), target.tls)
    if (tls.state === 'failed') return tls
  }
  return null
}

export const isTls = (target: Target): boolean => target.transport === 'tls' || /^sips:/i.test(target.uri)

/** The addresses of a target that may be reached. */
export async function resolve(
  ctx: Context,
  target: Target,
): Promise<
  | { readonly addresses: readonly string[]; readonly way: Way }
  | { readonly error: string }
  | { readonly refused: string }
> {
  const found = await ctx.ways.find({ uri: targetUri(target.uri, target.transport), tls: target.tls })
  if (found.kind === 'refused') return { refused: found.detail }
  if (found.kind === 'failed') return { error: found.detail }
  const [way] = found.ways
  return way ? { addresses: found.ways.map(({ host }) => host), way } : { error: 'it has no address' }
}

export const codeOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}

/** The certificate is looked at here, so that a bad one is told instead of refused. */
export function certificate(ctx: Context, target: Target, way: Way): Promise<CertificateFacts | { error: string }> {
  const host = hostOf(target.uri)
  return new Promise(done => {
    const socket = connect({
      host: way.host,
      port: way.port,
      rejectUnauthorized: false,
      ...trustedPeers(ctx.config.data_dir),
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
        fingerprint: (peer.fingerprint256 ?? '').replaceAll(':', '').toLowerCase(),
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

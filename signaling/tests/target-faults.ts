import { hostOf } from '../../core/domain/sip/address.ts'
import { transportOf } from '../../core/domain/sip/uri.ts'
import { judgeDns, judgeTls, type TestVerdict } from '../../core/domain/trunk-tests/index.ts'
import type { CallContext } from '../b2bua/context.ts'
import { targetUri } from '../trunks/health.ts'
import type { CheckedAddress } from '../trunks/peer-addresses.ts'
import { certificateAt } from '../trunks/peer-certificate.ts'
import type { Target } from '../trunks/snapshot.ts'

/** Checks whether a target can be reached: whether its name resolves and its certificate is valid. */

/** Returns the first name or certificate fault among the targets; null when there is none. */
export async function targetFault(ctx: CallContext, targets: readonly Target[]): Promise<TestVerdict | null> {
  for (const target of targets) {
    const host = hostOf(target.uri)
    const found = await resolve(ctx, target)
    const name = judgeDns(host, found)
    if (name.state === 'failed') return name
    if (!isTls(target) || !('first' in found)) continue
    const tls = judgeTls(host, await certificateAt(ctx.config.data_dir, host, found.first), ctx.clock.now(), target.tls)
    if (tls.state === 'failed') return tls
  }
  return null
}

export const isTls = (target: Target): boolean => target.transport === 'tls' || transportOf(target.uri) === 'tls'

/** Returns the addresses of a target, of a trunk or of a carrier, to which we may send. */
export async function resolve(
  ctx: CallContext,
  target: Target,
  carrier_id: string | null = null,
): Promise<
  | { readonly addresses: readonly string[]; readonly first: CheckedAddress }
  | { readonly error: string }
  | { readonly refused: string; readonly unverified: boolean }
> {
  const found = await ctx.peer_addresses.find({
    uri: targetUri(target.uri, target.transport),
    tls: target.tls,
    carrier_id,
  })
  if (found.kind === 'refused') return { refused: found.detail, unverified: found.unverified }
  if (found.kind === 'failed') return { error: found.detail }
  const [first] = found.addresses
  return first ? { addresses: found.addresses.map(({ host }) => host), first } : { error: 'it has no address' }
}

export class TooLate extends Error {
  override readonly name = 'TooLate'
}

/** Bounds `work` by a timeout. @throws TooLate when it takes longer; its later result is ignored */
export function within<T>(limit_ms: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new TooLate('no answer in time')), limit_ms)
    work()
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}

import {
  type Attestation,
  parseAddress,
  presentedCaller,
  type Verstat,
  verstatText,
} from '../../core/domain/identity/index.ts'
import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import { delivery, egress, type Hop, isPeer } from '../../core/domain/routing/index.ts'
import { dialled, hostOf, readUri } from '../../core/domain/sip/address.ts'
import { type Diverter, diversionHeaders } from '../../core/domain/sip/diversion.ts'
import { quotedName } from '../../core/domain/sip/names.ts'
import { parseUri } from '../../core/domain/sip/uri.ts'
import { unseal } from '../../core/runtime/secrets.ts'
import type { Credentials, Headers } from '../drachtio/types.ts'
import { targetUri } from '../trunks/health.ts'
import {
  type CarrierConfig,
  holdsNumber,
  type ProjectConfig,
  type SealedCredentials,
  type Target,
  type TrunkConfig,
} from '../trunks/snapshot.ts'
import type { HuntHop } from './hunt.ts'
import type { LegPolicy } from './media.ts'
import type { NodeServices } from './services.ts'

/** Turns the routes of a call into hops: the targets in order, each with its INVITE's headers and media policy. */

export interface Outgoing {
  readonly call_sid: string
  /** E.164 with the leading plus. */
  readonly called_e164: string
  readonly caller_e164: string
  /** Whether the caller requested privacy (RFC 3323). */
  readonly restricted: boolean
  readonly caller_name: string | null
  readonly max_forwards: number
  /** Who diverted the call, the last one first (RFC 5806). */
  readonly diverters: readonly Diverter[]
  /** X- headers from the call's origin, already filtered; sent only to the customer's own trunks. */
  readonly passed: Headers
  /** The attestation that we sign for carriers; we sign none when it is null or absent. */
  readonly attest?: Attestation | null
  /** The verification result of a carrier's signature; sent to customers. */
  readonly verstat?: Verstat | null
}

type Routable = Target & { readonly degraded: boolean; readonly carrier: CarrierConfig | null }

/** Hops of a call to the public network: the trunk's own targets, else carriers (design section 4, "Egress"). */
export function egressHops(
  ctx: NodeServices,
  options: { readonly project: ProjectConfig; readonly trunk: TrunkConfig | null; readonly outgoing: Outgoing },
): HuntHop[] {
  const { trunk, project, outgoing } = options
  const carriers = [...ctx.snapshot().carriers.values()].filter(
    carrier => carrier.enabled && carrier.sandbox === project.sandbox,
  )
  const hops = egress<Routable>(
    {
      targets: trunk ? routable(ctx, trunk.targets, null) : [],
      isOwnSource: target => trunk !== null && isOwn(ctx, trunk, target),
      carrier_routes: carriers.flatMap(carrier =>
        carrier.routes.map(route => ({
          ...route,
          carrier_id: carrier.id,
          targets: routable(ctx, carrier.targets, carrier),
        })),
      ),
      digits: outgoing.called_e164.slice(1),
    },
    ctx.shares.next(project.id),
  )
  // Carriers bill or trust the diverting number, so they get only diversions by numbers of the project itself.
  const own = outgoing.diverters.filter(({ number }) => holdsNumber(ctx.snapshot(), project.id, number))
  return hops.map(hop =>
    huntHop(ctx, hop, trunk, hop.carrier_id === null ? outgoing : { ...outgoing, diverters: own }, 'gateway'),
  )
}

/** Counts the trunk's own targets for a call to the public network. */
export const ownTargets = (ctx: NodeServices, trunk: TrunkConfig): number =>
  trunk.targets.filter(target => target.enabled && !isOwn(ctx, trunk, target)).length

/** Hops of a call to a number that routes to this trunk: its targets, then its users' registered contacts. */
export const deliveryHops = (ctx: NodeServices, trunk: TrunkConfig, outgoing: Outgoing): HuntHop[] => [
  ...delivery<Routable>(routable(ctx, trunk.targets, null), ctx.shares.next(trunk.id)).map(hop =>
    huntHop(ctx, hop, trunk, outgoing, 'customer'),
  ),
  ...ctx.registrar.contacts(trunk.id).map(({ uri, proxy, proven_host, transport }) => ({
    uri,
    ...(proxy === null ? {} : { proxy }),
    proven_host,
    target: uri,
    target_id: null,
    carrier_id: null,
    trunk_id: trunk.id,
    transport,
    headers: {
      ...invitationHeaders(ctx, outgoing, 'customer'),
      To: `<sip:${outgoing.called_e164}@${ctx.config.domain}>`,
    },
    policy: trunkPolicy(trunk, literal(hostOf(proxy ?? uri))),
    redirects: [],
  })),
]

const routable = (ctx: NodeServices, targets: readonly Target[], carrier: CarrierConfig | null): Routable[] =>
  targets.map(target => ({ ...target, carrier, degraded: ctx.health.degraded(target.id) }))

const isOwn = (ctx: NodeServices, trunk: TrunkConfig, target: Target): boolean =>
  isPeer(trunk.source_index, target.uri, ctx.health.address(target.id))

/** `of_trunk`: the role of the trunk's own targets in this call. */
function huntHop(
  ctx: NodeServices,
  hop: Hop<Routable>,
  trunk: TrunkConfig | null,
  outgoing: Outgoing,
  of_trunk: 'gateway' | 'customer',
): HuntHop {
  const { target } = hop
  const { carrier } = target
  const host = hostOf(target.uri)
  return {
    uri: withUser(targetUri(target.uri, target.transport), outgoing.called_e164),
    target: target.uri,
    target_id: target.id,
    carrier_id: hop.carrier_id,
    trunk_id: carrier ? null : (trunk?.id ?? null),
    transport: target.transport,
    tls: target.tls,
    headers: invitationHeaders(ctx, outgoing, carrier ? 'carrier' : of_trunk),
    policy: carrier ? carrierPolicy(carrier, literal(host)) : trunkPolicy(trunk, literal(host)),
    ...authOf(ctx, target.credentials),
    redirects: redirectsOf(ctx, target, (carrier ?? trunk)?.targets ?? []),
    // A carrier gets no diversion by a number that is none of the project.
    ...(carrier ? {} : { diverted: (uri: string) => redirectHeaders(ctx, outgoing, uri, of_trunk, trunk?.country) }),
  }
}

/** The history of a call that its target has redirected; none when the 3xx only names another host (RFC 5806 §4). */
function redirectHeaders(
  ctx: NodeServices,
  outgoing: Outgoing,
  uri: string,
  to: Recipient,
  country: string = DEFAULT_COUNTRY,
) {
  const address = readUri(uri)
  const { number } = address ? dialled(address, country) : { number: null }
  const called = number === null ? (address?.user ?? '') : (parseNumber(number, country)?.e164 ?? number)
  if (called === '' || called === outgoing.called_e164) return {}
  const by = { number: outgoing.called_e164, reason: 'unconditional', counter: 1, hidden: false }
  const { domain } = ctx.config
  return diversionHeaders([by, ...outgoing.diverters], { called, domain, trusted: to !== 'customer' })
}

/** Opens the credentials with which we answer challenges. */
export const authOf = (ctx: NodeServices, sealed: SealedCredentials | null): { readonly auth?: Credentials } =>
  sealed ? { auth: { username: sealed.username, password: unseal(ctx.config.master_key, sealed.password_sealed) } } : {}

/** Returns the targets to whose hosts a 3xx of this target may lead, each with its own credentials and verification. */
function redirectsOf(ctx: NodeServices, target: Target, siblings: readonly Target[]): HuntHop['redirects'] {
  if (target.redirects === 'off') return []
  const reachable = target.redirects === 'listed' ? siblings.filter(({ enabled }) => enabled) : [target]
  // The called target first: a redirect within its host keeps its credentials.
  return [target, ...reachable.filter(({ id }) => id !== target.id)].map(({ uri, tls, credentials }) => ({
    host: hostOf(uri).toLowerCase(),
    tls,
    ...authOf(ctx, credentials),
  }))
}

/** The recipient of our INVITE. A `gateway` is a customer's own route into the public network. */
type Recipient = 'carrier' | 'gateway' | 'customer'

/** Returns the caller's identity and the passed headers of our INVITE. They reveal nothing of the other leg's peer. */
export function invitationHeaders(ctx: NodeServices, outgoing: Outgoing, to: Recipient): Record<string, string> {
  const { domain } = ctx.config
  const { from, asserted, privacy } = presentedCaller(outgoing.caller_e164, outgoing.restricted, {
    domain,
    trusted: to !== 'customer',
  })
  const { attest, verstat } = outgoing
  const identity =
    to === 'carrier' && attest
      ? ctx.stir.identity({ caller: outgoing.caller_e164, called: outgoing.called_e164, attest })
      : null
  return {
    From: outgoing.restricted ? from : `${quotedName(outgoing.caller_name)}${from}`,
    ...(asserted === null ? {} : { 'P-Asserted-Identity': assertedTo(to, asserted, verstat) }),
    ...(identity === null ? {} : { Identity: identity }),
    ...(privacy ? { Privacy: privacy } : {}),
    'Max-Forwards': String(outgoing.max_forwards),
    ...diversionHeaders(outgoing.diverters, { called: outgoing.called_e164, domain, trusted: to !== 'customer' }),
    ...(to !== 'carrier' ? { ...outgoing.passed, 'X-Strowger-CallSid': outgoing.call_sid } : {}),
  }
}

/** ATIS-1000074 §5.3: `verstat` is a parameter of the number. */
const assertedTo = (to: Recipient, asserted: string, verstat: Verstat | null | undefined) =>
  verstat && to !== 'carrier' ? asserted.replace('@', `;verstat=${verstatText(verstat)}@`) : asserted

export const trunkPolicy = (trunk: TrunkConfig | null, signalled_from: string | null): LegPolicy => ({
  codecs: trunk ? [...trunk.codecs] : ['PCMU', 'PCMA'],
  security: trunk?.security ?? 'rtp',
  source_validation: trunk?.source_validation ?? 'relaxed',
  sources: trunk ? trunk.sources.slice(0, 256) : [],
  signalled_from,
  telephone_event: true,
})

/** The policy of a leg without a trunk: to a SIP URI in a document, or to a client's telephone. */
export const openPolicy = (signalled_from: string | null): LegPolicy => ({
  ...trunkPolicy(null, signalled_from),
  codecs: ['PCMU', 'PCMA', 'G722', 'OPUS'],
})

export const carrierPolicy = (carrier: CarrierConfig, signalled_from: string | null): LegPolicy => ({
  codecs: [...carrier.codecs],
  security: 'rtp',
  source_validation: 'relaxed',
  sources: carrier.sources.slice(0, 256),
  signalled_from,
  telephone_event: true,
})

const literal = (host: string): string | null => (parseAddress(host) ? host : null)

/** Returns the URI with this user part and without headers. Scheme, host, port and parameters stay. */
function withUser(uri: string, user: string): string {
  const parsed = parseUri(uri)
  if (!parsed) return uri
  const { scheme, opaque } = parsed
  return `${scheme}:${user}@${opaque.slice(opaque.indexOf('@') + 1).split('?', 1)[0]}`
}

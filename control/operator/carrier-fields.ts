import type { CarrierWish } from '../../core/domain/carriers/plan.ts'
import { CODEC_NAMES } from '../../core/domain/codecs/codec.ts'
import { parseNetwork } from '../../core/domain/identity/address.ts'
import { readFingerprint } from '../../core/domain/network/tls-verification.ts'
import type { Carrier } from '../../core/state/configuration/carriers.ts'
import {
  Count64,
  described,
  Flag,
  Instant,
  Int64,
  input,
  list,
  Name,
  nullable,
  oneOf,
  optional,
  Redirects,
  resource,
  type Static,
  Transport,
  Type,
} from '../http/schema.ts'
import type { FieldError } from '../http/validate.ts'
import { readSipUri } from '../v1/sip-uri.ts'

/** Fields of a carrier in requests and answers, and their defaults. */

const ANY_NUMBER = 'any'
const DEFAULT_CODECS = ['PCMU', 'PCMA'] as const
const MAX_SOURCES = 1000
const MAX_TARGETS = 100
const MAX_ROUTES = 10_000

const whole = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum })
const Verification = oneOf('required', 'pinned', 'off')
const Fingerprint = Type.String({ maxLength: 95, description: 'SHA-256 of the pinned certificate, in hexadecimal.' })

/** How we verify the certificate of a carrier's server. */
export const TLS_FIELDS = { tls_verification: optional(Verification), tls_fingerprint: optional(Fingerprint) }

const SOURCES = list(Type.String({ maxLength: 60 }), { maxItems: MAX_SOURCES, uniqueItems: true })
const TARGETS = list(
  input('CarrierTargetRequest', {
    sip_uri: Type.String({ maxLength: 255, pattern: '^sips?:([^@\\s]+@)?[^\\s@]+$' }),
    transport: optional(Transport),
    priority: optional(whole(1, 65_535)),
    weight: optional(whole(0, 65_535)),
    ...TLS_FIELDS,
  }),
  { maxItems: MAX_TARGETS },
)
const ROUTES = list(
  input('CarrierRouteRequest', {
    prefix: Type.String({ maxLength: 16, pattern: '^(any|\\+?[0-9]{1,15})$' }),
    priority: optional(whole(0, 999_999)),
    cost_minor: optional(whole(0, 999_999_999)),
  }),
  { maxItems: MAX_ROUTES },
)
const CONFIRM = optional(
  Type.Boolean({
    description: 'Needed for sources wider than a /8 together (IPv6: /16): all in them are taken for the carrier.',
  }),
)
const CODECS = list(oneOf(...CODEC_NAMES), { maxItems: CODEC_NAMES.length, uniqueItems: true })

/** Lists are required, so that nobody empties one by leaving it out. */
export const CarrierRequest = input('CarrierRequest', {
  name: Name,
  enabled: optional(Flag),
  codecs: optional(CODECS),
  redirects: optional(Redirects),
  sources: SOURCES,
  confirm_wide_sources: CONFIRM,
  targets: TARGETS,
  routes: ROUTES,
})

/** A list replaces the whole list of the carrier. */
export const CarrierUpdate = input('UpdateCarrierRequest', {
  name: optional(Name),
  enabled: optional(Flag),
  codecs: optional(CODECS),
  redirects: optional(Redirects),
  sources: optional(SOURCES),
  confirm_wide_sources: CONFIRM,
  targets: optional(TARGETS),
  routes: optional(ROUTES),
})

export const Registration = resource('OperatorCarrierRegistration', {
  registrar: Type.String(),
  transport: Transport,
  username: Type.String(),
  contact_user: Type.String(),
  expires_seconds: Int64,
  tls_verification: Verification,
  tls_fingerprint: nullable(Type.String()),
  state: oneOf('untried', 'registering', 'registered', 'failed', 'unregistered'),
  detail: nullable(Type.String()),
  expires_at: nullable(Instant),
  next_try_at: nullable(Instant),
})

export const CarrierAnswer = resource('OperatorCarrier', {
  id: Type.String(),
  name: Type.String(),
  enabled: Flag,
  state: described(
    oneOf('active', 'draining', 'drained'),
    'Draining: it is not enabled and has calls in progress. Drained: it has none left.',
  ),
  live_calls: described(Count64, 'Calls in progress that it brought or took.'),
  sandbox: described(Flag, 'The carrier that plays the telephone network for projects in the sandbox.'),
  codecs: list(oneOf(...CODEC_NAMES)),
  redirects: Redirects,
  digest_username: nullable(Type.String()),
  sources: list(Type.String()),
  targets: list(
    resource('OperatorCarrierTarget', {
      id: Type.String(),
      sip_uri: Type.String(),
      transport: Transport,
      priority: Int64,
      weight: Int64,
      tls_verification: Verification,
      tls_fingerprint: nullable(Type.String()),
    }),
  ),
  routes: list(resource('OperatorCarrierRoute', { prefix: Type.String(), priority: Int64, cost_minor: Int64 })),
  registration: nullable(Registration),
  revision: Int64,
  created_at: Instant,
})

export type PresentedCarrier = Static<typeof CarrierAnswer>

export const presentCarrier = (carrier: Carrier): PresentedCarrier => ({
  id: carrier.id,
  name: carrier.name,
  enabled: carrier.enabled === 1,
  state: carrier.enabled === 1 ? 'active' : carrier.live_calls > 0 ? 'draining' : 'drained',
  live_calls: carrier.live_calls,
  sandbox: carrier.sandbox === 1,
  codecs: carrier.codecs as PresentedCarrier['codecs'],
  redirects: carrier.redirects,
  digest_username: carrier.digest_username,
  sources: carrier.sources,
  targets: carrier.targets.map(({ id, sip_uri, transport, priority, weight, tls_verification, tls_fingerprint }) => ({
    id,
    sip_uri,
    transport,
    priority,
    weight,
    tls_verification,
    tls_fingerprint,
  })),
  routes: carrier.routes.map(({ prefix, priority, cost_minor }) => ({
    prefix: prefix === '' ? ANY_NUMBER : `+${prefix}`,
    priority,
    cost_minor,
  })),
  registration: presentRegistration(carrier.registration),
  revision: carrier.revision,
  created_at: carrier.created_at,
})

function presentRegistration(row: Carrier['registration']): PresentedCarrier['registration'] {
  if (row === null) return null
  const { state } = row
  return {
    registrar: row.registrar,
    transport: row.transport,
    username: row.username,
    contact_user: row.contact_user,
    expires_seconds: row.expires_seconds,
    tls_verification: row.tls_verification,
    tls_fingerprint: row.tls_fingerprint,
    state: state?.state ?? 'untried',
    detail: state?.detail ?? null,
    expires_at: state?.expires_at ?? null,
    next_try_at: state?.next_try_at ?? null,
  }
}

/** The carrier as its row has it, for comparison with a wish. */
export const asWish = (carrier: Carrier): CarrierWish & { readonly id: string } => ({
  ...carrier,
  enabled: carrier.enabled === 1,
})

type Tls = Static<typeof CarrierRequest>['targets'][number]

/** Fills in the defaults of the fields that a request has. Other fields keep the carrier's values. */
export function wishOf(body: Static<typeof CarrierRequest>): CarrierWish
export function wishOf(body: Static<typeof CarrierUpdate>, known: CarrierWish): CarrierWish
export function wishOf(body: Static<typeof CarrierUpdate>, known?: CarrierWish): CarrierWish {
  const { name = known?.name ?? '', enabled = known?.enabled ?? true } = body
  return {
    name,
    enabled,
    codecs: body.codecs ?? known?.codecs ?? DEFAULT_CODECS,
    redirects: body.redirects ?? known?.redirects ?? 'off',
    sources: body.sources ?? known?.sources ?? [],
    targets: body.targets?.map(targetOf) ?? known?.targets ?? [],
    routes:
      body.routes?.map(({ prefix, priority = 10, cost_minor = 0 }) => ({
        prefix: prefix === ANY_NUMBER ? '' : prefix.replace('+', ''),
        priority,
        cost_minor,
      })) ??
      known?.routes ??
      [],
  }
}

const targetOf = ({ sip_uri, transport = 'udp', priority, weight = 100, ...tls }: Tls, at: number) => ({
  sip_uri,
  transport,
  priority: priority ?? at + 1,
  weight,
  ...tlsOf(tls),
})

export const tlsOf = ({ tls_verification = 'required', tls_fingerprint }: Pick<Tls, keyof typeof TLS_FIELDS>) => ({
  tls_verification,
  tls_fingerprint: tls_fingerprint === undefined ? null : readFingerprint(tls_fingerprint),
})

/** The faults of a carrier that its schema cannot find. `at` is the JSON pointer of the carrier. */
export const carrierFaults = (
  { sources = [], targets = [], confirm_wide_sources = false }: Static<typeof CarrierUpdate>,
  at = '',
): FieldError[] => [
  ...sourceFaults(sources, confirm_wide_sources, `${at}/sources`),
  ...targets.flatMap((target, index) => [
    ...uriFaults(target.sip_uri, target.transport, `${at}/targets/${index}/sip_uri`),
    ...tlsFaults(target, `${at}/targets/${index}`),
  ]),
]

/**
 * The prefix as wide as all sources of a carrier together may be without a confirmation. Calls from a carrier's source
 * need no credential.
 */
const WIDEST = { ipv4: 8, ipv6: 16 } as const

function sourceFaults(sources: readonly string[], confirmed: boolean, at: string): FieldError[] {
  const taken = { ipv4: 0, ipv6: 0 }
  return sources.flatMap((cidr, index) => {
    const fault = (message: string): FieldError[] => [{ pointer: `${at}/${index}`, message }]
    const network = parseNetwork(cidr)
    if (!network) return fault('must be an address or a CIDR such as 203.0.113.0/24')
    const family = network.words.length === 1 ? 'ipv4' : 'ipv6'
    const widest = WIDEST[family]
    taken[family] += 2 ** -network.prefix_length
    if (confirmed || taken[family] <= 2 ** -widest) return []
    return fault(
      `makes the sources wider than a /${widest}, and all in them are taken for the carrier: ` +
        'confirm_wide_sources (strowger: --confirm)',
    )
  })
}

/** The faults of a SIP URI that an operator named, by the rule for those of customers. */
export function uriFaults(text: string, transport: 'udp' | 'tcp' | 'tls' = 'udp', pointer: string): FieldError[] {
  const read = readSipUri(text, transport)
  return read.ok ? [] : [{ pointer, message: read.why }]
}

export function tlsFaults(
  { tls_verification, tls_fingerprint }: Pick<Tls, keyof typeof TLS_FIELDS>,
  at = '',
): FieldError[] {
  const pinned = tls_verification === 'pinned'
  if (pinned === (readFingerprint(tls_fingerprint ?? '') !== null) && (pinned || tls_fingerprint === undefined))
    return []
  const message = pinned
    ? 'must be the SHA-256 fingerprint of the pinned certificate, 64 hexadecimal digits'
    : 'needs tls_verification pinned'
  return [{ pointer: `${at}/tls_fingerprint`, message }]
}

import { CODEC_NAMES } from '../../core/domain/codecs/codec.ts'
import {
  Count64,
  Currency,
  DigestPassword,
  DigestUsername,
  described,
  Flag,
  Instant,
  Int32,
  input,
  list,
  Money,
  Name,
  nullable,
  oneOf,
  optional,
  Redirects,
  resource,
  Transport,
  Type,
} from '../http/schema.ts'
import { AttachedPolicy } from './attached-policy.ts'

const AuthMode = oneOf('ip_allow_list', 'digest')
export const TrunkCodec = oneOf(...CODEC_NAMES)
const Direction = oneOf('inbound', 'outbound', 'both')
const MediaSecurity = oneOf('rtp', 'sdes_srtp_required')
export const SourceStanding = oneOf('full', 'name_only', 'pending_approval')
const SourceValidation = oneOf('relaxed', 'strict')
const Transfers = oneOf('consume', 'pass', 'refuse')
export const TrunkStatus = described(
  oneOf('draft', 'enabled', 'disabled', 'releasing', 'released'),
  'A trunk is `enabled` from its creation; `draft` is reserved and never shown. A `released` trunk is shown by call records alone.',
)

const summary = {
  id: Type.String(),
  project_id: Type.String(),
  name: Type.String(),
  status: TrunkStatus,
  direction: Direction,
  revision: Count64,
  concurrency_limit: Int32,
  concurrency_used: Int32,
  cps: nullable(Type.String()),
  currency: Currency,
  daily_spend_cap_minor: nullable(Money),
  max_call_duration_seconds: Int32,
  max_destination_rate_minor: nullable(Money),
  numbers: Int32,
  parent_name: nullable(Type.String(), {
    description: 'Always null: a trunk has no parent. Subtrunks name theirs in `parent_trunk_name`.',
  }),
  signaling_fqdn: nullable(Type.String()),
  subaccount_id: nullable(Type.String()),
  subaccount_name: nullable(Type.String()),
  endpoints: resource('EndpointSummary', {
    count: Int32,
    /** Enabled targets that left two OPTIONS in a row unanswered. */
    silent: Int32,
    state: oneOf('none', 'idle'),
  }),
}

export const TrunkSummary = resource('TrunkSummary', summary)

const DigestIdentity = resource('DigestIdentity', {
  enabled: Flag,
  realm: Type.String(),
  username: Type.String(),
})

const Ceiling = resource('TrunkCeiling', { configured: Int32, unit: Type.String() })

const Apply = resource('Apply', {
  state: oneOf('applying', 'applied', 'failed'),
  desired_revision: Count64,
  effective_revision: Count64,
  applied_at: nullable(Instant),
  error: nullable(Type.String()),
})

export const TrunkDetail = resource('TrunkDetail', {
  ...summary,
  as_of: Instant,
  authentication: resource('TrunkAuthentication', {
    mode: AuthMode,
    require_tls: Flag,
    source_validation: SourceValidation,
    sources: list(
      resource('TrunkSource', { cidr: Type.String(), enabled: Flag, id: Type.String(), standing: SourceStanding }),
    ),
    digest_identities: list(DigestIdentity),
  }),
  transfers: Transfers,
  endpoint_evidence: list(
    resource('EndpointEvidence', {
      detail: Type.String(),
      last_attempt_at: nullable(Instant),
      last_result: nullable(resource('EndpointResult', { at: Instant, code: Type.String() })),
      priority: Int32,
      sip_uri: Type.String(),
      state: oneOf('unknown', 'idle', 'healthy', 'degraded'),
    }),
  ),
  limits: resource('TrunkLimits', { concurrency: Ceiling, cps: Ceiling, max_call_duration: Ceiling }),
  media: resource('TrunkMedia', { codecs: list(TrunkCodec), security: MediaSecurity }),
  number_inventory: resource('NumberInventory', {
    delegated: resource('DelegatedNumbers', {
      count: Int32,
      to: nullable(Type.String(), { description: 'The names of the subtrunks that have them, separated by commas.' }),
    }),
    quarantined: resource('QuarantinedNumbers', { count: Int32, until: nullable(Instant) }),
    range: nullable(Type.String()),
    routed: Int32,
  }),
  outbound_policy: nullable(AttachedPolicy),
  routes: list(
    resource('TrunkRoute', {
      enabled: Flag,
      id: Type.String(),
      digest_username: nullable(Type.String()),
      priority: Int32,
      redirects: Redirects,
      sip_uri: Type.String(),
      tls_fingerprint: nullable(Type.String()),
      tls_verification: oneOf('required', 'pinned', 'off'),
      transport: Transport,
      weight: Int32,
    }),
  ),
  apply: Apply,
})

export const TrunkCreation = resource('TrunkCreation', { digest_password: nullable(Type.String()), trunk: TrunkDetail })

export const SipUriText = Type.String({ minLength: 5, maxLength: 255 })
/** How the certificate of a TLS target is verified. `pinned` compares its SHA-256 fingerprint. */
export const TlsVerification = oneOf('required', 'pinned', 'off')
export const Fingerprint = Type.String({ minLength: 64, maxLength: 95 })
export const CidrText = Type.String({ minLength: 2, maxLength: 49 })

const LimitsInput = input('TrunkDraftLimitsInput', {
  concurrency: Int32,
  cps: Int32,
  max_call_duration_seconds: Int32,
})

/** A priority or a weight, in the range of RFC 2782. */
export const Priority = Type.Integer({ minimum: 0, maximum: 65535, format: 'int32' })

const settings = {
  auth_mode: AuthMode,
  codecs: Type.Array(TrunkCodec, { minItems: 1, maxItems: 5, uniqueItems: true }),
  direction: Direction,
  media_security: MediaSecurity,
  name: Name,
  require_tls: Flag,
  source_validation: SourceValidation,
  transfers: optional(Transfers),
  limits: optional(LimitsInput),
  subaccount_id: optional(nullable(Type.String({ maxLength: 128 }))),
}

export const MAX_SOURCES = 100
export const MAX_TARGETS = 50

export const CreateTrunkRequest = input('CreateTrunkRequest', {
  ...settings,
  sources: Type.Array(CidrText, { maxItems: MAX_SOURCES }),
  targets: Type.Array(
    input('TrunkTargetInput', {
      digest_password: optional(DigestPassword),
      digest_username: optional(nullable(DigestUsername)),
      priority: Priority,
      redirects: optional(Redirects),
      sip_uri: SipUriText,
      tls_fingerprint: optional(nullable(Fingerprint)),
      tls_verification: optional(TlsVerification),
      transport: Transport,
      weight: Priority,
    }),
    { maxItems: MAX_TARGETS },
  ),
  number_block_ids: optional(Type.Array(Type.String({ maxLength: 128 }), { maxItems: 100, uniqueItems: true })),
  outbound_policy_id: optional(nullable(Type.String({ maxLength: 128 }))),
})

export const UpdateTrunkRequest = input('UpdateTrunkRequest', settings)

import type { CodecName } from '../../core/domain/codecs/codec.ts'

import {
  type Attribution,
  compileAttribution,
  compileSources,
  type SourceIndex,
} from '../../core/domain/identity/index.ts'
import { type TlsVerification, verificationOf } from '../../core/domain/network/tls-verification.ts'
import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'

import type { ConfigurationRows } from '../../core/state/configuration/snapshot.ts'

/** The configuration as this node uses it: immutable, and replaced as a whole. */

interface SourceOwner {
  readonly id: string
  readonly kind: 'trunk' | 'carrier'
}

export interface Target {
  readonly id: string
  readonly uri: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly priority: number
  readonly weight: number
  readonly enabled: boolean
  readonly tls: TlsVerification
  /** What answers the target's challenges; for a carrier's target, what the carrier has. */
  readonly credentials: SealedCredentials | null
  readonly redirects: 'off' | 'same_host' | 'listed'
}

export interface SealedCredentials {
  readonly username: string
  readonly password_sealed: string
}

export interface DigestCredential {
  readonly id: string
  readonly trunk_id: string
  readonly realm: string
  readonly username: string
  readonly ha1_md5: string
  readonly ha1_sha256: string
  readonly valid_until_ms: number | null
}

export interface TrunkConfig {
  readonly id: string
  readonly name: string
  readonly project_id: string
  readonly subaccount_id: string | null
  readonly revision: number
  readonly enabled: boolean
  readonly auth_mode: 'ip_allow_list' | 'digest'
  readonly require_tls: boolean
  readonly source_validation: 'relaxed' | 'strict'
  readonly transfers: 'consume' | 'pass' | 'refuse'
  readonly security: 'rtp' | 'sdes_srtp_required'
  /** The country whose national formats its peer may send. */
  readonly country: string
  readonly codecs: readonly CodecName[]
  readonly max_call_duration_seconds: number
  readonly signaling_fqdn: string
  /** Only the enabled and approved sources. */
  readonly sources: readonly string[]
  readonly source_index: SourceIndex<string>
  readonly targets: readonly Target[]
}

/** How we register with a carrier. */
export interface CarrierRegistration {
  readonly registrar: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly username: string
  readonly password_sealed: string
  readonly contact_user: string
  readonly expires_seconds: number
  readonly tls: TlsVerification
}

export interface CarrierConfig {
  readonly id: string
  readonly name: string
  readonly sandbox: boolean
  /** False: it is drained. Its running calls continue, and it gets and brings no new ones. */
  readonly enabled: boolean
  readonly revision: number
  readonly codecs: readonly CodecName[]
  readonly sources: readonly string[]
  readonly targets: readonly Target[]
  readonly routes: readonly { readonly prefix: string; readonly priority: number; readonly cost_minor: number }[]
  /** Null when the carrier identifies us by address. */
  readonly registration: CarrierRegistration | null
  readonly credentials: SealedCredentials | null
}

export interface NumberConfig {
  readonly id: string
  readonly e164: string
  readonly project_id: string | null
  readonly status: 'available' | 'held' | 'quarantined'
  readonly route_kind: 'voice_application' | 'trunk' | 'subtrunk' | null
  readonly route_id: string | null
  readonly fallback_kind: NumberConfig['route_kind']
  readonly fallback_id: string | null
}

export interface ApplicationConfig {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly revision: number
  readonly voice_url: string
  readonly voice_method: 'GET' | 'POST'
  readonly fallback_url: string | null
  readonly fallback_method: 'GET' | 'POST'
  readonly status_callback_url: string | null
  readonly status_callback_method: 'GET' | 'POST'
  /** The engines that hear and speak in its calls; null: the operator's. */
  readonly stt: string | null
  readonly tts: string | null
}

export interface ProjectConfig {
  readonly id: string
  readonly active: boolean
  readonly sandbox: boolean
}

interface AccountConfig {
  readonly account_sid: string
  readonly project_id: string
  /** It changes whenever the auth token does. */
  readonly key_id: string
  readonly active: boolean
  readonly events: boolean
  readonly auth_token_sealed: string
}

export interface Snapshot {
  readonly revision: number
  readonly attribution: Attribution<SourceOwner>
  readonly trunks: ReadonlyMap<string, TrunkConfig>
  readonly carriers: ReadonlyMap<string, CarrierConfig>
  readonly numbers: ReadonlyMap<string, NumberConfig>
  readonly applications: ReadonlyMap<string, ApplicationConfig>
  readonly projects: ReadonlyMap<string, ProjectConfig>
  /** Voice accounts by project id. */
  readonly accounts: ReadonlyMap<string, AccountConfig>
  /** Credentials by user name; the realm selects among them. */
  readonly credentials: ReadonlyMap<string, readonly DigestCredential[]>
  readonly trunk_of_subtrunk: ReadonlyMap<string, string>
}

/** Reports whether a project holds a number now. Only then may its calls present it. */
export function holdsNumber({ numbers }: Snapshot, project_id: string | undefined, e164: string | null): boolean {
  const number = e164 === null ? undefined : numbers.get(e164)
  return number !== undefined && number.project_id === project_id && number.status === 'held'
}

export const EMPTY_SNAPSHOT: Snapshot = {
  revision: -1,
  attribution: compileAttribution([], []),
  trunks: new Map(),
  carriers: new Map(),
  numbers: new Map(),
  applications: new Map(),
  projects: new Map(),
  accounts: new Map(),
  credentials: new Map(),
  trunk_of_subtrunk: new Map(),
}

const CODECS: readonly string[] = ['PCMA', 'PCMU', 'G729', 'G722', 'OPUS'] satisfies CodecName[]

/** Parses a codec list. Throws when it is invalid; the caller then keeps the previous version and reports the fault. */
function codecsOf(json: string): CodecName[] {
  const value: unknown = JSON.parse(json)
  if (!Array.isArray(value)) throw new Error('codecs are not a list')
  const known = value.filter((name): name is CodecName => CODECS.includes(name))
  if (known.length === 0) throw new Error('no codec that we know')
  return known
}

interface Compiled {
  readonly snapshot: Snapshot
  /** The error of each resource that could not be applied. Its previous version stays in force. */
  readonly failures: ReadonlyMap<string, string>
}

export function compileSnapshot(rows: ConfigurationRows, previous: Snapshot): Compiled {
  const failures = new Map<string, string>()
  const grouped = groupedOf(rows)
  const keep = <T>(id: string, known: T | undefined, make: () => T): T | undefined => {
    try {
      return make()
    } catch (error) {
      failures.set(id, error instanceof Error ? error.message : String(error))
      return known
    }
  }
  const trunks = new Map<string, TrunkConfig>()
  for (const row of rows.trunks) {
    const trunk = keep(row.id, previous.trunks.get(row.id), () => trunkOf(row, grouped))
    if (trunk) trunks.set(row.id, trunk)
  }
  const carriers = new Map<string, CarrierConfig>()
  for (const row of rows.carriers) {
    // A sandbox carrier that does not run has no calls.
    if (row.enabled !== 1 && row.sandbox === 1) continue
    const carrier = keep(row.id, previous.carriers.get(row.id), () => carrierOf(row, rows, grouped))
    if (carrier) carriers.set(row.id, carrier)
  }
  const attribution = attributionOf(grouped.sources, trunks, carriers)
  return { failures, snapshot: { ...rest(rows), trunks, carriers, attribution } }
}

const groupedOf = (rows: ConfigurationRows) => ({
  sources: group(rows.sources, row => row.trunk_id),
  targets: group(rows.targets, row => row.trunk_id),
  carrier_sources: group(rows.carrier_sources, row => row.carrier_id),
  carrier_targets: group(rows.carrier_targets, row => row.carrier_id),
  carrier_routes: group(rows.carrier_routes, row => row.carrier_id),
})
type Grouped = ReturnType<typeof groupedOf>

/** @throws when a column is invalid */
function trunkOf(row: ConfigurationRows['trunks'][number], grouped: Grouped): TrunkConfig {
  const sources = usable(grouped.sources.get(row.id))
  return {
    id: row.id,
    name: row.name,
    project_id: row.project_id,
    subaccount_id: row.subaccount_id,
    revision: row.revision,
    enabled: row.status === 'enabled',
    auth_mode: row.auth_mode,
    require_tls: row.require_tls === 1,
    source_validation: row.source_validation,
    transfers: row.transfers,
    security: row.media_security,
    country: row.country ?? DEFAULT_COUNTRY,
    codecs: codecsOf(row.codecs),
    max_call_duration_seconds: row.max_call_duration_seconds,
    signaling_fqdn: row.signaling_fqdn,
    sources: sources.map(source => source.cidr),
    source_index: compileSources(
      sources.map(source => ({ cidr: source.cidr, selector_precedence: 0, owner: source.id })),
    ),
    targets: (grouped.targets.get(row.id) ?? []).map(target =>
      targetOf(target, {
        redirects: target.redirects,
        credentials: sealedOf(target.digest_username, target.digest_password_sealed),
      }),
    ),
  }
}

/** @throws when a column is invalid */
function carrierOf(
  row: ConfigurationRows['carriers'][number],
  rows: ConfigurationRows,
  grouped: Grouped,
): CarrierConfig {
  const registration = registrationOf(
    rows.carrier_registrations.find(({ carrier_id, enabled }) => carrier_id === row.id && enabled === 1),
  )
  // A carrier that we register with may also challenge our calls.
  const credentials = rows.carrier_credentials.find(({ carrier_id }) => carrier_id === row.id) ?? registration
  const own = {
    redirects: row.redirects,
    credentials: sealedOf(credentials?.username, credentials?.password_sealed),
  }
  return {
    id: row.id,
    name: row.name,
    sandbox: row.sandbox === 1,
    enabled: row.enabled === 1,
    revision: row.revision,
    codecs: codecsOf(row.codecs),
    sources: (grouped.carrier_sources.get(row.id) ?? []).map(source => source.cidr),
    targets: (grouped.carrier_targets.get(row.id) ?? []).map(target => targetOf(target, own)),
    routes: (grouped.carrier_routes.get(row.id) ?? []).map(({ prefix, priority, cost_minor }) => ({
      prefix,
      priority,
      cost_minor,
    })),
    registration,
    credentials: own.credentials,
  }
}

type Rest = Omit<Snapshot, 'trunks' | 'carriers' | 'attribution'>

const rest = (rows: ConfigurationRows): Rest => ({
  revision: rows.revision,
  numbers: new Map(
    rows.numbers.map(({ id, e164, project_id, status, route_kind, route_id, fallback_kind, fallback_id }) => [
      e164,
      { id, e164, project_id, status, route_kind, route_id, fallback_kind, fallback_id },
    ]),
  ),
  applications: new Map(rows.applications.map(row => [row.id, row])),
  projects: new Map(
    rows.projects.map(row => [row.id, { id: row.id, active: row.status === 'active', sandbox: row.sandbox === 1 }]),
  ),
  accounts: new Map(
    rows.accounts.map(row => [
      row.project_id,
      {
        account_sid: row.account_sid,
        project_id: row.project_id,
        key_id: row.key_id,
        active: row.status === 'active',
        events: row.call_event_history === 'enabled',
        auth_token_sealed: row.auth_token_sealed,
      },
    ]),
  ),
  credentials: group(
    rows.credentials
      .filter(row => row.enabled === 1 && row.revoked_at === null)
      .map(row => ({
        id: row.id,
        trunk_id: row.trunk_id,
        realm: row.realm,
        username: row.username,
        ha1_md5: row.ha1_md5,
        ha1_sha256: row.ha1_sha256,
        valid_until_ms: earliest(row.valid_until, row.previous_retires_at),
      })),
    row => row.username,
  ),
  trunk_of_subtrunk: new Map(rows.subtrunks.map(row => [row.id, row.trunk_id])),
})

type SourceRow = ConfigurationRows['sources'][number]

const usable = (rows: readonly SourceRow[] = []): SourceRow[] =>
  rows.filter(({ enabled, standing }) => enabled === 1 && standing !== 'pending_approval')

function attributionOf(
  sources: ReadonlyMap<string, readonly SourceRow[]>,
  trunks: ReadonlyMap<string, TrunkConfig>,
  carriers: ReadonlyMap<string, CarrierConfig>,
): Attribution<SourceOwner> {
  const owner = (kind: SourceOwner['kind'], id: string): SourceOwner => ({ id, kind })
  const of_trunks = [...trunks.values()].map(({ id, signaling_fqdn, auth_mode, source_index }) => ({
    owner: owner('trunk', id),
    signaling_fqdn,
    auth_mode,
    sources: usable(sources.get(id)),
    source_index,
  }))
  const of_carriers = [...carriers.values()].map(({ id, sources: own }) => ({
    owner: owner('carrier', id),
    sources: own,
  }))
  return compileAttribution(of_trunks, of_carriers)
}

const targetOf = (
  row: ConfigurationRows['targets'][number] | ConfigurationRows['carrier_targets'][number],
  own: Pick<Target, 'credentials' | 'redirects'>,
): Target => ({
  id: row.id,
  uri: row.sip_uri,
  transport: row.transport,
  priority: row.priority,
  weight: row.weight,
  enabled: row.enabled === 1,
  tls: verificationOf(row),
  ...own,
})

const sealedOf = (
  username: string | null | undefined,
  password_sealed: string | null | undefined,
): SealedCredentials | null => (username && password_sealed ? { username, password_sealed } : null)

const registrationOf = (
  row: ConfigurationRows['carrier_registrations'][number] | undefined,
): CarrierRegistration | null =>
  row
    ? {
        registrar: row.registrar,
        transport: row.transport,
        username: row.username,
        password_sealed: row.password_sealed,
        contact_user: row.contact_user,
        expires_seconds: row.expires_seconds,
        tls: verificationOf(row),
      }
    : null

const earliest = (...instants: (string | null)[]): number | null => {
  const known = instants.filter(instant => instant !== null).map(instant => Date.parse(instant))
  return known.length === 0 ? null : Math.min(...known)
}

function group<T>(rows: readonly T[], keyOf: (row: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const row of rows) {
    const key = keyOf(row)
    const known = groups.get(key)
    if (known) known.push(row)
    else groups.set(key, [row])
  }
  return groups
}

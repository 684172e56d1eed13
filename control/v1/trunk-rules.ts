import { judgeSources } from '../../core/domain/identity/index.ts'
import { readFingerprint } from '../../core/domain/network/tls-verification.ts'

import { newId } from '../../core/runtime/ids.ts'
import { digestHa1, seal } from '../../core/runtime/secrets.ts'
import { claimFacts } from '../../core/state/configuration/sources.ts'
import {
  ambiguousSource,
  type CredentialRow,
  type SourceRow,
  type TargetRow,
  type TrunkRow,
} from '../../core/state/configuration/trunks.ts'
import type { Db } from '../../core/state/index.ts'
import { invalid, isRefusal, type Refusal, refuse } from '../http/reply.ts'
import { readCidr, readSipUri } from './sip-uri.ts'

/** Parses the sources of a trunk. Refuses the first invalid or repeated one. */
export function readSources(
  texts: readonly string[],
  trunk_id: string,
  now: string,
): { readonly rows: readonly SourceRow[]; readonly private_ranges: readonly string[] } | Refusal<'validation_failed'> {
  const rows: SourceRow[] = []
  const private_ranges: string[] = []
  for (const [at, text] of texts.entries()) {
    const read = readCidr(text)
    if (!read.ok) return invalid(`/sources/${at}`, read.why)
    const { cidr } = read.value
    if (rows.some(row => row.cidr === cidr)) return invalid(`/sources/${at}`, 'is there twice')
    if (read.value.private) private_ranges.push(cidr)
    rows.push({
      id: newId.source(),
      trunk_id,
      cidr,
      enabled: 1,
      selector_precedence: 0,
      standing: 'full',
      created_at: now,
    })
  }
  return { rows, private_ranges }
}

type Owning = Pick<TrunkRow, 'id' | 'project_id' | 'subaccount_id' | 'auth_mode'>

/**
 * Returns the sources of a trunk to write, each with its standing against the claims of other tenants. Refuses a source
 * that would make two trunks of one tenant ambiguous, and the addresses of a carrier. `before` is the stored trunk with
 * its sources; null for a new trunk.
 */
export async function settleSources(
  db: Db,
  rows: readonly SourceRow[],
  trunk: Owning,
  before: { readonly trunk: Owning; readonly sources: readonly SourceRow[] } | null,
  now: string,
): Promise<readonly SourceRow[] | Refusal<'source_conflict' | 'source_of_carrier'>> {
  for (const row of trunk.auth_mode === 'ip_allow_list' ? rows : []) {
    const twin = await ambiguousSource(db, row, trunk)
    if (twin) return refuse('source_conflict', { value: row.cidr, name: twin.name })
  }
  const judged = judgeSources(rows, trunk, before, await claimFacts(db, trunk, rows, now))
  return judged.kind === 'stand' ? judged.sources : refuse('source_of_carrier', { value: judged.source.cidr })
}

interface TargetInput {
  readonly sip_uri: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly priority: number
  readonly weight: number
  readonly enabled?: boolean
  readonly tls_verification?: 'required' | 'pinned' | 'off'
  readonly tls_fingerprint?: string | null
  readonly redirects?: 'off' | 'same_host' | 'listed'
  readonly digest_username?: string | null
  readonly digest_password?: string
}

/** Where a target stands: in the request, below its trunk, and with the key that seals its secret. */
interface TargetPlace {
  readonly pointer: string
  readonly trunk_id: string
  readonly now: string
  readonly settings: { readonly master_key: Buffer }
}

/** Reads a target. `known` is the stored one that it replaces. */
export function readTarget(
  given: TargetInput,
  { pointer, trunk_id, now, settings }: TargetPlace,
  known: TargetRow | null = null,
): TargetRow | Refusal<'validation_failed'> {
  const read = readSipUri(given.sip_uri, given.transport)
  if (!read.ok) return invalid(`${pointer}/sip_uri`, read.why)
  const { tls_verification = 'required' } = given
  const named = given.tls_fingerprint ?? null
  const tls_fingerprint = named === null ? null : readFingerprint(named)
  if (tls_verification === 'pinned' ? tls_fingerprint === null : named !== null)
    return invalid(
      `${pointer}/tls_fingerprint`,
      tls_verification === 'pinned'
        ? 'must be the SHA-256 fingerprint of the certificate, 64 hexadecimal digits'
        : `is for tls_verification pinned, and this is ${tls_verification}`,
    )
  const digest = readDigest(given, pointer, known?.sip_uri === read.value ? known : null, settings.master_key)
  if (isRefusal(digest)) return digest
  return {
    id: newId.target(),
    trunk_id,
    sip_uri: read.value,
    transport: given.transport,
    priority: given.priority,
    weight: given.weight,
    enabled: given.enabled === false ? 0 : 1,
    tls_verification,
    tls_fingerprint,
    redirects: given.redirects ?? 'off',
    ...digest,
    created_at: now,
    updated_at: now,
  }
}

type Digest = Pick<TargetRow, 'digest_username' | 'digest_password_sealed'>

/**
 * Reads what answers the challenges of a target. `kept` is what is stored for the same address: another address never
 * inherits a password, because an author of targets could then send digests of the password to a host of their own.
 */
function readDigest(
  { digest_username, digest_password }: TargetInput,
  pointer: string,
  kept: Digest | null,
  master_key: Buffer,
): Digest | Refusal<'validation_failed'> {
  const username = digest_username === undefined ? (kept?.digest_username ?? null) : digest_username
  if (digest_password !== undefined)
    return username === null
      ? invalid(`${pointer}/digest_username`, 'is needed with digest_password')
      : { digest_username: username, digest_password_sealed: seal(master_key, digest_password) }
  if (username === null) return { digest_username: null, digest_password_sealed: null }
  if (kept?.digest_username === username)
    return { digest_username: username, digest_password_sealed: kept.digest_password_sealed }
  return invalid(`${pointer}/digest_password`, 'is needed with a new user name, and with another address')
}

/** Returns a new digest credential and its password. Only HA1 is stored, never the password (RFC 7616 §3.4.2). */
export function newCredential(
  trunk_id: string,
  names: { readonly username: string; readonly realm: string },
  now: string,
  rotated_from_id: string | null = null,
): { readonly row: CredentialRow; readonly password: string } {
  const password = newId.password()
  const { username, realm } = names
  const row = {
    id: newId.credential(),
    trunk_id,
    realm,
    username,
    ha1_md5: digestHa1('md5', username, realm, password),
    ha1_sha256: digestHa1('sha256', username, realm, password),
    enabled: 1,
    new_applied_at: null,
    previous_retires_at: null,
    revoked_at: null,
    rotated_from_id,
    valid_until: null,
    created_at: now,
  } as const
  return { row, password }
}

/** Returns a random username for a trunk's credential: `t` and 15 hexadecimal digits, easy to type into a phone. */
export const newUsername = (): string => `t${newId.uuid().replaceAll('-', '').slice(0, 15)}`

import { createHash, createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign, verify } from 'node:crypto'
import { canonicalJson } from '../domain/text/canonical-json.ts'

/**
 * Evidence of a call: parts, the SHA-256 of each, and one signature over these (Ed25519, RFC 8032). Whoever has the
 * public key of the installation can check it without the platform, and learns which part was changed.
 */
export interface Evidence {
  readonly format: string
  readonly about: EvidenceAbout
  readonly parts: Readonly<Record<string, unknown>>
  /** SHA-256 of each part in canonical JSON, in hexadecimal. */
  readonly digests: Readonly<Record<string, string>>
  /** Public key of the installation: 32 bytes, in base64url. */
  readonly public_key: string
  /** Signature of `format`, `about` and `digests` in canonical JSON, in base64url. */
  readonly signature: string
}

/** What the evidence is of, and who made it. */
interface EvidenceAbout {
  readonly call_id: string
  readonly made_at: string
  /** The address of the installation. */
  readonly made_by: string
}

const FORMAT = 'strowger-evidence-1'
const MEMBERS = new Set(['format', 'about', 'parts', 'digests', 'public_key', 'signature'])
/** Before the 32 bytes of a key: PKCS #8 (RFC 5958) and SubjectPublicKeyInfo (RFC 8410 §4), in DER. */
const PRIVATE_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')
const PUBLIC_HEAD = Buffer.from('302a300506032b6570032100', 'hex')

/** The key that signs evidence. It follows from the master key, so that a backup has it. */
function evidenceKey(master_key: Buffer): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', master_key, Buffer.alloc(0), 'strowger evidence', 32))
  return createPrivateKey({ key: Buffer.concat([PRIVATE_HEAD, seed]), format: 'der', type: 'pkcs8' })
}

/** The public key in the form that everybody may have (PEM). */
export const publishedKey = (master_key: Buffer): string =>
  createPublicKey(evidenceKey(master_key)).export({ format: 'pem', type: 'spki' }).toString()

const rawOf = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(PUBLIC_HEAD.length)

/** SHA-256 of the 32 bytes of a public key, in hexadecimal. */
const fingerprintOf = (raw: Buffer): string => createHash('sha256').update(raw).digest('hex')

const digestOf = (part: unknown): string => createHash('sha256').update(canonicalJson(part)).digest('hex')
const signedText = ({ format, about, digests }: Pick<Evidence, 'format' | 'about' | 'digests'>): Buffer =>
  Buffer.from(canonicalJson({ format, about, digests }))

/** Signs the parts. */
export function signedEvidence(about: EvidenceAbout, parts: Evidence['parts'], master_key: Buffer): Evidence {
  const key = evidenceKey(master_key)
  const digests = Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, digestOf(part)]))
  const public_key = rawOf(createPublicKey(key)).toString('base64url')
  const signature = sign(null, signedText({ format: FORMAT, about, digests }), key).toString('base64url')
  return { format: FORMAT, about, parts, digests, public_key, signature }
}

export interface EvidenceVerdict {
  /** Nothing was changed, and the key is the expected one or none was expected. */
  readonly intact: boolean
  readonly about: EvidenceAbout
  /** Fingerprint of the key in the evidence. */
  readonly fingerprint: string
  /** What was changed, as sentences; empty for intact evidence. */
  readonly findings: readonly string[]
}

/**
 * Checks evidence. Without `expected`, the public key that it must be signed by (PEM), it only proves that whoever has
 * the key in the evidence signed it. @throws Error when the text is no evidence
 */
export function checkEvidence(text: string, expected?: string): EvidenceVerdict {
  const evidence = readEvidence(text)
  const { parts, digests } = evidence
  const raw = Buffer.from(evidence.public_key, 'base64url')
  const findings = twice(text).map(name => `The member "${name}" stands twice: programs differ in which they show.`)
  for (const name of new Set([...Object.keys(digests), ...Object.keys(parts)])) {
    if (!Object.hasOwn(parts, name)) findings.push(`The part "${name}" was removed.`)
    else if (!Object.hasOwn(digests, name)) findings.push(`The part "${name}" was added.`)
    else if (digestOf(parts[name]) !== digests[name]) findings.push(`The part "${name}" was changed.`)
  }
  for (const name of Object.keys(evidence)) if (!MEMBERS.has(name)) findings.push(`The member "${name}" was added.`)
  if (!isSigned(evidence, raw))
    findings.push('The signature does not fit: call, time, digests or signature were changed.')
  if (expected !== undefined && !rawOf(createPublicKey(expected)).equals(raw))
    findings.push('Another key than the expected one signed it.')
  return { intact: findings.length === 0, about: evidence.about, fingerprint: fingerprintOf(raw), findings }
}

function isSigned(evidence: Evidence, raw: Buffer): boolean {
  if (raw.length !== 32) return false
  const key = createPublicKey({ key: Buffer.concat([PUBLIC_HEAD, raw]), format: 'der', type: 'spki' })
  return verify(null, signedText(evidence), key, Buffer.from(evidence.signature, 'base64url'))
}

/** Strings of JSON with the colon of a member, and what opens and closes objects and lists. */
const TOKENS = /"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|[{}[\]]/g

/** The names of members that an object in a JSON text has more than once. `JSON.parse` keeps the last alone. */
function twice(text: string): string[] {
  const open: (Set<string> | null)[] = []
  const found = new Set<string>()
  for (const [token, quoted, colon] of text.matchAll(TOKENS)) {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(null)
    else if (token === '}' || token === ']') open.pop()
    else if (colon !== undefined) {
      const name = JSON.parse(`"${quoted}"`)
      const names = open.at(-1)
      if (names?.has(name)) found.add(name)
      names?.add(name)
    }
  }
  return [...found]
}

function readEvidence(text: string): Evidence {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('it is no JSON')
  }
  if (!isObject(value) || value['format'] !== FORMAT) throw new Error(`it is no evidence of the form ${FORMAT}`)
  if (!isEvidence(value)) throw new Error('members of it are missing')
  return value
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function isEvidence(value: object): value is Evidence {
  const { about, parts, digests, public_key, signature } = value as Readonly<Record<string, unknown>>
  return (
    isObject(about) &&
    ['call_id', 'made_at', 'made_by'].every(name => typeof about[name] === 'string') &&
    isObject(parts) &&
    isObject(digests) &&
    typeof public_key === 'string' &&
    typeof signature === 'string'
  )
}

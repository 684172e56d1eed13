import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hash,
  hkdfSync,
  randomBytes,
  scrypt,
  timingSafeEqual,
} from 'node:crypto'
import { promisify } from 'node:util'
import type { DigestCrypto, DigestHash } from '../domain/identity/index.ts'
import type { Clock } from './clock.ts'
import { bootId } from './machine.ts'

const sha256 = (value: string | Buffer): Buffer => hash('sha256', value, 'buffer')

/**
 * Returns the hash, in hex, of a secret with at least 128 random bits (API keys), which needs no salt or stretching.
 */
export const hashSecret = (secret: string): string => hash('sha256', secret)

/** Compares two texts in constant time; hashing first makes their lengths equal. */
export const sameSecret = (a: string, b: string): boolean => timingSafeEqual(sha256(a), sha256(b))

/** Headers by which a platform proves that it holds the master key: those of the question and of the answer. */
export const PROOF = { asked: 'x-strowger-challenge', given: 'x-strowger-proof' } as const

/** Returns the proof, in hex, that its maker holds the master key. It tells nothing about the key. */
export const proofOfKey = (master_key: Buffer, challenge: string): string =>
  createHmac('sha256', master_key).update(`strowger proof of the installation\0${challenge}`).digest('hex')

/**
 * Encrypts a value that must be read again, such as the voice token, with AES-256-GCM. Returns `v1.<iv>.<tag>.<text>`,
 * each part in base64url.
 */
export function seal(key: Buffer, plain: string): string {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
  return ['v1', ...[iv, cipher.getAuthTag(), body].map(part => part.toString('base64url'))].join('.')
}

/** Decrypts the result of `seal`. Throws when the key is wrong or the text was modified. */
export function unseal(key: Buffer, sealed: string): string {
  const [version, iv, tag, body] = sealed.split('.')
  if (version !== 'v1' || !iv || !tag || body === undefined) throw new Error('sealed value has an unknown form')
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url'))
  decipher.setAuthTag(Buffer.from(tag, 'base64url'))
  return Buffer.concat([decipher.update(Buffer.from(body, 'base64url')), decipher.final()]).toString('utf8')
}

const derive = promisify<string, Buffer, number, object, Buffer>(scrypt)
/** The cost of a guess: log2 of scrypt's N (RFC 7914 §2). This one takes 0.1 s of CPU time and 32 MiB. */
const USUAL_COST = 15
/** The costs that a stored hash may name. */
const COSTS = { least: 1, most: 20 } as const

const derived = (password: string, salt: Buffer, cost: number): Promise<Buffer> =>
  derive(password, salt, 32, { N: 2 ** cost, r: 8, p: 1, maxmem: 2 ** (cost + 11) })

/**
 * Hashes a person's password: `scrypt.<salt>.<hash>` (RFC 7914), or `scrypt.<cost>.<salt>.<hash>` with a cost that is
 * not the usual one.
 */
export async function hashPassword(password: string, cost = USUAL_COST): Promise<string> {
  const salt = randomBytes(16)
  const hash = await derived(password, salt, cost)
  const named = cost === USUAL_COST ? [] : [`${cost}`]
  return ['scrypt', ...named, salt.toString('base64url'), hash.toString('base64url')].join('.')
}

/** Returns a hash that no password is known to match. Checking against it takes as long as against any other. */
export const hashOfNothing = (): string =>
  `scrypt.${randomBytes(16).toString('base64url')}.${randomBytes(32).toString('base64url')}`

export async function passwordMatches(password: string, stored: string): Promise<boolean> {
  const [kind, ...parts] = stored.split('.')
  const [named, salt, hash] = parts.length === 3 ? parts : [`${USUAL_COST}`, ...parts]
  const cost = Number(named)
  const known = Number.isInteger(cost) && cost >= COSTS.least && cost <= COSTS.most
  if (kind !== 'scrypt' || parts.length > 3 || !known || !salt || !hash) return false
  return timingSafeEqual(await derived(password, Buffer.from(salt, 'base64url'), cost), Buffer.from(hash, 'base64url'))
}

const DIGEST_HASHES = { MD5: 'md5', 'SHA-256': 'sha256', 'SHA-512-256': 'sha512-256' } as const

/** Returns a hash of digest authentication (RFC 7616 §3.3), in hex. */
export const digestHash = (algorithm: DigestHash, content: string | Uint8Array): string =>
  hash(DIGEST_HASHES[algorithm], content)

/** Returns HA1 (RFC 7616 §3.4.2), in hex. */
export const digestHa1 = (algorithm: 'md5' | 'sha256', username: string, realm: string, password: string): string =>
  createHash(algorithm).update(`${username}:${realm}:${password}`).digest('hex')

/** How digest nonces are made. Processes accept the nonces of those that make them in the same way. */
export interface Nonces {
  readonly crypto: DigestCrypto
  /** The time in a nonce. */
  readonly now_ms: (clock: Clock) => number
  /** How far the clocks of the processes may be apart. */
  readonly ahead_ms: number
  /** Whether other machines accept the nonces too. */
  readonly shared: boolean
}

/**
 * The nonces of one machine. Processes with the same control link secret accept the same: the edge challenges strangers
 * and signaling verifies their responses. Without a secret, nonces are valid only in this process. They use the
 * monotonic clock, so that a jump of the wall clock does not make them stale; it begins again with each boot, and so do
 * the nonces.
 */
export function machineNonces(link_secret: string): Nonces {
  const key =
    link_secret === ''
      ? randomBytes(32)
      : createHmac('sha256', link_secret).update(`strowger digest nonces ${bootId()}`).digest()
  return { crypto: digestCrypto(key), now_ms: clock => clock.monotonic_ms(), ahead_ms: 0, shared: false }
}

/** The key of the nonces that all machines of an installation accept. The label changes with the nonces' form. */
export const sharedNonceKey = (master_key: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', master_key, Buffer.alloc(0), 'strowger digest nonces 1', 32))

/** The pre-shared key of the links between the edges of an installation. */
export const linkKey = (master_key: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', master_key, Buffer.alloc(0), 'strowger links of edges 1', 32))

/** The key by which machines read each other's files. */
export const filesKey = (master_key: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', master_key, Buffer.alloc(0), 'strowger files of machines 1', 32))

/** How the names of an installation in a Redis server begin. They tell nothing about the key. */
export const redisPrefix = (master_key: Buffer): string =>
  `strowger:${Buffer.from(hkdfSync('sha256', master_key, Buffer.alloc(0), 'strowger names in Redis 1', 9)).toString('base64url')}`

/** The nonces of all machines of an installation. Their only common time is the wall clock. */
export const sharedNonces = (key: Buffer): Nonces => ({
  crypto: digestCrypto(key),
  now_ms: clock => clock.now(),
  ahead_ms: 30_000,
  shared: true,
})

function digestCrypto(key: Buffer): DigestCrypto {
  return {
    hash: digestHash,
    hmac: text => createHmac('sha256', key).update(text).digest('hex'),
    equal(a, b) {
      const [left, right] = [Buffer.from(a), Buffer.from(b)]
      return left.length === right.length && timingSafeEqual(left, right)
    },
  }
}

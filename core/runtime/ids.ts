import { randomBytes, randomInt, randomUUID } from 'node:crypto'

const POOL_BYTES = 4096
let pool = Buffer.alloc(0)
let taken = 0

/** 128 random bits; drawn in bulk, because a draw costs more than everything else about an id. */
function hex32(): string {
  if (taken + 16 > pool.length) {
    pool = randomBytes(POOL_BYTES)
    taken = 0
  }
  taken += 16
  return pool.toString('hex', taken - 16, taken)
}

const characters = (alphabet: string, length: number): string =>
  Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Identifiers in the shapes of spec.md, "Identifier shapes"; prefixes it leaves open follow the same pattern. */
export const newId = {
  organization: () => `org_${randomUUID()}`,
  project: () => `prj_${randomUUID()}`,
  member: () => `mem_${randomUUID()}`,
  key: () => `key_${randomUUID()}`,
  trunk: () => `trk_${randomUUID()}`,
  source: () => `src_${randomUUID()}`,
  credential: () => `dig_${randomUUID()}`,
  target: () => `tgt_${randomUUID()}`,
  carrier: () => `car_${randomUUID()}`,
  application: () => `AP${hex32()}`,
  account: () => `AC${hex32()}`,
  call: () => `CA${hex32()}`,
  recording: () => `RE${hex32()}`,
  number: () => `PN${hex32()}`,
  request: () => `req_${hex32()}`,
  node: () => `node_${randomBytes(6).toString('hex')}`,
  uuid: () => randomUUID(),
  /** `sk_live_<12 of A-Z2-7>_<32 hex>`; only a hash of the secret part is stored. */
  apiKey: () => ({ public_id: characters(BASE32, 12), secret: randomBytes(16).toString('hex') }),
  /** `sk_live_` and 32 letters and digits, no second underscore. */
  authToken: () => `sk_live_${characters(ALPHANUMERIC, 32)}`,
  password: () => characters(ALPHANUMERIC, 24),
} as const

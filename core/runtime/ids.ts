import { randomBytes, randomInt, randomUUID } from 'node:crypto'

const POOL_BYTES = 4096
let pool = Buffer.alloc(0)
let taken = 0

/** Returns 128 random bits as hex. They are drawn in bulk, because a draw costs more than the rest of an id. */
function hex32(): string {
  if (taken + 16 > pool.length) {
    pool = randomBytes(POOL_BYTES)
    taken = 0
  }
  taken += 16
  return pool.toString('hex', taken - 16, taken)
}

const VARIANTS = '89ab'

/** Returns a UUID that begins with the time (RFC 9562 §5.7), so that rows made together are adjacent in an index. */
function timedUuid(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  const random = hex32()
  const variant = VARIANTS[Number.parseInt(random.slice(0, 1), 16) % 4]
  const [high, low] = [time.slice(0, 8), time.slice(8)]
  return `${high}-${low}-7${random.slice(1, 4)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`
}

const characters = (alphabet: string, length: number): string =>
  Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Makes identifiers in the forms of spec.md, "Identifier shapes". Prefixes that it leaves open follow the pattern. */
export const newId = {
  organization: () => `org_${randomUUID()}`,
  project: () => `prj_${randomUUID()}`,
  member: () => `mem_${randomUUID()}`,
  key: () => `key_${randomUUID()}`,
  operatorKey: () => `opk_${randomUUID()}`,
  trunk: () => `trk_${randomUUID()}`,
  source: () => `src_${randomUUID()}`,
  credential: () => `dig_${randomUUID()}`,
  target: () => `tgt_${randomUUID()}`,
  carrier: () => `car_${randomUUID()}`,
  application: () => `AP${hex32()}`,
  voiceDocument: () => `doc_${randomUUID()}`,
  account: () => `AC${hex32()}`,
  call: () => `CA${hex32()}`,
  recording: () => `RE${hex32()}`,
  conference: () => `CF${hex32()}`,
  /** A sid of the compatible form with another prefix, of two capital letters. */
  sid: (prefix: string) => `${prefix}${hex32()}`,
  number: () => `PN${hex32()}`,
  request: () => `req_${hex32()}`,
  node: () => `node_${randomBytes(6).toString('hex')}`,
  auditEvent: () => `aud_${timedUuid()}`,
  uuid: () => randomUUID(),
  /** Parts of `sk_live_<12 of A-Z2-7>_<32 hex>`. Only a hash of the secret part is stored. */
  apiKey: () => ({ public_id: characters(BASE32, 12), secret: randomBytes(16).toString('hex') }),
  /** `sk_live_` and 32 letters and digits, without a second underscore. */
  authToken: () => `sk_live_${characters(ALPHANUMERIC, 32)}`,
  password: () => characters(ALPHANUMERIC, 24),
  /** 80 random bits, for a person to type: four groups of four of A-Z2-7. */
  recoveryCode: () => Array.from({ length: 4 }, () => characters(BASE32, 4)).join('-'),
} as const

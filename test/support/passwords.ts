import { hashPassword } from '../../core/runtime/secrets.ts'

/** A thousandth of the usual cost, so that a sign-in of a test takes no 0.1 s of CPU time. */
const CHEAP = 5

const hashes = new Map<string, Promise<string>>()

/** Hashes each password once in this process, cheaply. The hash names its cost, by which the product checks it. */
export function hashOnce(password: string): Promise<string> {
  const hash = hashes.get(password) ?? hashPassword(password, CHEAP)
  hashes.set(password, hash)
  return hash
}

import { hashPassword } from '../../core/runtime/secrets.ts'

const hashes = new Map<string, Promise<string>>()

/** Hashes each password once in this process. A hash takes 0.1 s of CPU time, as often as a control plane starts. */
export function hashOnce(password: string): Promise<string> {
  const hash = hashes.get(password) ?? hashPassword(password)
  hashes.set(password, hash)
  return hash
}

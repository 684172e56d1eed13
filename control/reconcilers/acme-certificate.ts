import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runBare } from '../../core/runtime/bare-child.ts'
import { acmeFile } from '../../core/runtime/certificate.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import type { Config } from '../../core/runtime/config.ts'
import { writeDurably } from '../../core/runtime/durable-files.ts'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import type { Log } from '../../core/runtime/log.ts'
import { makePrivateFolder } from '../../core/runtime/private-files.ts'
import type { Present } from '../acme/challenges.ts'
import { AcmeRefusal, type ChallengeType, obtainCertificate } from '../acme/client.ts'
import type { Reconciler } from './reconciler.ts'

/** Long enough for the limits of authorities on failures, short next to the weeks before an expiry. */
const PERIOD_MS = 3600_000
/** A certificate is renewed in the last third of its time. */
const LEFT = 1 / 3

export interface AcmeService {
  readonly settings: NonNullable<Config['acme']>
  readonly type: ChallengeType
  readonly present: Present
  readonly http: HttpClient
}

/**
 * Obtains the certificate of the configured names by ACME, and renews it. The supervisor sees the new file and passes
 * it to HTTPS, SIP over TLS and WSS. It runs where the names lead: on each machine, for its own file.
 */
export const acmeCertificate = (service: AcmeService): Reconciler => ({
  name: 'acme_certificate',
  period_ms: PERIOD_MS,
  runs: 'each machine',
  run: ({ settings, clock, log }) => renewCertificate(service, settings.data_dir, clock, log),
})

/** Obtains a certificate when one is due. An authority that refuses is logged. */
export async function renewCertificate(service: AcmeService, data_dir: string, clock: Clock, log: Log): Promise<void> {
  const { settings, ...how } = service
  const { names, directory, email } = settings
  const file = acmeFile(data_dir)
  if (!isDue(file, names, clock.now())) return
  makePrivateFolder(dirname(file))
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })
  try {
    const order = { ...how, directory, email, key: createPrivateKey(accountKey(data_dir)), clock }
    const chain = await obtainCertificate(order, names, await signingRequest(`${file}.key`, String(key), names))
    // One file, so that nobody sees a key beside the certificate of another.
    writeDurably(file, `${key}${chain}`)
    log.info({ names, valid_to: new X509Certificate(chain).validTo }, 'a certificate was issued')
  } catch (error) {
    if (!(error instanceof AcmeRefusal)) throw error
    log.error({ names, why: error.message }, 'no certificate was issued; the next attempt follows in an hour')
  }
}

/** Returns whether there is no certificate of exactly these names with enough time left. */
function isDue(file: string, names: readonly string[], now_ms: number): boolean {
  if (!existsSync(file)) return true
  const { subjectAltName = '', validFrom, validTo } = new X509Certificate(readFileSync(file))
  const [from_ms, to_ms] = [Date.parse(validFrom), Date.parse(validTo)]
  const certified = subjectAltName.split(', ').map(entry => entry.replace(/^DNS:/, ''))
  const same = certified.length === names.length && names.every(name => certified.includes(name))
  return !same || to_ms - now_ms < (to_ms - from_ms) * LEFT
}

/** The key of the account at the authority, which the first order makes. */
function accountKey(data_dir: string): string {
  const file = join(dirname(acmeFile(data_dir)), 'acme-account.pem')
  if (!existsSync(file)) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeDurably(file, String(privateKey.export({ type: 'pkcs8', format: 'pem' })))
  }
  return readFileSync(file, 'utf8')
}

/** Returns a signing request (PKCS #10, DER) for these names. openssl reads the key from a file, which is removed. */
async function signingRequest(file: string, key: string, names: readonly string[]): Promise<Buffer> {
  writeFileSync(file, key, { mode: 0o600 })
  try {
    const alternatives = names.map(name => `DNS:${name}`).join(',')
    const words = ['req', '-new', '-key', file, '-subj', '/', '-addext', `subjectAltName=${alternatives}`]
    const made = await runBare('openssl', [...words, '-outform', 'DER'], { max_bytes: 64 * 1024 })
    if (!made.ok) throw new Error(made.detail)
    return made.stdout
  } finally {
    rmSync(file, { force: true })
  }
}

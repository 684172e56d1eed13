import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runBare } from '../../core/runtime/bare-child.ts'
import { acmeFile } from '../../core/runtime/certificate.ts'
import type { Config } from '../../core/runtime/config.ts'
import { writeDurably } from '../../core/runtime/durable-files.ts'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import { machineOf } from '../../core/runtime/machine.ts'
import { makePrivateFolder } from '../../core/runtime/private-files.ts'
import { seal, unseal } from '../../core/runtime/secrets.ts'
import { type CertificateKey, claimOrder, endOrder, sealedCertificate } from '../../core/state/nodes/acme.ts'
import { AcmeRefusal, type ChallengeType, obtainCertificate, type Present } from '../acme/client.ts'
import { SharedProofs } from '../acme/shared-proofs.ts'
import type { Services } from '../http/services.ts'
import type { Reconciler } from './reconciler.ts'

/** Rings tell of a new certificate and of a proof. This is for one that was lost. */
const PERIOD_MS = 60_000
/** A certificate is renewed in the last third of its time. */
const LEFT = 1 / 3

export interface AcmeService {
  readonly settings: NonNullable<Config['acme']>
  readonly type: ChallengeType
  readonly present: Present
  readonly http: HttpClient
}

/**
 * Obtains the certificate of the configured names by ACME, and renews it. Machines with the same names share it: the
 * first that finds it due orders it, and each writes it into its file. The supervisor sees the new file and passes it
 * to HTTPS, SIP over TLS and WSS.
 */
export function acmeCertificate(service: AcmeService): Reconciler {
  const { settings, type, present } = service
  const key: CertificateKey = { directory: settings.directory, names: [...settings.names].sort().join(' ') }
  const proofs = new SharedProofs({ key, type, present })
  let started = true
  return {
    name: 'acme_certificate',
    period_ms: PERIOD_MS,
    topics: ['certificates'],
    runs: 'each machine',
    async run(services) {
      const { state, clock, settings: own } = services
      const { machine_id } = machineOf(own.data_dir)
      await proofs.follow(services)
      const sealed = await sealedCertificate(state.db, key)
      const known = sealed === '' ? null : unseal(own.master_key, sealed)
      const due = isDue(known, settings.names, clock.now())
      const claimed = due && (await claimOrder(state, key, { machine_id, started, seen: sealed }))
      started = false
      const pem = claimed ? await order({ service, key, proofs }, services) : known
      if (pem !== null) keep(pem, services)
    },
    stop: () => proofs.stop(),
  }
}

interface Order {
  readonly service: AcmeService
  readonly key: CertificateKey
  readonly proofs: SharedProofs
}

/** Orders a certificate. Returns its key and chain; null when the authority refuses, which is logged. */
async function order({ service, key, proofs }: Order, services: Services): Promise<string | null> {
  const { state, settings, clock, log, bus } = services
  const { names, directory, email } = service.settings
  const folder = dirname(acmeFile(settings.data_dir))
  let pem: string | null = null
  try {
    makePrivateFolder(folder)
    const own = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })
    const present: Present = challenge => proofs.present(services, challenge)
    const how = { ...service, present, directory, email, key: createPrivateKey(accountKey(folder)), clock }
    const chain = await obtainCertificate(how, names, await signingRequest(folder, String(own), names))
    // One text, so that nobody sees a key beside the certificate of another.
    pem = `${own}${chain}`
    log.info({ names, valid_to: new X509Certificate(chain).validTo }, 'a certificate was issued')
  } catch (error) {
    if (!(error instanceof AcmeRefusal)) throw error
    log.error({ names, why: error.message }, 'no certificate was issued; the next attempt follows in an hour')
  } finally {
    await endOrder(state, key, pem === null ? null : seal(settings.master_key, pem))
    bus.ring('certificates')
  }
  return pem
}

/** Writes the certificate into the file of this machine. */
function keep(pem: string, { settings, log }: Services): void {
  const file = acmeFile(settings.data_dir)
  if (existsSync(file) && readFileSync(file, 'utf8') === pem) return
  makePrivateFolder(dirname(file))
  writeDurably(file, pem)
  log.info({ valid_to: new X509Certificate(pem).validTo }, 'a new certificate is in use')
}

/** Returns whether there is no certificate of exactly these names with enough time left. */
function isDue(pem: string | null, names: readonly string[], now_ms: number): boolean {
  if (pem === null) return true
  const { subjectAltName = '', validFrom, validTo } = new X509Certificate(pem)
  const [from_ms, to_ms] = [Date.parse(validFrom), Date.parse(validTo)]
  const certified = subjectAltName.split(', ').map(entry => entry.replace(/^DNS:/, ''))
  const same = certified.length === names.length && names.every(name => certified.includes(name))
  return !same || to_ms - now_ms < (to_ms - from_ms) * LEFT
}

/** The key of this machine's account at the authority, which the first order makes. */
function accountKey(folder: string): string {
  const file = join(folder, 'acme-account.pem')
  if (!existsSync(file)) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeDurably(file, String(privateKey.export({ type: 'pkcs8', format: 'pem' })))
  }
  return readFileSync(file, 'utf8')
}

/** Returns a signing request (PKCS #10, DER) for these names. openssl reads the key from a file, which is removed. */
async function signingRequest(folder: string, key: string, names: readonly string[]): Promise<Buffer> {
  const file = join(folder, 'acme.pem.key')
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

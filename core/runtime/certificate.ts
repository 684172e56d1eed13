import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { runBare } from './bare-child.ts'
import type { Config } from './config.ts'

const VALID_DAYS = '3650'

/** Loads the configured certificate, else a self-signed P-256 one for domain and address, created on first start. */
export async function loadCertificate(
  config: Pick<Config, 'tls' | 'data_dir' | 'domain' | 'host'>,
): Promise<{ readonly key: Buffer; readonly cert: Buffer }> {
  const files = config.tls ?? (await ownCertificate(config))
  return { key: readFileSync(files.key_file), cert: readFileSync(files.cert_file) }
}

async function ownCertificate({ data_dir, domain, host }: Pick<Config, 'data_dir' | 'domain' | 'host'>) {
  const folder = join(data_dir, 'tls')
  const files = { key_file: join(folder, 'key.pem'), cert_file: join(folder, 'cert.pem') }
  if (existsSync(files.key_file) && existsSync(files.cert_file)) return files
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const key = `${files.key_file}.new`
  const cert = `${files.cert_file}.new`
  const names = [`DNS:${domain}`, `DNS:*.sip.${domain}`, ...(isIP(host) === 0 ? [] : [`IP:${host}`])].join(',')
  const words = [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', VALID_DAYS],
    ...['-subj', `/CN=${domain}`, '-addext', `subjectAltName=${names}`, '-keyout', key, '-out', cert],
  ]
  const made = await runBare('openssl', words, { max_bytes: 1024 * 1024 })
  if (!made.ok) throw new Error(made.detail)
  chmodSync(key, 0o600)
  // A kill between the two renames leaves a key without a certificate; the next start creates both again.
  renameSync(key, files.key_file)
  renameSync(cert, files.cert_file)
  return files
}

/**
 * Returns the authorities that we trust to certify the peers that we connect to: Node's root certificates, and those in
 * `tls/peers.pem` of the data folder, which the operator provides.
 */
export function trustedPeers(data_dir: string): { readonly ca?: string[] } {
  const file = join(data_dir, 'tls', 'peers.pem')
  return existsSync(file) ? { ca: [...rootCertificates, readFileSync(file, 'utf8')] } : {}
}

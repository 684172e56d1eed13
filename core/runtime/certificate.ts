import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { runBare } from './bare-child.ts'
import type { Config } from './config.ts'

const VALID_DAYS = '3650'

/** The configured certificate, or one of our own, made on first start: self-signed, P-256, for domain and address. */
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
  // A kill between the two leaves the key without its certificate, and both are made anew.
  renameSync(key, files.key_file)
  renameSync(cert, files.cert_file)
  return files
}

/**
 * Whom we trust to vouch for peers that we connect to: the authorities of the machine, and those that the operator put
 * into `tls/peers.pem` of the data folder.
 */
export function trustedPeers(data_dir: string): { readonly ca?: string[] } {
  const file = join(data_dir, 'tls', 'peers.pem')
  return existsSync(file) ? { ca: [...rootCertificates, readFileSync(file, 'utf8')] } : {}
}

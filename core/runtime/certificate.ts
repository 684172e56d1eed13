import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { runBare } from './bare-child.ts'
import type { Config } from './config.ts'
import { renameDurably } from './durable-files.ts'
import { StartRefused } from './start-refused.ts'

const VALID_DAYS = '3650'

/** A certificate chain and its private key, both PEM. */
export interface KeyPair {
  readonly key: string
  readonly cert: string
}

/** Certificates and rules of TLS connections, in both directions. Plain data, because it passes between processes. */
export interface TlsOptions extends KeyPair {
  /** Further certificates by server name (SNI). */
  readonly names?: Readonly<Record<string, KeyPair>> | undefined
  /** CA certificates (PEM) for client certificates and, in addition to the machine's, for peers that we connect to. */
  readonly ca?: string | undefined
  /** Require peers that connect to present a certificate signed by `ca`. */
  readonly require_client_certificate?: boolean | undefined
  /** Further CA certificates for peers that we connect to. */
  readonly peers_ca?: string | undefined
  /** Refuse peers that we connect to when their chain or name does not verify. A destination's own setting wins. */
  readonly verify_peers?: boolean | undefined
}

type Wanted = Pick<Config, 'tls' | 'data_dir' | 'domain' | 'host'> & Partial<Pick<Config, 'acme'>>

/** The certificate that the platform got by ACME, with its chain and its key. */
export const acmeFile = (data_dir: string): string => join(data_dir, 'tls', 'acme.pem')

/**
 * Loads the configured certificate, or the one that ACME gave; until there is one, a self-signed P-256 one for domain
 * and address, created on first start.
 */
export async function loadCertificate(config: Wanted): Promise<KeyPair> {
  const issued = acmeFile(config.data_dir)
  if (config.acme && existsSync(issued)) return { key: read(issued), cert: read(issued) }
  const files = config.tls ?? (await ownCertificate(config))
  return { key: read(files.key_file), cert: read(files.cert_file) }
}

/** Returns the certificates (PEM) of `loadCertificate` as they stand on the disk, without their key. */
export function chainOnDisk({ tls, acme, data_dir }: Pick<Config, 'data_dir'> & Partial<Wanted>): string[] {
  const issued = acmeFile(data_dir)
  const file = acme && existsSync(issued) ? issued : (tls?.cert_file ?? join(data_dir, 'tls', 'cert.pem'))
  if (!existsSync(file)) return []
  return certificatesIn(readFileSync(file, 'utf8'))
}

/** Returns the certificates in a text, without the keys beside them. */
export const certificatesIn = (pem: string): string[] =>
  pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new StartRefused(`the certificate file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
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
  renameDurably(key, files.key_file)
  renameDurably(cert, files.cert_file)
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

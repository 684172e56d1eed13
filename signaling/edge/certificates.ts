import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadCertificate, type TlsOptions } from '../../core/runtime/certificate.ts'

/**
 * Loads the TLS options of the edge: the configured certificate or our own, and the files that the operator put into
 * the folder `tls` of the data folder:
 *
 * - `names/<server name>.pem`: a certificate with its chain and its private key. Peers that ask for this name (SNI,
 *   RFC 6066 §3) get it.
 * - `peers.pem`: CA certificates that we trust in addition to the machine's when we connect to peers.
 * - `clients.pem`: CA certificates. If the file exists, peers that connect must present a certificate signed by one of
 *   them (RFC 5922 §4).
 */
export async function tlsOptions(config: Parameters<typeof loadCertificate>[0]): Promise<TlsOptions> {
  const own = await loadCertificate(config)
  const folder = join(config.data_dir, 'tls', 'names')
  const files = existsSync(folder) ? readdirSync(folder).filter(file => file.endsWith('.pem')) : []
  const names = Object.fromEntries(
    files.sort().map(file => {
      const pem = readFileSync(join(folder, file), 'utf8')
      return [file.slice(0, -'.pem'.length), { key: pem, cert: pem }]
    }),
  )
  const clients = join(config.data_dir, 'tls', 'clients.pem')
  const peers = join(config.data_dir, 'tls', 'peers.pem')
  const outbound = { verify_peers: true, ...(existsSync(peers) ? { peers_ca: readFileSync(peers, 'utf8') } : {}) }
  if (!existsSync(clients)) return { ...own, ...outbound, names }
  return { ...own, ...outbound, names, ca: readFileSync(clients, 'utf8'), require_client_certificate: true }
}

import { createServer as createTcpServer, isIP, type Server, type Socket } from 'node:net'
import {
  type ConnectionOptions,
  type TlsOptions as NodeTlsOptions,
  rootCertificates,
  type TLSSocket,
  type Server as TlsServer,
} from 'node:tls'
import type { TlsVerification } from '../../../core/domain/network/tls-verification.ts'
import { fingerprintOf, namesProved, wrongName } from '../../../core/runtime/sip/peer-names.ts'
import { peek } from './peek.ts'

// TLS listening points. Each has one certificate, or one for each server name that a peer may request.

export interface TlsOptions {
  /** PEM. */
  readonly key: string | Buffer
  readonly cert: string | Buffer
  /** Further certificates by server name (SNI). */
  readonly names?: ReadonlyMap<string, { readonly key: string | Buffer; readonly cert: string | Buffer }> | undefined
  /** CA certificates for client certificates and, in addition to the machine's, for peers that we connect to. */
  readonly ca?: string | Buffer | undefined
  /** Require peers that connect to present a certificate signed by `ca`. */
  readonly require_client_certificate?: boolean | undefined
  /** Further CA certificates for peers that we connect to. */
  readonly peers_ca?: string | Buffer | undefined
  /** Refuse peers that we connect to when their chain or name does not verify. A destination's own setting wins. */
  readonly verify_peers?: boolean | undefined
}

/**
 * Combines the TLS or HTTPS servers that `make` returns into one server, which does not listen yet. Each server name
 * has a separate TLS server, because with Node's SNICallback the default certificate wins when the two have keys of
 * different types. The caller must bound the time of a handshake.
 */
export function secureServer(tls: TlsOptions, make: (options: NodeTlsOptions) => TlsServer): Server {
  const one = (pair: { readonly key: string | Buffer; readonly cert: string | Buffer }): Server => {
    const server = make({
      key: pair.key,
      cert: pair.cert,
      ...(tls.ca === undefined ? {} : { ca: tls.ca }),
      requestCert: tls.require_client_certificate ?? false,
      rejectUnauthorized: tls.require_client_certificate ?? false,
      minVersion: 'TLSv1.2',
    })
    server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
    return server
  }
  const standard = one(tls)
  const named = new Map([...(tls.names ?? [])].map(([name, pair]) => [name.toLowerCase(), one(pair)]))
  if (named.size === 0) return standard
  return createTcpServer({ noDelay: true }, socket => {
    peek(socket, serverName, name => (named.get(name) ?? standard).emit('connection', socket))
  })
}

/** A ClientHello is one record of at most 2^14 bytes (RFC 8446 §5.1) after a header of 5 bytes. */
const MAX_HELLO_BYTES = 5 + 16_384

/**
 * Returns the server name that a ClientHello requests, in lower case (RFC 8446 §4.1.2, RFC 6066 §3). Returns '' when it
 * requests none or the bytes are not a ClientHello; undefined when more bytes are needed.
 */
export function serverName(bytes: Buffer): string | undefined {
  if (bytes.length < 5) return undefined
  const record_end = 5 + bytes.readUInt16BE(3)
  // 22: handshake; 1: ClientHello.
  if (bytes[0] !== 22 || record_end > MAX_HELLO_BYTES) return ''
  if (bytes.length < record_end) return undefined
  const hello = bytes.subarray(5, record_end)
  if (hello[0] !== 1) return ''
  try {
    // Type and length (4), version (2), random (32), then three length-prefixed fields.
    let at = 38
    at += 1 + hello.readUInt8(at)
    at += 2 + hello.readUInt16BE(at)
    at += 1 + hello.readUInt8(at)
    const end = at + 2 + hello.readUInt16BE(at)
    at += 2
    while (at + 4 <= end) {
      const length = hello.readUInt16BE(at + 2)
      if (hello.readUInt16BE(at) === 0) return nameIn(hello.subarray(at + 4, at + 4 + length))
      at += 4 + length
    }
    return ''
  } catch (error) {
    // A length points beyond the record. The handshake will fail and report it.
    if (error instanceof RangeError) return ''
    throw error
  }
}

// Length of the list (2), type of the name (1; 0 is a host), length of the name (2), name.
function nameIn(extension: Buffer): string {
  if (extension.readUInt8(2) !== 0) return ''
  return extension.toString('latin1', 5, 5 + extension.readUInt16BE(3)).toLowerCase()
}

/** Returns the options of a TLS connection to a peer whose certificate must prove `server_name`. */
export function peerOptions(
  tls: TlsOptions | undefined,
  { mode }: TlsVerification,
  server_name: string | undefined,
): ConnectionOptions {
  const further = [tls?.ca, tls?.peers_ca].filter(ca => ca !== undefined)
  const name = server_name !== undefined && isIP(server_name) === 0 ? server_name : undefined
  return {
    rejectUnauthorized: mode === 'required',
    checkServerIdentity: (host, certificate) => wrongName(server_name ?? host, certificate),
    ...(name === undefined ? {} : { servername: name }),
    ...(tls ? { key: tls.key, cert: tls.cert } : {}),
    ...(further.length === 0 ? {} : { ca: [...rootCertificates, ...further] }),
  }
}

/** Returns an error when the certificate is not the pinned one; undefined when it is, or when none is pinned. */
export function wrongPin(socket: TLSSocket, verification: TlsVerification): Error | undefined {
  if (verification.mode !== 'pinned') return undefined
  const shown = fingerprintOf(socket.getPeerCertificate())
  return shown === verification.fingerprint
    ? undefined
    : new Error(`the certificate ${shown ?? ''} is not the pinned one`)
}

/** What a peer proved: a name, or possession of a certificate's key. Connections are keyed by this proof. */
export const proofOfName = (name: string): string => `name ${name.toLowerCase()}`
export const proofOfPin = (fingerprint: string): string => `pin ${fingerprint}`

/** Returns everything that the certificate of a peer that connected to us proves. */
export function certifiedBy(socket: TLSSocket): string[] {
  if (!socket.authorized) return []
  const certificate = socket.getPeerCertificate()
  return [...namesProved(certificate).map(proofOfName), proofOfPin(fingerprintOf(certificate) ?? '')]
}

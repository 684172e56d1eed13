import { createServer as createTcpServer, isIP, type Server, type Socket } from 'node:net'
import {
  type ConnectionOptions,
  type TlsOptions as NodeTlsOptions,
  rootCertificates,
  type TLSSocket,
  type Server as TlsServer,
} from 'node:tls'
import type { TlsVerification } from '../../../core/domain/network/tls-verification.ts'
import type { KeyPair, TlsOptions } from '../../../core/runtime/certificate.ts'
import { certificateFingerprint, namesProved, wrongName } from '../../../core/runtime/sip/peer-names.ts'
import { peek } from './peek.ts'

// TLS listening points. Each has one certificate, or one for each server name that a peer may request.

/**
 * One server of TLS or HTTPS servers that `make` returns: one for the standard certificate, and one for each server
 * name, because with Node's SNICallback the default certificate wins when the two have keys of different types. The
 * caller makes `server` listen, and must bound the time of a handshake.
 */
export class SecureServer {
  readonly server: Server
  readonly #make: (options: NodeTlsOptions) => TlsServer
  #standard: TlsServer
  #named: ReadonlyMap<string, TlsServer>

  constructor(tls: TlsOptions, make: (options: NodeTlsOptions) => TlsServer) {
    this.#make = make
    this.#standard = this.#one(tls, tls)
    this.#named = this.#all(tls)
    this.server = createTcpServer({ noDelay: true, allowHalfOpen: true }, socket => this.take(socket))
  }

  /** Serves a connection. */
  take(socket: Socket): void {
    const [standard, named] = [this.#standard, this.#named]
    if (named.size === 0) standard.emit('connection', socket)
    else peek(socket, serverName, name => (named.get(name) ?? standard).emit('connection', socket))
  }

  /** Handshakes from now on use these certificates and rules. Open connections stay. */
  renew(tls: TlsOptions): void {
    const [standard, named] = [this.#one(tls, tls), this.#all(tls)]
    this.#standard = standard
    this.#named = named
  }

  #all(tls: TlsOptions): ReadonlyMap<string, TlsServer> {
    return new Map(Object.entries(tls.names ?? {}).map(([name, pair]) => [name.toLowerCase(), this.#one(tls, pair)]))
  }

  #one(tls: TlsOptions, pair: KeyPair): TlsServer {
    const server = this.#make({
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
  const shown = certificateFingerprint(socket.getPeerCertificate())
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
  return [...namesProved(certificate).map(proofOfName), proofOfPin(certificateFingerprint(certificate) ?? '')]
}

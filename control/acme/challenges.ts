import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import { runBare } from '../../core/runtime/bare-child.ts'
import type { Present } from './client.ts'

const HTTP_PATH = '/.well-known/acme-challenge/'
const SILENCE_MS = 10_000
/** Strangers hold no more connections than this to the port of a proof. */
const MAX_VISITORS = 500

/**
 * HTTP-01 (RFC 8555 §8.3): serves key authorizations as plain text. The authority asks at port 80, which is open only
 * while there is one.
 */
export class HttpChallenges {
  readonly #host: string
  readonly #port: number
  /** Key authorizations by path. */
  readonly #answers = new Map<string, string>()
  #server: Promise<Server> | null = null

  constructor(host: string, port: number) {
    this.#host = host
    this.#port = port
  }

  readonly present: Present = async ({ token, key_authorization }) => {
    const path = HTTP_PATH + token
    this.#answers.set(path, key_authorization)
    const withdraw = async (): Promise<void> => {
      this.#answers.delete(path)
      if (this.#answers.size === 0) await this.#close()
    }
    try {
      this.#server ??= this.#listen()
      await this.#server
    } catch (error) {
      await withdraw()
      throw error
    }
    return withdraw
  }

  #listen(): Promise<Server> {
    const limits = { requestTimeout: SILENCE_MS, headersTimeout: SILENCE_MS, connectionsCheckingInterval: 1000 }
    const server = createServer(limits, (request, response) => {
      const found = this.#answers.get(request.url ?? '')
      response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'text/plain', connection: 'close' })
      response.end(found)
    })
    server.maxConnections = MAX_VISITORS
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.#port, this.#host, () => resolve(server))
    })
  }

  async #close(): Promise<void> {
    const server = await this.#server?.catch(() => undefined)
    this.#server = null
    server?.close()
    server?.closeAllConnections()
  }
}

/** The protocol by which an authority marks its connection (RFC 8737 §3), as it stands in a ClientHello. */
const ALPN = 'acme-tls/1'
const MARK = Buffer.concat([Buffer.from([ALPN.length]), Buffer.from(ALPN)])

/** A record of TLS with a handshake message, and its header (RFC 8446 §5.1). */
const HANDSHAKE = 22
const HEADER_BYTES = 5
const MAX_RECORD_BYTES = HEADER_BYTES + 2 ** 14

/** Returns whether the first bytes of a connection hold the whole record of a ClientHello, or are none. */
const isWhole = (bytes: Buffer): boolean =>
  bytes[0] !== HANDSHAKE ||
  bytes.length >= MAX_RECORD_BYTES ||
  (bytes.length >= HEADER_BYTES && bytes.length >= HEADER_BYTES + bytes.readUInt16BE(3))

/** The connections of authorities to a TLS port: none, but while a challenge is open. */
export class TlsChallenges {
  readonly #contexts = new Map<string, SecureContext>()
  readonly #patience_ms: number

  /** `patience_ms` is how long a connection may take to send its ClientHello, and an authority's may last. */
  constructor(patience_ms: number) {
    this.#patience_ms = patience_ms
  }

  /** TLS-ALPN-01 (RFC 8737): a certificate of our own with the digest of the key authorization. */
  readonly present: Present = async ({ name, key_authorization }) => {
    const pem = await challengeCertificate(name, key_authorization)
    this.#contexts.set(name, createSecureContext({ key: pem, cert: pem }))
    return () => void this.#contexts.delete(name)
  }

  /** Takes a new connection that belongs to an authority; `otherwise` gets any other, untouched. */
  take(socket: Socket, otherwise: () => void): void {
    if (this.#contexts.size === 0) {
      otherwise()
      return
    }
    // A stranger may ask for a proof and then stand still.
    const timer = setTimeout(() => socket.destroy(), this.#patience_ms)
    const over = (): void => clearTimeout(timer)
    socket.once('error', over).once('close', over)
    let hello = Buffer.alloc(0)
    // A ClientHello with keys that withstand quantum computers comes in two packets.
    const look = (): void => {
      for (let part = socket.read(); part !== null; part = socket.read()) hello = Buffer.concat([hello, part])
      if (!isWhole(hello)) return
      socket.off('readable', look)
      socket.unshift(hello)
      if (hello.includes(MARK)) {
        this.#answer(socket)
        return
      }
      over()
      socket.off('error', over).off('close', over)
      otherwise()
    }
    socket.on('readable', look)
  }

  #answer(socket: Socket): void {
    const answered = new TLSSocket(socket, {
      isServer: true,
      ALPNProtocols: [ALPN],
      SNICallback: (name, done) => done(null, this.#contexts.get(name)),
    })
    answered.on('error', () => socket.destroy())
    answered.on('secure', () => answered.end())
  }
}

/** Returns a certificate and its key (PEM) with the extension of RFC 8737 §3. */
async function challengeCertificate(name: string, key_authorization: string): Promise<string> {
  const digest = createHash('sha256').update(key_authorization).digest('hex')
  const words = [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', '/CN=acme', '-addext', `subjectAltName=DNS:${name}`],
    // id-pe-acmeIdentifier: an OCTET STRING of the digest.
    ...['-addext', `1.3.6.1.5.5.7.1.31=critical,DER:0420${digest}`, '-keyout', '-', '-out', '-'],
  ]
  const made = await runBare('openssl', words, { max_bytes: 64 * 1024 })
  if (!made.ok) throw new Error(made.detail)
  return made.stdout.toString('utf8')
}

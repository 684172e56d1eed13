import type { FetchError } from '../../domain/webhooks/errors.ts'

/** The reason for a failed exchange. Thrown in streams and sockets; `exchange` turns it into a value. */
export class HttpError extends Error {
  override readonly name = 'Failure'
  readonly error: FetchError

  constructor(error: FetchError, detail: string) {
    super(detail)
    this.error = error
  }
}

const TLS_NAME = new Set(['ERR_TLS_CERT_ALTNAME_INVALID', 'HOSTNAME_MISMATCH'])
const TLS_EXPIRED = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])
const TLS_UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_UNTRUSTED',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_CHAIN_TOO_LONG',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
])

type Phase = 'connect' | 'tls' | 'exchange'

/** Classifies errors of Node, OpenSSL, undici and zlib. `phase` disambiguates codes with several meanings. */
export function asFailure(cause: unknown, phase: Phase): HttpError {
  if (cause instanceof HttpError) return cause
  const {
    code: given,
    message = String(cause),
    name = '',
  }: Partial<NodeJS.ErrnoException> = cause instanceof Error ? cause : {}
  // The error of an AbortSignal has a number.
  const code = typeof given === 'string' ? given : ''
  const detail = message.includes(code) ? message : `${code}: ${message}`
  if (TLS_NAME.has(code)) return new HttpError('tls_name', detail)
  if (TLS_EXPIRED.has(code)) return new HttpError('tls_expired', detail)
  if (TLS_UNTRUSTED.has(code)) return new HttpError('tls_untrusted', detail)
  if (phase === 'tls' || code.startsWith('ERR_SSL_')) return new HttpError('tls', detail)
  if (code === 'ECONNREFUSED') return new HttpError('refused', detail)
  if (code === 'ETIMEDOUT' && phase === 'connect') return new HttpError('connect_timeout', detail)
  if (name === 'HTTPParserError' || /^(Z_|ERR_BROTLI|ERR__ERROR)/.test(code) || PROTOCOL.has(code))
    return new HttpError('protocol', detail)
  // undici reports a response that it cannot accept (unrequested 101, 100 without Expect) as a socket error.
  if (code === 'UND_ERR_SOCKET' && /^bad (response|upgrade)$/.test(message)) return new HttpError('protocol', detail)
  return new HttpError('network', detail)
}

const PROTOCOL = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_INVALID_ARG',
  'ERR_INVALID_ARG_VALUE',
  // A response that switches protocols without an Upgrade header breaks an assertion in undici's parser.
  'ERR_ASSERTION',
])

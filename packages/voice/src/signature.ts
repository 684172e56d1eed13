import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

/** A request as it came, before a framework changed it. */
export interface SignedRequest {
  /** Auth token of the voice account; for events the signing secret of the webhook endpoint. */
  readonly authToken: string
  /** The address that the platform was told to call: behind a proxy, the public one. With the query. */
  readonly url: string
  /** Names in any case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The body as it came, in bytes or text; empty for a GET. */
  readonly body?: string | Uint8Array
  /** How old a request may be, in seconds; 300 unless given. */
  readonly toleranceSeconds?: number
  /** The present, in milliseconds since 1970. */
  readonly now?: number
}

/**
 * Reports whether a request comes from the platform and is not older than allowed, by `X-Strowger-Signature`: hex
 * HMAC-SHA256 of `<t>.<url><body>`, keyed with the auth token.
 */
export function verifyRequest({
  authToken,
  url,
  headers,
  body = '',
  toleranceSeconds = 300,
  now,
}: SignedRequest): boolean {
  const [, time = '', signatures = ''] =
    /^t=(\d{1,15})((?:,v1=[0-9a-f]{64}){1,2})$/.exec(headerOf(headers, 'x-strowger-signature')) ?? []
  if (time === '' || Math.abs((now ?? Date.now()) / 1000 - Number(time)) > toleranceSeconds) return false
  const hmac = createHmac('sha256', authToken).update(`${time}.${url}`).update(body)
  const expected = hmac.digest('hex')
  // After a rotation of a webhook endpoint's secret there are two signatures, one by each secret.
  return signatures.split(',v1=').some(signature => equal(expected, signature))
}

/**
 * Reports whether the handshake of a WebSocket comes from the platform, by `X-Twilio-Signature`: base64 HMAC-SHA1 of the
 * `ws(s)://` URL as the document has it. It has no time: put a word of your own, good for one call, into the query.
 */
export function verifyHandshake({
  authToken,
  url,
  headers,
}: Pick<SignedRequest, 'authToken' | 'url' | 'headers'>): boolean {
  const expected = createHmac('sha1', authToken).update(url).digest('base64')
  return equal(expected, headerOf(headers, 'x-twilio-signature'))
}

function headerOf(headers: SignedRequest['headers'], wanted: string): string {
  for (const [name, value] of Object.entries(headers))
    if (name.toLowerCase() === wanted) return typeof value === 'string' ? value : (value?.[0] ?? '')
  return ''
}

/** Compares hashes of both texts, so that neither length nor content shows in the time. */
function equal(one: string, other: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(one), hash(other))
}

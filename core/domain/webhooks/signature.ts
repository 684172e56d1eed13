import { withParameters } from './target.ts'

/** Parameters in sending order; a list is the same name repeated. */
export type Parameters = readonly (readonly [name: string, value: string])[]

/** `application/x-www-form-urlencoded`, UTF-8. */
export const encodeParameters = (parameters: Parameters): string =>
  new URLSearchParams(parameters.map(([name, value]): [string, string] => [name, value])).toString()

/**
 * Text that `X-Twilio-Signature` is the base64 HMAC-SHA1 of (key: the auth token): the URL as it leaves, then every
 * form parameter in ascending order, name and decoded value without separators; a repeated name counts each distinct
 * value once. For a GET and for a JSON body the list is empty. Receivers' libraries sort by UTF-16 unit, so we do too.
 */
export function signatureData(url: string, form: Parameters): string {
  const values = new Map<string, Set<string>>()
  for (const [name, value] of form) values.set(name, (values.get(name) ?? new Set()).add(value))
  return [...values.keys()].sort().reduce(
    (data, name) =>
      data +
      [...(values.get(name) ?? [])]
        .sort()
        .map(value => name + value)
        .join(''),
    url,
  )
}

/** Text that the neutral signature is the hex HMAC-SHA256 of; `timestamp` in seconds since 1970 bounds replays. */
export const timedSignatureData = (timestamp: number, url: string, body: string): string => `${timestamp}.${url}${body}`

/** Value of the neutral signature header. */
export const timedSignature = (timestamp: number, hmac_sha256_hex: string): string =>
  `t=${timestamp},v1=${hmac_sha256_hex}`

/** A JSON body is signed through its hash in the query. `sha256_hex` is of the raw body, lower case. */
export const withBodyHash = (url: string, sha256_hex: string): string => withParameters(url, `bodySHA256=${sha256_hex}`)

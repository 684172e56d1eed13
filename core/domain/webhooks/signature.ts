import { withParameters } from './target.ts'

/** Parameters in sending order. A list repeats the name. */
export type Parameters = readonly (readonly [name: string, value: string])[]

/** Encodes parameters as `application/x-www-form-urlencoded` in UTF-8. */
export const encodeParameters = (parameters: Parameters): string =>
  new URLSearchParams(parameters.map(([name, value]): [string, string] => [name, value])).toString()

/**
 * Returns the text whose base64 HMAC-SHA1 (key: the auth token) is `X-Twilio-Signature`: the URL as sent, then every
 * form parameter in ascending order, name and decoded value without separators. A repeated name includes each distinct
 * value once. For a GET and for a JSON body the list is empty. We sort by UTF-16 unit, like the receivers' libraries.
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

/** Returns the text of the neutral signature (hex HMAC-SHA256). `timestamp`, in seconds since 1970, limits replays. */
export const timedSignatureData = (timestamp: number, url: string, body: string): string => `${timestamp}.${url}${body}`

/** Returns the value of the neutral signature header. */
export const timedSignature = (timestamp: number, hmac_sha256_hex: string): string =>
  `t=${timestamp},v1=${hmac_sha256_hex}`

/** Adds the hash that signs a JSON body to the query. `sha256_hex` is that of the raw body, in lower case. */
export const withBodyHash = (url: string, sha256_hex: string): string => withParameters(url, `bodySHA256=${sha256_hex}`)

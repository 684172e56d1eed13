/** Why an outbound HTTP exchange failed. Logs, call events and error numbers derive from these names. */
export const FETCH_ERRORS = [
  'bad_url',
  'private_address',
  'dns',
  'connect_timeout',
  'refused',
  'tls',
  'tls_name',
  'tls_expired',
  'tls_untrusted',
  'read_timeout',
  'total_timeout',
  'too_large',
  'too_many_redirects',
  'bad_redirect',
  'protocol',
  'network',
  'aborted',
  'file',
] as const

export type FetchError = (typeof FETCH_ERRORS)[number]

/** The error number of the compatible form for each failure (shown as `ErrorCode` and in call events). */
const NUMBERS: Readonly<Record<FetchError, number>> = {
  bad_url: 11100,
  private_address: 11210,
  dns: 11210,
  connect_timeout: 11201,
  refused: 11202,
  tls: 11220,
  tls_name: 11235,
  tls_expired: 11236,
  tls_untrusted: 11237,
  // The form has no separate number for a server that stalls before the total time is over.
  read_timeout: 11200,
  total_timeout: 11203,
  too_large: 11750,
  too_many_redirects: 11215,
  bad_redirect: 11216,
  protocol: 11206,
  network: 11205,
  aborted: 11200,
  file: 12400,
}

/** Returns the number for an exchange without a response. */
export const fetchErrorNumber = (error: FetchError): number => NUMBERS[error]

/** Returns the number for a response outside 2xx, after redirects; null for a success. */
export const statusErrorNumber = (status: number): number | null => (status >= 200 && status < 300 ? null : 11217)

/** Other numbers that fetching documents and sending callbacks can raise. */
export const RETRY_POLICY_INVALID = 11243
export const CALLBACK_ANSWERED_WITH_ERROR = 15003

/** Why an outbound HTTP exchange came to nothing. One name each; logs, call events and error numbers derive from it. */
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

/** Error number of the compatible form for each way a fetch fails (shown as `ErrorCode` and in call events). */
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
  // The form has no number of its own for a silent server that leaves some of the total time.
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

/** Number for an exchange that ended without an answer. */
export const fetchErrorNumber = (error: FetchError): number => NUMBERS[error]

/** Number for an answer outside 2xx, after redirects; null when the status is a success. */
export const statusErrorNumber = (status: number): number | null => (status >= 200 && status < 300 ? null : 11217)

/** The other numbers that the fetching of documents and callbacks can raise. */
export const RETRY_POLICY_INVALID = 11243
export const CALLBACK_ANSWERED_WITH_ERROR = 15003

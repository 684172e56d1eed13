import type { HttpLimits } from './types.ts'

export const REQUEST_LIMITS: HttpLimits = {
  connect_timeout_ms: 5_000,
  read_timeout_ms: 15_000,
  total_timeout_ms: 15_000,
  max_bytes: 64 * 1024,
  max_redirects: 5,
}
export const DOWNLOAD_LIMITS: HttpLimits = { ...REQUEST_LIMITS, total_timeout_ms: 60_000, max_bytes: 32 * 1024 * 1024 }

export const withDefaults = (given: Partial<HttpLimits>, defaults: HttpLimits): HttpLimits => ({
  connect_timeout_ms: given.connect_timeout_ms ?? defaults.connect_timeout_ms,
  read_timeout_ms: given.read_timeout_ms ?? defaults.read_timeout_ms,
  total_timeout_ms: given.total_timeout_ms ?? defaults.total_timeout_ms,
  max_bytes: given.max_bytes ?? defaults.max_bytes,
  max_redirects: given.max_redirects ?? defaults.max_redirects,
})

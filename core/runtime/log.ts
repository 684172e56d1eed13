import { type DestinationStream, type Logger, pino } from 'pino'
import type { LogLevel } from './config.ts'
import { standardError } from './log-output.ts'

export type Log = Logger

/** Names whose values are redacted at the first three levels of a logged object. */
const SECRET_NAMES = [
  'authorization',
  'Authorization',
  'proxy-authorization',
  'password',
  'digest_password',
  'auth_token',
  'api_key',
  'secret',
  'token',
  'ha1',
  'ha1_md5',
  'ha1_sha256',
  'master_key',
  'drachtio_secret',
  'metrics_token',
  'sms_token',
  'cookie',
  'crypto_key',
  'inline_key',
] as const

/**
 * Creates the structured logger of a process. Every line about a call, trunk or request must carry its id; use
 * `log.child({ call_id })`.
 */
export function createLog(
  process_name: string,
  options: { log_level: LogLevel },
  destination?: DestinationStream,
): Log {
  const paths = SECRET_NAMES.flatMap(name => [name, `*.${name}`, `*.*.${name}`].map(quoteDashes))
  const settings = {
    level: options.log_level,
    base: { process: process_name },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths, censor: '[secret]' },
  }
  return pino(settings, destination ?? standardError)
}

const quoteDashes = (path: string): string =>
  path.includes('-') ? path.replace(/(^|\.)([^.]*-[^.]*)$/, (_all, _dot, name) => `["${name}"]`) : path

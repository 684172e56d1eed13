import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { smsRoute } from '../domain/alerts/notices.ts'
import { PORTS_REFUSED_BY_BROWSERS } from './browser-ports.ts'

/** Everything a process may know of its environment, read once at start and frozen. Nobody else reads `process.env`. */
export interface Config {
  /** Folder of the database, recordings, prompts, certificates and keys. */
  readonly data_dir: string
  /** Folder of sockets and pid files of the running processes, inside `data_dir`. */
  readonly run_dir: string
  /** Address that peers see in SIP and SDP, and of two the one that comes first. */
  readonly host: string
  /** Address that SIP, RTP and HTTP sockets are bound to. */
  readonly bind: string
  /** The same for SIP and RTP over the other family of addresses; null serves one family. */
  readonly second: { readonly host: string; readonly bind: string } | null
  readonly http_port: number
  readonly sip_port: number
  readonly sips_port: number
  readonly ws_port: number
  /** RTP and RTCP ports, both ends included. */
  readonly rtp_ports: { readonly first: number; readonly last: number }
  /** Domain of the trunks' signaling names. */
  readonly domain: string
  /** Public address of the HTTP APIs, without a trailing slash. */
  readonly base_url: string
  /** drachtio control endpoint; null starts the embedded edge. */
  readonly drachtio: { readonly host: string; readonly port: number } | null
  readonly drachtio_secret: string
  readonly sandbox: boolean
  /** Key (32 bytes) of values that must be kept readable: voice tokens, SIP passwords of carriers. */
  readonly master_key: Buffer
  /** CIDRs, or the word `loopback`, that outbound HTTP may reach although they are private. */
  readonly allow_private_webhooks: readonly string[]
  readonly log_level: LogLevel
  readonly g729: boolean
  /** Media packets by io_uring where the kernel and the sandbox allow it. */
  readonly io_uring: boolean
  readonly database_url: string | null
  readonly redis_url: string | null
  /** Threads of the media data plane. */
  readonly media_threads: number
  /** A call on which nobody has been heard for so long, and nobody holds, is ended. */
  readonly dead_call_seconds: number
  /** How long calls may go on after the platform is told to stop. */
  readonly drain_seconds: number
  /** Bytes of recordings that a project may keep; null is no limit. */
  readonly recordings_quota_bytes: number | null
  /** Days that logs of scripts are kept for a replay: they hold documents and typed keys. 0 keeps none. */
  readonly run_log_days: number
  /** Mail server for alerts; null: no e-mail is sent. Holds a password: never logged. */
  readonly smtp_url: string | null
  readonly smtp_from: string
  /** Provider of short messages: an HTTP endpoint, and its token; null: none are sent. */
  readonly sms_url: string | null
  readonly sms_token: string | null
  /** Collector of traces (OTLP over HTTP); null: no traces. */
  readonly otlp_url: string | null
  /** Text to speech over HTTP in place of espeak-ng; null is espeak-ng. */
  readonly speech_url: string | null
  /** Speech recognition of live calls, ws(s) or http(s); null: there is none. */
  readonly recognizer_url: string | null
  /** Transcription of recordings, http(s); null: there is none. */
  readonly transcriber_url: string | null
  /** SIP recording servers by the name that a document's connectorName gives. */
  readonly siprec: readonly SiprecConnector[]
  /** S3-compatible storage of finished recordings; null keeps them in `data_dir`. */
  readonly s3: S3Config | null
  /** Collector that gets the SIP messages of all calls by HEP v3 over UDP; null sends none. */
  readonly hep: {
    readonly host: string
    readonly port: number
    /** Capture agent id. */
    readonly id: number
    readonly password: string | null
  } | null
  /** Own certificate and key for SIP over TLS and WSS; null makes one in `data_dir` on first start. */
  readonly tls: { readonly cert_file: string; readonly key_file: string } | null
  /** Signed caller identity: what we sign with, and whom we trust to have signed; null when not configured. */
  readonly stir: {
    readonly signing: { readonly cert_file: string; readonly key_file: string; readonly x5u: string } | null
    readonly anchors_file: string | null
  }
}

export interface SiprecConnector {
  readonly name: string
  readonly uri: string
}

export interface S3Config {
  /** Without a trailing slash; buckets are addressed by path. */
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly access_key: string
  readonly secret_key: string
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
export type Environment = Readonly<Record<string, string | undefined>>

/** A variable whose value makes no sense; the message names the variable, the value and what is expected. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

interface Variable<T> {
  readonly name: string
  readonly meaning: string
  readonly default: string
  readonly parse: (text: string, name: string) => T
}

const variable = <T>(
  name: string,
  fallback: string,
  meaning: string,
  parse: (text: string, name: string) => T,
): Variable<T> => ({ name, meaning, default: fallback, parse })

const refuse = (name: string, value: string, expected: string): never => {
  throw new ConfigError(`${name}=${value}: ${expected}`)
}

const text = (value: string): string => value
const optional = (value: string): string | null => (value === '' ? null : value)

const port = (value: string, name: string): number => {
  const number = Number(value)
  if (!/^\d{1,5}$/.test(value) || number < 1 || number > 65535)
    refuse(name, value, 'a port is a number from 1 to 65535')
  return number
}

const httpPort = (value: string, name: string): number => {
  const number = port(value, name)
  if (PORTS_REFUSED_BY_BROWSERS.has(number))
    refuse(name, value, 'browsers refuse this port; choose another, such as 8080')
  return number
}

const portRange = (value: string, name: string): { first: number; last: number } => {
  const match = /^(\d{1,5})-(\d{1,5})$/.exec(value)
  const first = Number(match?.[1])
  const last = Number(match?.[2])
  if (!match || first < 1024 || last > 65535 || last - first < 3 || first % 2 !== 0)
    refuse(name, value, 'a range is FIRST-LAST within 1024-65535, FIRST even, with at least two port pairs')
  return { first, last }
}

/** One address, or one of each family; none of an empty text. */
const addresses = (value: string, name: string): readonly string[] => {
  if (value === '') return []
  const families = list(value).map(isIP)
  if (families.length === 0 || families.includes(0) || new Set(families).size < families.length)
    refuse(name, value, 'an IPv4 or IPv6 address is expected, or one of each')
  return list(value)
}

const flag = (value: string, name: string): boolean => {
  if (/^(on|true|yes|1)$/i.test(value)) return true
  if (/^(off|false|no|0)$/i.test(value)) return false
  return refuse(name, value, 'expected on or off')
}

const endpoint = (value: string, name: string): { host: string; port: number } | null => {
  if (value === '') return null
  const match = /^(?:\[([0-9a-f:]+)\]|([^:\s]+)):(\d{1,5})$/i.exec(value)
  if (!match) return refuse(name, value, 'expected HOST:PORT')
  return { host: match[1] ?? match[2] ?? '', port: port(match[3] ?? '', name) }
}

const LEVELS: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']
const level = (value: string, name: string): LogLevel =>
  LEVELS.find(known => known === value) ?? refuse(name, value, `expected one of ${LEVELS.join(', ')}`)

const domain = (value: string, name: string): string => {
  if (!/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(value)) refuse(name, value, 'expected a DNS name')
  return value.toLowerCase()
}

const threads = (value: string, name: string): number => {
  if (!/^\d{1,2}$/.test(value) || Number(value) < 1 || Number(value) > 64) refuse(name, value, 'expected 1 to 64')
  return Number(value)
}

const gigabytes = (value: string, name: string): number | null => {
  if (!/^\d{1,6}$/.test(value)) refuse(name, value, 'expected whole gigabytes, 0 for no limit')
  return value === '0' ? null : Number(value) * 1_000_000_000
}

const days = (value: string, name: string): number => {
  if (!/^\d{1,4}$/.test(value)) refuse(name, value, 'expected whole days, 0 to keep none')
  return Number(value)
}

// The media worker tells of silence every 10 s.
const deadCall = (value: string, name: string): number => {
  if (!/^\d{2,4}$/.test(value) || Number(value) < 10) refuse(name, value, 'expected 10 to 9999 seconds')
  return Number(value)
}

const drainSeconds = (value: string, name: string): number => {
  if (!/^\d{1,5}$/.test(value)) refuse(name, value, 'expected 0 to 99999 seconds')
  return Number(value)
}

const agentId = (value: string, name: string): number => {
  if (!/^\d{1,10}$/.test(value) || Number(value) > 0xffff_ffff) refuse(name, value, 'expected 0 to 4294967295')
  return Number(value)
}

const httpUrl = (value: string, name: string): string | null => {
  if (value === '') return null
  if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) refuse(name, value, 'expected an http(s) URL')
  return value.replace(/\/+$/, '')
}

const recognizerUrl = (value: string, name: string): string | null => {
  if (value === '') return null
  if (!URL.canParse(value) || !/^(https?|wss?):$/.test(new URL(value).protocol))
    refuse(name, value, 'expected a ws(s) or http(s) URL')
  return value
}

const connectors = (value: string, name: string): SiprecConnector[] =>
  list(value).map(item => {
    const match = /^([A-Za-z0-9_-]{1,64})=(sips?:[^\s<>]{1,255})$/.exec(item)
    return match ? { name: match[1] ?? '', uri: match[2] ?? '' } : refuse(name, item, 'expected NAME=SIP-URI, …')
  })

const smtpUrl = (value: string, name: string): string | null => {
  if (value === '') return null
  if (!URL.canParse(value) || !/^smtps?:$/.test(new URL(value).protocol) || new URL(value).hostname === '')
    // The value may hold a password, so that it is not repeated.
    refuse(name, '…', 'expected smtp://user:password@host:port or smtps://…')
  return value
}

const smsUrl = (value: string, name: string): string | null => {
  if (value === '') return null
  if (smsRoute(value) === null) refuse(name, value, 'expected an http(s) URL, sip:HOST:PORT or voice:')
  return value.replace(/\/+$/, '')
}

const mailbox = (value: string, name: string): string => {
  if (!/^[^@\s<>]{1,64}@[A-Za-z0-9.-]{1,189}$/.test(value)) refuse(name, value, 'an e-mail address is expected')
  return value
}

const list = (value: string): string[] => value.split(/[\s,]+/).filter(item => item !== '')

/** Every variable, with its meaning; `strowger doctor` prints this table and .env.example mirrors it. */
export const VARIABLES = {
  data: variable('STROWGER_DATA', './data', 'folder of the database, recordings, keys', text),
  host: variable(
    'STROWGER_HOST',
    '127.0.0.1',
    'address that peers see in SIP and SDP; with a comma, one IPv4 and one IPv6 address',
    addresses,
  ),
  bind: variable(
    'STROWGER_BIND',
    '',
    'address that sockets are bound to, one of each family; unset: STROWGER_HOST',
    addresses,
  ),
  http_port: variable('STROWGER_HTTP_PORT', '8080', 'HTTP port of the APIs and the console', httpPort),
  base_url: variable('STROWGER_BASE_URL', '', 'public address of the HTTP APIs; unset: http://HOST:HTTP_PORT', httpUrl),
  sip_port: variable('STROWGER_SIP_PORT', '5060', 'SIP port, UDP and TCP', port),
  sips_port: variable('STROWGER_SIPS_PORT', '5061', 'SIP port, TLS', port),
  ws_port: variable('STROWGER_WS_PORT', '5066', 'SIP port, WebSocket, plain and over TLS', port),
  rtp_ports: variable('STROWGER_RTP_PORTS', '20000-29999', 'UDP ports of RTP (even) and RTCP (odd)', portRange),
  domain: variable('STROWGER_DOMAIN', 'localhost', "domain of the trunks' signaling names", domain),
  drachtio: variable('STROWGER_DRACHTIO', '', 'HOST:PORT of a drachtio-server; unset: the embedded edge', endpoint),
  drachtio_secret: variable('STROWGER_DRACHTIO_SECRET', '', "secret of drachtio's control link", text),
  sandbox: variable('STROWGER_SANDBOX', 'on', 'the sandbox carrier plays the telephone network', flag),
  master_key: variable(
    'STROWGER_MASTER_KEY',
    '',
    '32 bytes as hex or base64; unset: a key file in the data folder',
    text,
  ),
  allow_private: variable(
    'STROWGER_ALLOW_PRIVATE_WEBHOOKS',
    'loopback',
    'private addresses that webhooks may reach: CIDRs, `loopback`, or `none`',
    list,
  ),
  log: variable('STROWGER_LOG', 'info', `log level: ${LEVELS.join(', ')}`, level),
  g729: variable('STROWGER_G729', 'on', 'use libbcg729 for G.729 when the machine has it', flag),
  io_uring: variable('STROWGER_IO_URING', 'on', 'media packets by io_uring where it is allowed; off: epoll', flag),
  media_threads: variable('STROWGER_MEDIA_THREADS', '1', 'threads of the media data plane', threads),
  dead_call: variable(
    'STROWGER_DEAD_CALL_SECONDS',
    '60',
    'seconds without media from anybody that end a call',
    deadCall,
  ),
  drain: variable('STROWGER_DRAIN_SECONDS', '3', 'seconds that calls may go on after SIGTERM or Ctrl-C', drainSeconds),
  recordings: variable('STROWGER_RECORDINGS_GB', '100', 'gigabytes of recordings of a project; 0: no limit', gigabytes),
  run_log_days: variable(
    'STROWGER_RUN_LOG_DAYS',
    '30',
    'days that logs of scripts are kept for `strowger replay` (documents and typed keys); 0: none',
    days,
  ),
  speech_url: variable('STROWGER_SPEECH_URL', '', 'text to speech over HTTP; unset: espeak-ng', httpUrl),
  recognizer_url: variable(
    'STROWGER_RECOGNIZER_URL',
    '',
    'speech recognition of live calls, ws(s) or http(s) (docs/operations.md); unset: none',
    recognizerUrl,
  ),
  transcriber_url: variable(
    'STROWGER_TRANSCRIBER_URL',
    '',
    'transcription of recordings, http(s); unset: STROWGER_RECOGNIZER_URL when that is http(s)',
    httpUrl,
  ),
  siprec: variable('STROWGER_SIPREC', '', 'SIP recording servers for <Siprec>: NAME=SIP-URI, …', connectors),
  s3_endpoint: variable('STROWGER_S3_ENDPOINT', '', 'S3-compatible storage of recordings; unset: data folder', httpUrl),
  s3_bucket: variable('STROWGER_S3_BUCKET', '', 'its bucket', optional),
  s3_region: variable('STROWGER_S3_REGION', 'us-east-1', 'its region', text),
  s3_access_key: variable('STROWGER_S3_ACCESS_KEY', '', 'its access key', optional),
  s3_secret_key: variable('STROWGER_S3_SECRET_KEY', '', 'its secret key', optional),
  smtp: variable('STROWGER_SMTP_URL', '', 'mail server for alerts, smtp(s)://user:password@host:port', smtpUrl),
  smtp_from: variable('STROWGER_SMTP_FROM', 'strowger@localhost', 'sender of alert mail', mailbox),
  sms_url: variable(
    'STROWGER_SMS_URL',
    '',
    'alert texts: http(s)://… (JSON {id, to, text}), sip:HOST:PORT (MESSAGE), voice:',
    smsUrl,
  ),
  sms_token: variable('STROWGER_SMS_TOKEN', '', 'bearer token of that endpoint', optional),
  otlp_url: variable('STROWGER_OTLP_URL', '', 'OpenTelemetry collector, such as http://127.0.0.1:4318', httpUrl),
  tls_cert: variable(
    'STROWGER_TLS_CERT',
    '',
    'PEM file of the certificate chain for TLS and WSS; unset: own',
    optional,
  ),
  tls_key: variable('STROWGER_TLS_KEY', '', 'PEM file of its private key', optional),
  stir_cert: variable(
    'STROWGER_STIR_CERT',
    '',
    'PEM file of the certificate that signs our callers (SHAKEN)',
    optional,
  ),
  stir_key: variable('STROWGER_STIR_KEY', '', 'PEM file of its P-256 private key', optional),
  stir_x5u: variable('STROWGER_STIR_X5U', '', 'public https address of that certificate', httpUrl),
  stir_ca: variable(
    'STROWGER_STIR_CA',
    '',
    'PEM file of trust anchors; set: callers signed by carriers are verified',
    optional,
  ),
  hep: variable('STROWGER_HEP', '', 'HOST:PORT of a HEP v3 collector (Homer) for SIP messages; unset: none', endpoint),
  hep_id: variable('STROWGER_HEP_ID', '1', 'capture agent id in HEP messages', agentId),
  hep_password: variable('STROWGER_HEP_PASSWORD', '', 'password that the HEP collector wants', optional),
  database_url: variable('STROWGER_DATABASE_URL', '', 'PostgreSQL in place of SQLite', optional),
  redis_url: variable('STROWGER_REDIS_URL', '', 'Redis for ceilings and wake-ups', optional),
} as const

const read = <T>(env: Environment, wanted: Variable<T>): T => {
  const given = env[wanted.name]?.trim()
  return wanted.parse(given === undefined || given === '' ? wanted.default : given, wanted.name)
}

/** Reads the environment; throws ConfigError naming the variable at the first value that makes no sense. */
export function loadConfig(env: Environment): Config {
  const v = VARIABLES
  const data_dir = resolve(read(env, v.data))
  const [first, second = null] = bound(read(env, v.host), read(env, v.bind))
  const { host } = first
  const config = {
    data_dir,
    run_dir: join(data_dir, 'run'),
    ...first,
    second,
    http_port: read(env, v.http_port),
    sip_port: read(env, v.sip_port),
    sips_port: read(env, v.sips_port),
    ws_port: read(env, v.ws_port),
    rtp_ports: read(env, v.rtp_ports),
    domain: read(env, v.domain),
    drachtio: read(env, v.drachtio),
    drachtio_secret: read(env, v.drachtio_secret),
    sandbox: read(env, v.sandbox),
    allow_private_webhooks: read(env, v.allow_private).filter(item => item !== 'none'),
    log_level: read(env, v.log),
    g729: read(env, v.g729),
    io_uring: read(env, v.io_uring),
    database_url: read(env, v.database_url),
    redis_url: read(env, v.redis_url),
    media_threads: read(env, v.media_threads),
    recordings_quota_bytes: read(env, v.recordings),
    dead_call_seconds: read(env, v.dead_call),
    drain_seconds: read(env, v.drain),
    run_log_days: read(env, v.run_log_days),
    smtp_url: read(env, v.smtp),
    smtp_from: read(env, v.smtp_from),
    sms_url: read(env, v.sms_url),
    sms_token: read(env, v.sms_token),
    otlp_url: read(env, v.otlp_url),
    speech_url: read(env, v.speech_url),
    ...recognition(read(env, v.recognizer_url), read(env, v.transcriber_url)),
    siprec: read(env, v.siprec),
    s3: storage(env),
    tls: tlsFiles(read(env, v.tls_cert), read(env, v.tls_key)),
    hep: collector(read(env, v.hep), read(env, v.hep_id), read(env, v.hep_password)),
    stir: stirFiles(env),
  }
  refuseSharedPorts(config)
  refuseUnbuilt(v.database_url.name, config.database_url)
  refuseUnbuilt(v.redis_url.name, config.redis_url)
  const base_url = read(env, v.base_url) ?? `http://${host.includes(':') ? `[${host}]` : host}:${config.http_port}`
  mkdirSync(config.run_dir, { recursive: true })
  return Object.freeze({ ...config, base_url, master_key: masterKey(read(env, v.master_key), data_dir) })
}

type Bound = NonNullable<Config['second']>

/** The addresses that peers see, each with the one of its family that sockets are bound to. */
function bound(hosts: readonly string[], binds: readonly string[]): readonly [Bound, Bound?] {
  const pairs = hosts.map(host => {
    const bind = binds.length === 0 ? host : binds.find(one => isIP(one) === isIP(host))
    if (bind === undefined)
      return refuse(VARIABLES.bind.name, binds.join(), `an address of the family of ${host} is expected`)
    return { host, bind }
  })
  return pairs as [Bound, Bound?]
}

const recognition = (recognizer_url: string | null, transcriber_url: string | null) => ({
  recognizer_url,
  transcriber_url: transcriber_url ?? (recognizer_url?.startsWith('http') ? recognizer_url : null),
})

function storage(env: Environment): S3Config | null {
  const v = VARIABLES
  const endpoint = read(env, v.s3_endpoint)
  if (endpoint === null) return null
  const needed = (wanted: Variable<string | null>): string => {
    const value = read(env, wanted)
    if (value === null) throw new ConfigError(`${wanted.name}: missing; STROWGER_S3_ENDPOINT needs it`)
    return value
  }
  return {
    endpoint,
    bucket: needed(v.s3_bucket),
    region: read(env, v.s3_region),
    access_key: needed(v.s3_access_key),
    secret_key: needed(v.s3_secret_key),
  }
}

const collector = (at: { host: string; port: number } | null, id: number, password: string | null): Config['hep'] =>
  at && { ...at, id, password }

function tlsFiles(cert_file: string | null, key_file: string | null): Config['tls'] {
  if (cert_file === null && key_file === null) return null
  if (cert_file === null || key_file === null)
    throw new ConfigError('STROWGER_TLS_CERT and STROWGER_TLS_KEY go together')
  return { cert_file, key_file }
}

function stirFiles(env: Environment): Config['stir'] {
  const v = VARIABLES
  const [cert_file, key_file, x5u] = [read(env, v.stir_cert), read(env, v.stir_key), read(env, v.stir_x5u)]
  const anchors_file = read(env, v.stir_ca)
  if (cert_file === null && key_file === null && x5u === null) return { signing: null, anchors_file }
  if (cert_file === null || key_file === null || x5u === null)
    throw new ConfigError('STROWGER_STIR_CERT, STROWGER_STIR_KEY and STROWGER_STIR_X5U go together')
  if (!x5u.startsWith('https:')) refuse(v.stir_x5u.name, x5u, 'expected an https address (RFC 8225 §4.2)')
  return { signing: { cert_file, key_file, x5u }, anchors_file }
}

function refuseSharedPorts(config: Pick<Config, 'http_port' | 'sip_port' | 'sips_port' | 'ws_port' | 'rtp_ports'>) {
  const named = [
    ['STROWGER_HTTP_PORT', config.http_port],
    ['STROWGER_SIP_PORT', config.sip_port],
    ['STROWGER_SIPS_PORT', config.sips_port],
    ['STROWGER_WS_PORT', config.ws_port],
  ] as const
  for (const [name, value] of named) {
    const twin = named.find(([other, taken]) => other !== name && taken === value)
    if (twin) throw new ConfigError(`${name}=${value}: the same port as ${twin[0]}`)
    if (name === 'STROWGER_SIP_PORT' && value >= config.rtp_ports.first && value <= config.rtp_ports.last)
      throw new ConfigError(`${name}=${value}: inside STROWGER_RTP_PORTS`)
  }
}

/** A setting that names another service must not be accepted and ignored: what is not there yet is refused by name. */
function refuseUnbuilt(name: string, value: string | null) {
  if (value !== null) throw new ConfigError(`${name}: this version keeps its state in SQLite only; unset it`)
}

function masterKey(given: string, data_dir: string): Buffer {
  if (given !== '') {
    const key = /^[0-9a-f]{64}$/i.test(given) ? Buffer.from(given, 'hex') : Buffer.from(given, 'base64')
    if (key.length !== 32) throw new ConfigError('STROWGER_MASTER_KEY: expected 32 bytes as hex or base64')
    return key
  }
  const file = join(data_dir, 'master.key')
  if (!existsSync(file)) {
    mkdirSync(data_dir, { recursive: true })
    try {
      writeFileSync(file, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      // Two processes may start on an empty folder at once; the one that lost reads the winner's key.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  const key = Buffer.from(readFileSync(file, 'utf8').trim(), 'hex')
  if (key.length !== 32) throw new ConfigError(`${file}: expected 64 hexadecimal characters`)
  return key
}

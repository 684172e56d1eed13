import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { uriHost } from '../domain/identity/address.ts'
import type { Roles } from '../domain/machines/roles.ts'
import type { SpeechEngines } from '../domain/speech/engines.ts'
import { lineOnce, makePrivateFolder } from './private-files.ts'
import { speechEngines } from './speech-engines.ts'
import { ConfigError, type LogLevel, refuseValue, type SiprecConnector } from './variable-values.ts'
import { type Environment, read, VARIABLES, type Variable } from './variables.ts'

export { ConfigError, type LogLevel, VARIABLES }

/** The configuration of a process, read once from the environment and frozen. No other code reads `process.env`. */
export interface Config extends Settings {
  /** Key (32 bytes) that seals values which must be read again: voice tokens, SIP passwords of carriers. */
  readonly master_key: Buffer
}

/** The configuration without the master key. */
export interface Settings extends SpeechEngines {
  /** Folder of the database, recordings, certificates and keys. */
  readonly data_dir: string
  /** Folder of sockets and pid files of the running processes, inside `data_dir`. */
  readonly run_dir: string
  /** Address that peers see in SIP and SDP; the first one when there are two. */
  readonly host: string
  /** Address that SIP, RTP and HTTP sockets are bound to. */
  readonly bind: string
  /** The SIP and RTP address of the other family (IPv4 or IPv6); null serves one family. */
  readonly second: OwnAddress | null
  readonly http_port: number
  /** Port of HTTPS; null serves no TLS. `httpBindOf` tells whom `http_port` serves. */
  readonly https_port: number | null
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
  /** Whether a drachtio-server sends reliable provisional responses (RFC 3262). The embedded edge always does. */
  readonly drachtio_100rel: boolean
  readonly sandbox: boolean
  /** The first of the user ids that processes take when started as root; null: they remain root. */
  readonly users: number | null
  /** Keep files, programs and system calls from the processes that handle strangers' packets. */
  readonly confinement: boolean
  /** Whether every start prints the demo project's secrets, not only the first. */
  readonly print_secrets: boolean
  /** Private addresses that outbound HTTP may reach: CIDRs, or the word `loopback`. */
  readonly allow_private_webhooks: readonly string[]
  /** Proxies whose `X-Forwarded-*` headers count: CIDRs, or the word `loopback`. */
  readonly trusted_proxies: readonly string[]
  /** Networks from which operators may use /operator/v1. */
  readonly operator_sources: readonly string[]
  /** Private addresses that customers may send SIP to, in the same form. */
  readonly allow_private_peers: readonly string[]
  readonly log_level: LogLevel
  readonly g729: boolean
  /** Use io_uring for media packets where the kernel and the sandbox allow it. */
  readonly io_uring: boolean
  /** Receive latched media streams by a packet ring where the process has the right. */
  readonly media_packet_ring: boolean
  /** Run packet threads at real-time priority where the process has the right. */
  readonly media_realtime: boolean
  readonly database_url: string | null
  /** What this machine does; others that share its database do the rest. */
  readonly roles: Roles
  /** Where the edges of other machines reach this machine's; null: they do not. */
  readonly link: { readonly host: string; readonly port: number } | null
  /** What carries wake-ups between machines, and counts for their rate limits; null: the database does. */
  readonly redis_url: string | null
  /** Threads of the media data plane. */
  readonly media_threads: number
  /** A call without media from any side for this long ends, unless it is on hold. */
  readonly dead_call_seconds: number
  /** How long calls may continue after the platform receives the signal to stop. */
  readonly drain_seconds: number
  /** Bytes of recordings that a project may keep; null is no limit. */
  readonly recordings_quota_bytes: number | null
  /** Days for which run logs are kept for a replay. They hold documents. 0 keeps none. */
  readonly run_log_days: number
  /** Mail server for alerts; null sends no e-mail. Contains a password, so never log it. */
  readonly smtp_url: string | null
  readonly smtp_from: string
  /** Route for short messages, and the token of an HTTP endpoint; null sends none. */
  readonly sms_url: string | null
  readonly sms_token: string | null
  /** Bearer token of `GET /metrics` for other machines; null allows only this machine. */
  readonly metrics_token: string | null
  /** Trace collector (OTLP over HTTP); null sends no traces. */
  readonly otlp_url: string | null
  /** Speech recognizer for live calls, ws(s) or http(s); null when there is none. */
  readonly recognizer_url: string | null
  /** Transcriber of recordings, http(s); null when there is none. */
  readonly transcriber_url: string | null
  /** SIP recording servers, which documents choose by connectorName. */
  readonly siprec: readonly SiprecConnector[]
  /** S3-compatible storage of finished recordings; null keeps them in `data_dir`. */
  readonly s3: S3Config | null
  /** Collector of the SIP messages of all calls (HEP v3 over UDP); null sends none. */
  readonly hep: {
    readonly host: string
    readonly port: number
    /** Capture agent id. */
    readonly id: number
    readonly password: string | null
  } | null
  /** The operator's certificate and key for TLS and WSS; null creates one in `data_dir` on first start. */
  readonly tls: { readonly cert_file: string; readonly key_file: string } | null
  /** The certificate that the platform gets by itself; null: it gets none. */
  readonly acme: {
    readonly names: readonly string[]
    /** URL of the authority's directory. */
    readonly directory: string
    readonly email: string | null
    /** Port of HTTP-01; null proves by TLS-ALPN-01. */
    readonly http_port: number | null
  } | null
  /** Signed caller identity: our signing certificate, and the trust anchors of other signers. */
  readonly stir: {
    readonly signing: { readonly cert_file: string; readonly key_file: string; readonly x5u: string } | null
    readonly anchors_file: string | null
  }
}

/** One of our addresses: `host` is what peers see, `bind` what sockets bind to. */
interface OwnAddress {
  readonly host: string
  readonly bind: string
}

export interface S3Config {
  /** Without a trailing slash; buckets are addressed by path. */
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly access_key: string
  readonly secret_key: string
}

/** Loads the settings and the master key, and creates the key when there is none. @throws ConfigError */
export function loadConfig(env: Environment): Config {
  const settings = loadSettings(env)
  return Object.freeze({ ...settings, master_key: read(env, VARIABLES.master_key) ?? ownMasterKey(settings.data_dir) })
}

/** Loads the settings, and makes the folders of the data. @throws ConfigError */
export function loadSettings(env: Environment): Settings {
  const settings = readSettings(env)
  makePrivateFolder(settings.data_dir)
  makePrivateFolder(settings.run_dir)
  return settings
}

/** Reads the environment and touches no file. @throws ConfigError with a line for each invalid variable */
export function readSettings(env: Environment): Settings {
  const faults: string[] = []
  const attempt: Attempt = (work, otherwise) => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      faults.push(error.message)
      return otherwise
    }
  }
  // An invalid value counts as unset for the checks between variables, so that one start tells all faults.
  const invalid = Object.values(VARIABLES).filter(one => !attempt(() => isValid(env, one), false))
  const settings = settingsOf({ ...env, ...Object.fromEntries(invalid.map(({ name }) => [name, undefined])) }, attempt)
  if (faults.length > 0) throw new ConfigError(faults.join('\n'))
  return settings
}

const isValid = (env: Environment, one: Variable<unknown>): true => {
  read(env, one)
  return true
}

/** Does `work`; a ConfigError is kept for later, and `otherwise` returned. */
type Attempt = <T>(work: () => T, otherwise: T) => T

function settingsOf(env: Environment, attempt: Attempt): Settings {
  const v = VARIABLES
  const data_dir = resolve(read(env, v.data))
  const unbound: ReturnType<typeof bound> = [{ host: '', bind: '' }]
  const [first, second = null] = attempt(() => bound(read(env, v.host), read(env, v.bind)), unbound)
  const { host } = first
  const config = {
    data_dir,
    run_dir: join(data_dir, 'run'),
    ...first,
    second,
    http_port: read(env, v.http_port),
    https_port: read(env, v.https_port),
    sip_port: read(env, v.sip_port),
    sips_port: read(env, v.sips_port),
    ws_port: read(env, v.ws_port),
    rtp_ports: read(env, v.rtp_ports),
    domain: read(env, v.domain),
    drachtio: read(env, v.drachtio),
    drachtio_secret: read(env, v.drachtio_secret),
    drachtio_100rel: read(env, v.drachtio_100rel),
    sandbox: read(env, v.sandbox) ?? isLoopback(host),
    users: read(env, v.users),
    confinement: read(env, v.confinement),
    print_secrets: read(env, v.print_secrets),
    trusted_proxies: (read(env, v.trusted_proxies) ?? []).filter(item => item !== 'none'),
    operator_sources: read(env, v.operator_sources).filter(item => item !== 'none'),
    allow_private_webhooks: read(env, v.allow_private).filter(item => item !== 'none'),
    allow_private_peers: peers(read(env, v.allow_private_peers), host),
    log_level: read(env, v.log),
    ...mediaPlane(env),
    ...sharing(env),
    recordings_quota_bytes: read(env, v.recordings),
    dead_call_seconds: read(env, v.dead_call),
    drain_seconds: read(env, v.drain),
    run_log_days: read(env, v.run_log_days),
    smtp_url: read(env, v.smtp),
    smtp_from: read(env, v.smtp_from),
    sms_url: read(env, v.sms_url),
    sms_token: read(env, v.sms_token),
    metrics_token: read(env, v.metrics_token),
    otlp_url: read(env, v.otlp_url),
    ...speechEngines(env),
    ...recognition(read(env, v.recognizer_url), read(env, v.transcriber_url)),
    siprec: read(env, v.siprec),
    s3: attempt(() => storage(env), null),
    ...certificates(env, attempt),
    hep: collector(read(env, v.hep), read(env, v.hep_id), read(env, v.hep_password)),
    stir: attempt(() => stirFiles(env), { signing: null, anchors_file: null }),
  }
  attempt(() => refuseSharedPorts(config), undefined)
  attempt(() => refuseUnproved(config), undefined)
  attempt(() => refuseAlone(config), undefined)
  const { http_port, https_port } = config
  const own = https_port === null ? `http://${uriHost(host)}:${http_port}` : `https://${uriHost(host)}:${https_port}`
  const base_url = read(env, v.base_url) ?? own
  return Object.freeze({ ...config, base_url })
}

const mediaPlane = (env: Environment) => ({
  g729: read(env, VARIABLES.g729),
  io_uring: read(env, VARIABLES.io_uring),
  media_packet_ring: read(env, VARIABLES.media_packet_ring),
  media_realtime: read(env, VARIABLES.media_realtime),
  media_threads: read(env, VARIABLES.media_threads),
})

/** What decides where the HTTP port listens. */
type HttpPlace = Pick<Config, 'bind' | 'https_port' | 'base_url' | 'trusted_proxies'>

/**
 * Returns the address that the HTTP port is bound to. With HTTPS, by us or by proxies of this machine alone, nothing
 * leaves this machine in clear.
 */
export const httpBindOf = (config: HttpPlace): string =>
  config.https_port === null && !isBehindOwnProxy(config) ? config.bind : loopbackLike(config.bind)

/** A proxy of this machine finds us on loopback. Who binds all addresses is found there too, and wants the others. */
const isBehindOwnProxy = ({ bind, base_url, trusted_proxies }: HttpPlace): boolean =>
  base_url.startsWith('https:') &&
  trusted_proxies.length > 0 &&
  trusted_proxies.every(proxy => proxy === 'loopback' || isLoopback(proxy)) &&
  !isLoopback(bind) &&
  !isAny(bind)

/** Returns the address by which programs on this machine reach the HTTP APIs. It carries no TLS. */
export function localUrl(config: HttpPlace & Pick<Config, 'http_port'>): string {
  const bind = httpBindOf(config)
  return `http://${uriHost(isAny(bind) ? loopbackLike(bind) : bind)}:${config.http_port}`
}

const isAny = (bind: string): boolean => bind === '0.0.0.0' || (isIP(bind) === 6 && /^[0:]+$/.test(bind))

const loopbackLike = (address: string): string => (isIP(address) === 6 ? '::1' : '127.0.0.1')

/** Returns our addresses, one per served family. The first is that of `config.host`. */
export const addressesOf = ({ host, bind, second }: Pick<Config, 'host' | 'bind' | 'second'>): readonly OwnAddress[] =>
  second ? [{ host, bind }, second] : [{ host, bind }]

/** Pairs each address that peers see with the bind address of its family. */
function bound(hosts: readonly string[], binds: readonly string[]): readonly [OwnAddress, OwnAddress?] {
  const pairs = hosts.map(host => {
    const bind = binds.length === 0 ? host : binds.find(one => isIP(one) === isIP(host))
    if (bind === undefined)
      return refuseValue(VARIABLES.bind.name, binds.join(), `an address of the family of ${host} is expected`)
    return { host, bind }
  })
  return pairs as [OwnAddress, OwnAddress?]
}

/** Returns the allowed private peers. The default suits development: loopback, but only when we are on loopback too. */
const peers = (given: readonly string[] | null, host: string): readonly string[] =>
  given ? given.filter(item => item !== 'none') : isLoopback(host) ? ['loopback'] : []

const isLoopback = (host: string): boolean => /^(127\.|::1$)/.test(host)

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

const certificates = (env: Environment, attempt: Attempt) => ({
  tls: attempt(() => tlsFiles(read(env, VARIABLES.tls_cert), read(env, VARIABLES.tls_key)), null),
  acme: attempt(() => authority(env), null),
})

function authority(env: Environment): Config['acme'] {
  const v = VARIABLES
  const names = read(env, v.acme_names)
  if (names.length === 0) return null
  const [directory, email, http_port] = [read(env, v.acme_url), read(env, v.acme_email), read(env, v.acme_http_port)]
  return { names, directory, email, http_port }
}

function refuseUnproved({ acme, tls, https_port }: Pick<Config, 'acme' | 'tls' | 'https_port'>): void {
  if (!acme) return
  const given = acme.names.join()
  const { name } = VARIABLES.acme_names
  if (tls) refuseValue(name, given, 'STROWGER_TLS_CERT gives a certificate already')
  if (acme.http_port === null && https_port === null)
    refuseValue(name, given, 'the proof needs STROWGER_HTTPS_PORT or STROWGER_ACME_HTTP_PORT')
}

function stirFiles(env: Environment): Config['stir'] {
  const v = VARIABLES
  const [cert_file, key_file, x5u] = [read(env, v.stir_cert), read(env, v.stir_key), read(env, v.stir_x5u)]
  const anchors_file = read(env, v.stir_ca)
  if (cert_file === null && key_file === null && x5u === null) return { signing: null, anchors_file }
  if (cert_file === null || key_file === null || x5u === null)
    throw new ConfigError('STROWGER_STIR_CERT, STROWGER_STIR_KEY and STROWGER_STIR_X5U go together')
  if (!x5u.startsWith('https:')) refuseValue(v.stir_x5u.name, x5u, 'expected an https address (RFC 8225 §4.2)')
  return { signing: { cert_file, key_file, x5u }, anchors_file }
}

function refuseSharedPorts(
  config: Pick<Config, 'http_port' | 'https_port' | 'sip_port' | 'sips_port' | 'ws_port' | 'rtp_ports'>,
) {
  const named = [
    ['STROWGER_HTTP_PORT', config.http_port],
    ['STROWGER_HTTPS_PORT', config.https_port],
    ['STROWGER_SIP_PORT', config.sip_port],
    ['STROWGER_SIPS_PORT', config.sips_port],
    ['STROWGER_WS_PORT', config.ws_port],
  ] as const
  for (const [name, value] of named) {
    if (value === null) continue
    const twin = named.find(([other, taken]) => other !== name && taken === value)
    if (twin) throw new ConfigError(`${name}=${value}: the same port as ${twin[0]}`)
    if (name === 'STROWGER_SIP_PORT' && value >= config.rtp_ports.first && value <= config.rtp_ports.last)
      throw new ConfigError(`${name}=${value}: inside STROWGER_RTP_PORTS`)
  }
}

/** What machines that share a state need. */
const sharing = (env: Environment) => ({
  database_url: read(env, VARIABLES.database_url),
  roles: read(env, VARIABLES.roles),
  link: read(env, VARIABLES.link),
  redis_url: read(env, VARIABLES.redis_url),
})

/** Refuses Redis beside SQLite: an operator would believe that machines share a state, and each would have its own. */
function refuseAlone({ redis_url, database_url }: Pick<Config, 'redis_url' | 'database_url'>): void {
  if (redis_url !== null && database_url === null)
    throw new ConfigError(`${VARIABLES.redis_url.name}: set ${VARIABLES.database_url.name}, which holds the state then`)
}

function ownMasterKey(data_dir: string): Buffer {
  const file = join(data_dir, 'master.key')
  const key = Buffer.from(
    lineOnce(file, () => randomBytes(32).toString('hex')),
    'hex',
  )
  if (key.length !== 32) throw new ConfigError(`${file}: expected 64 hexadecimal characters`)
  return key
}

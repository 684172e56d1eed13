import { VARIABLES } from '../core/runtime/config.ts'
import type { Environment } from '../core/runtime/variables.ts'

type Name = keyof typeof VARIABLES
export type ProcessName = 'media' | 'edge' | 'sandbox' | 'signaling' | 'control'

/** Variables that the system and Node.js read. */
const SYSTEM = [
  'PATH',
  'HOME',
  'TZ',
  'TMPDIR',
  'LANG',
  'LC_ALL',
  'LD_LIBRARY_PATH',
  'LD_PRELOAD',
  'NODE_OPTIONS',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'UV_THREADPOOL_SIZE',
  'MALLOC_ARENA_MAX',
  'MALLOC_MMAP_THRESHOLD_',
] as const

const ADDRESSES: readonly Name[] = [
  'data',
  'host',
  'bind',
  'domain',
  'http_port',
  'https_port',
  'base_url',
  'sip_port',
  'sips_port',
  'ws_port',
  'rtp_ports',
  'allow_private',
  'allow_private_peers',
  'log',
]
const MEDIA: readonly Name[] = ['g729', 'io_uring', 'media_packet_ring', 'media_realtime', 'media_threads']
const ENGINES: readonly Name[] = ['speech_url', 'recognizer_url', 'transcriber_url', 'stt', 'tts']
const PROVIDERS: readonly Name[] = ['stt_url', 'stt_key', 'stt_model', 'tts_url', 'tts_key', 'tts_model', 'tts_voice']
const CALLS: readonly Name[] = ['dead_call', 'drain', 'recordings', 'run_log_days', 'siprec', 'sms_url', 'sandbox']
const LINK: readonly Name[] = ['drachtio', 'drachtio_secret']
const STIR: readonly Name[] = ['stir_cert', 'stir_key', 'stir_x5u', 'stir_ca']
/** Where files of calls are that this machine no longer has. */
const OBJECT_STORE: readonly Name[] = ['s3_endpoint', 's3_bucket', 's3_region', 's3_access_key', 's3_secret_key']
const TLS: readonly Name[] = ['tls_cert', 'tls_key', 'acme_names', 'acme_url', 'acme_email', 'acme_http_port']

/** The settings that each process gets. A process that handles strangers' packets gets no secrets but its own. */
export const READ_BY: Readonly<Record<ProcessName, readonly Name[]>> = {
  // Media reaches the HTTP port, and proxies decide where that listens.
  media: [...ADDRESSES, ...MEDIA, ...ENGINES, ...PROVIDERS, 'trusted_proxies'],
  edge: [...ADDRESSES, ...TLS, ...LINK, 'roles', 'hep', 'hep_id', 'hep_password'],
  sandbox: ADDRESSES,
  signaling: [
    ...ADDRESSES,
    ...ENGINES,
    ...CALLS,
    ...STIR,
    ...TLS,
    ...LINK,
    ...OBJECT_STORE,
    'drachtio_100rel',
    'roles',
    'link',
    'master_key',
    'database_url',
  ],
  control: [
    ...ADDRESSES,
    ...MEDIA,
    ...ENGINES,
    ...CALLS,
    ...STIR,
    ...TLS,
    ...OBJECT_STORE,
    'drachtio',
    'roles',
    'link',
    'database_url',
    'redis_url',
    'master_key',
    'operator_sources',
    'trusted_proxies',
    'smtp',
    'smtp_from',
    'sms_token',
    'metrics_token',
    'otlp_url',
    'hep',
    'hep_id',
  ],
}

/**
 * Keeps large blocks, such as the text of a chunk, out of the heap of malloc(3), which would grow by them: small blocks
 * that stay hold its pages. By itself malloc raises this bound to the largest block that was ever freed.
 */
const LARGE_BLOCKS: Environment = { MALLOC_MMAP_THRESHOLD_: '131072' }

/** Returns the environment of a process. It is an allow list: a process gets only what is meant for it. */
export function environmentOf(process: ProcessName, given: Environment): Record<string, string> {
  const env = { ...LARGE_BLOCKS, ...given }
  const names = [...SYSTEM, ...READ_BY[process].map(name => VARIABLES[name].name)]
  return Object.fromEntries(
    names.flatMap(name => {
      const value = env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

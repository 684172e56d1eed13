import { RECOGNIZERS, VOICES } from '../domain/speech/engines.ts'
import {
  acmeUrl,
  addresses,
  anyText,
  ConfigError,
  connectors,
  databaseUrl,
  dnsNames,
  domain,
  endpoint,
  gigabytes,
  httpPort,
  httpUrl,
  LEVELS,
  level,
  machineRoles,
  mailbox,
  mailboxOrUnset,
  masterKey,
  onOrOff,
  onOrOffOrUnset,
  optionalPort,
  port,
  portRange,
  ranges,
  recognizerUrl,
  redisUrl,
  smsUrl,
  smtpUrl,
  textOrUnset,
  userIds,
  whole,
  word,
  wordList,
} from './variable-values.ts'

/** A setting from the environment. */
export interface Variable<T> {
  readonly name: string
  readonly meaning: string
  readonly default: string
  readonly parse: (text: string, name: string) => T
  /** Its value is, or may contain, a credential: it is never printed and never written to a file. */
  readonly secret: boolean
}

const variable = <T>(
  name: string,
  fallback: string,
  meaning: string,
  parse: (text: string, name: string) => T,
): Variable<T> => ({ name, meaning, default: fallback, parse, secret: false })

const secret = <T>(one: Variable<T>): Variable<T> => ({ ...one, secret: true })

/** All variables with their meanings. `strowger doctor` prints this table, and .env.example mirrors it. */
export const VARIABLES = {
  data: variable(
    'STROWGER_DATA',
    './data',
    'folder of the database, recordings, keys; unset: ./data of the checkout, or /var/lib/strowger when only that one is used',
    anyText,
  ),
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
  https_port: variable(
    'STROWGER_HTTPS_PORT',
    '',
    'HTTPS port of the APIs and the console; then the HTTP port serves this machine alone; unset: none',
    optionalPort,
  ),
  base_url: variable(
    'STROWGER_BASE_URL',
    '',
    'public address of the HTTP APIs; unset: https://HOST:HTTPS_PORT, or http://HOST:HTTP_PORT without it',
    httpUrl,
  ),
  sip_port: variable('STROWGER_SIP_PORT', '5060', 'SIP port, UDP and TCP', port),
  sips_port: variable('STROWGER_SIPS_PORT', '5061', 'SIP port, TLS', port),
  ws_port: variable('STROWGER_WS_PORT', '5066', 'SIP port, WebSocket, plain and over TLS', port),
  rtp_ports: variable('STROWGER_RTP_PORTS', '20000-29999', 'UDP ports of RTP (even) and RTCP (odd)', portRange),
  domain: variable('STROWGER_DOMAIN', 'localhost', "domain of the trunks' signaling names", domain),
  drachtio: variable('STROWGER_DRACHTIO', '', 'HOST:PORT of a drachtio-server; unset: the embedded edge', endpoint),
  drachtio_secret: secret(variable('STROWGER_DRACHTIO_SECRET', '', "secret of drachtio's control link", anyText)),
  drachtio_100rel: variable(
    'STROWGER_DRACHTIO_100REL',
    'off',
    'a drachtio-server sends reliable provisional answers; v0.9.10 can crash by them (docs/drachtio.md)',
    onOrOff,
  ),
  sandbox: variable(
    'STROWGER_SANDBOX',
    '',
    'the sandbox carrier plays the telephone network: on or off; unset: on while STROWGER_HOST is loopback',
    onOrOffOrUnset,
  ),
  users: variable(
    'STROWGER_USERS',
    '60800',
    'first of the user ids, without account, that the edge, media and sandbox take when started as root; off: none',
    userIds,
  ),
  confinement: variable(
    'STROWGER_CONFINEMENT',
    'on',
    'the edge, media and sandbox open only files that they need, and start no program (Landlock, seccomp)',
    onOrOff,
  ),
  print_secrets: variable(
    'STROWGER_PRINT_SECRETS',
    'off',
    'each start prints the voice token and the console password, not the first one alone',
    onOrOff,
  ),
  master_key: secret(
    variable('STROWGER_MASTER_KEY', '', '32 bytes as hex or base64; unset: a key file in the data folder', masterKey),
  ),
  allow_private: variable(
    'STROWGER_ALLOW_PRIVATE_WEBHOOKS',
    'loopback',
    'private addresses that webhooks may reach: CIDRs, `loopback`, or `none`',
    wordList,
  ),
  allow_private_peers: variable(
    'STROWGER_ALLOW_PRIVATE_PEERS',
    '',
    'private addresses that SIP may be sent to; CIDRs, `loopback`, or `none`; unset: loopback where STROWGER_HOST is',
    ranges,
  ),
  trusted_proxies: variable(
    'STROWGER_TRUSTED_PROXIES',
    'none',
    'HTTP proxies whose X-Forwarded-For, -Proto and -Host are believed: CIDRs, `loopback`, or `none`; ' +
      'with `loopback` alone before an https STROWGER_BASE_URL, the HTTP port serves this machine alone',
    ranges,
  ),
  operator_sources: variable(
    'STROWGER_OPERATOR_SOURCES',
    'loopback,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7',
    'networks from which requests to /operator/v1 are taken: CIDRs, `loopback`, or `none`',
    wordList,
  ),
  log: variable('STROWGER_LOG', 'info', `log level: ${LEVELS.join(', ')}`, level),
  g729: variable(
    'STROWGER_G729',
    'off',
    'G.729 is transcoded by libbcg729 (GPL-3), which the operator installs; off: it is relayed alone',
    onOrOff,
  ),
  io_uring: variable('STROWGER_IO_URING', 'on', 'media packets by io_uring where it is allowed; off: epoll', onOrOff),
  media_packet_ring: variable(
    'STROWGER_MEDIA_PACKET_RING',
    'on',
    'latched media streams received by one packet ring for each thread, where it is allowed (CAP_NET_RAW)',
    onOrOff,
  ),
  media_realtime: variable(
    'STROWGER_MEDIA_REALTIME',
    'on',
    'packet threads at real-time priority where it is allowed (CAP_SYS_NICE or RLIMIT_RTPRIO)',
    onOrOff,
  ),
  media_threads: variable('STROWGER_MEDIA_THREADS', '1', 'threads of the media data plane', whole(1, 64)),
  dead_call: variable(
    'STROWGER_DEAD_CALL_SECONDS',
    '60',
    'seconds without media from anybody that end a call',
    // The media worker reports silence every 10 s.
    whole(10, 9999, ' seconds'),
  ),
  drain: variable(
    'STROWGER_DRAIN_SECONDS',
    '3',
    'seconds that calls may go on after SIGTERM or Ctrl-C',
    whole(0, 99_999, ' seconds'),
  ),
  recordings: variable('STROWGER_RECORDINGS_GB', '100', 'gigabytes of recordings of a project; 0: no limit', gigabytes),
  run_log_days: variable(
    'STROWGER_RUN_LOG_DAYS',
    '30',
    'days that logs of scripts are kept for `strowger replay` (documents); 0: none',
    whole(0, 9999, ' days'),
  ),
  speech_url: secret(variable('STROWGER_SPEECH_URL', '', 'text to speech over HTTP; unset: espeak-ng', httpUrl)),
  recognizer_url: secret(
    variable(
      'STROWGER_RECOGNIZER_URL',
      '',
      'speech recognition of live calls, ws(s) or http(s) (docs/speech.md); unset: none',
      recognizerUrl,
    ),
  ),
  transcriber_url: secret(
    variable(
      'STROWGER_TRANSCRIBER_URL',
      '',
      'transcription of recordings, http(s); unset: STROWGER_RECOGNIZER_URL when that is http(s)',
      httpUrl,
    ),
  ),
  stt: variable(
    'STROWGER_STT',
    '',
    'speech recognition: pocketsphinx, url, openai, deepgram, none (docs/speech.md); unset: what is there',
    word('none', ...RECOGNIZERS),
  ),
  stt_url: variable('STROWGER_STT_URL', '', 'address of openai or deepgram; unset: their own', recognizerUrl),
  stt_key: secret(variable('STROWGER_STT_KEY', '', 'their key', textOrUnset)),
  stt_model: variable('STROWGER_STT_MODEL', '', 'their model', textOrUnset),
  tts: variable(
    'STROWGER_TTS',
    '',
    'voice: espeak-ng, url, openai, elevenlabs (docs/speech.md); unset: what is there',
    word(...VOICES),
  ),
  tts_url: variable('STROWGER_TTS_URL', '', 'address of openai or elevenlabs; unset: their own', httpUrl),
  tts_key: secret(variable('STROWGER_TTS_KEY', '', 'their key', textOrUnset)),
  tts_model: variable('STROWGER_TTS_MODEL', '', 'their model', textOrUnset),
  tts_voice: variable('STROWGER_TTS_VOICE', '', 'their voice where a document names none of theirs', textOrUnset),
  siprec: variable(
    'STROWGER_SIPREC',
    '',
    'SIP recording servers for <Siprec>: NAME=SIP-URI, …; private ones stand in STROWGER_ALLOW_PRIVATE_PEERS too',
    connectors,
  ),
  s3_endpoint: variable('STROWGER_S3_ENDPOINT', '', 'S3-compatible storage of recordings; unset: data folder', httpUrl),
  s3_bucket: variable('STROWGER_S3_BUCKET', '', 'its bucket', textOrUnset),
  s3_region: variable('STROWGER_S3_REGION', 'us-east-1', 'its region', anyText),
  s3_access_key: secret(variable('STROWGER_S3_ACCESS_KEY', '', 'its access key', textOrUnset)),
  s3_secret_key: secret(variable('STROWGER_S3_SECRET_KEY', '', 'its secret key', textOrUnset)),
  smtp: secret(variable('STROWGER_SMTP_URL', '', 'mail server for alerts, smtp(s)://user:password@host:port', smtpUrl)),
  smtp_from: variable('STROWGER_SMTP_FROM', 'strowger@localhost', 'sender of alert mail', mailbox),
  sms_url: secret(
    variable(
      'STROWGER_SMS_URL',
      '',
      'alert texts: http(s)://… (JSON {id, to, text}), sip:HOST:PORT (MESSAGE), voice:',
      smsUrl,
    ),
  ),
  sms_token: secret(variable('STROWGER_SMS_TOKEN', '', 'bearer token of that endpoint', textOrUnset)),
  metrics_token: secret(
    variable(
      'STROWGER_METRICS_TOKEN',
      '',
      'bearer token of GET /metrics from other machines; unset: from this one alone',
      textOrUnset,
    ),
  ),
  otlp_url: secret(
    variable('STROWGER_OTLP_URL', '', 'OpenTelemetry collector, such as http://127.0.0.1:4318', httpUrl),
  ),
  tls_cert: variable(
    'STROWGER_TLS_CERT',
    '',
    'PEM file of the certificate chain for HTTPS, SIP over TLS and WSS; renewed files are used at once; unset: own',
    textOrUnset,
  ),
  tls_key: variable('STROWGER_TLS_KEY', '', 'PEM file of its private key', textOrUnset),
  acme_names: variable(
    'STROWGER_ACME_NAMES',
    '',
    'DNS names of this machine, or of several, for a certificate by ACME; accepts the terms of the authority',
    dnsNames,
  ),
  acme_url: variable(
    'STROWGER_ACME_URL',
    'https://acme-v02.api.letsencrypt.org/directory',
    'directory of the ACME authority',
    acmeUrl,
  ),
  acme_email: variable('STROWGER_ACME_EMAIL', '', 'where the ACME authority writes to', mailboxOrUnset),
  acme_http_port: variable(
    'STROWGER_ACME_HTTP_PORT',
    '',
    'port for the proof by HTTP-01, to which port 80 of the names leads; unset: TLS-ALPN-01 at the HTTPS port',
    optionalPort,
  ),
  stir_cert: variable(
    'STROWGER_STIR_CERT',
    '',
    'PEM file of the certificate that signs our callers (SHAKEN)',
    textOrUnset,
  ),
  stir_key: variable('STROWGER_STIR_KEY', '', 'PEM file of its P-256 private key', textOrUnset),
  stir_x5u: variable('STROWGER_STIR_X5U', '', 'public https address of that certificate', httpUrl),
  stir_ca: variable(
    'STROWGER_STIR_CA',
    '',
    'PEM file of trust anchors; set: callers signed by carriers are verified',
    textOrUnset,
  ),
  hep: variable('STROWGER_HEP', '', 'HOST:PORT of a HEP v3 collector (Homer) for SIP messages; unset: none', endpoint),
  hep_id: variable('STROWGER_HEP_ID', '1', 'capture agent id in HEP messages', whole(0, 0xffff_ffff)),
  hep_password: secret(variable('STROWGER_HEP_PASSWORD', '', 'password that the HEP collector wants', textOrUnset)),
  database_url: secret(
    variable(
      'STROWGER_DATABASE_URL',
      '',
      'PostgreSQL 15 or newer for the state, in place of SQLite: postgres://user:password@host:port/database, ' +
        'several hosts separated by commas',
      databaseUrl,
    ),
  ),
  roles: variable(
    'STROWGER_ROLES',
    '',
    'what this machine does of `edge signaling media control`, where others that share STROWGER_DATABASE_URL do the rest; ' +
      'signaling and media go together; unset: all',
    machineRoles,
  ),
  link: variable(
    'STROWGER_LINK',
    '',
    'HOST:PORT where the other machines reach this one, on a private network, and the next port; unset: they do not',
    endpoint,
  ),
  redis_url: secret(
    variable(
      'STROWGER_REDIS_URL',
      '',
      'Redis 6 or newer, which wakes other machines and counts for shared rate limits in place of PostgreSQL: ' +
        'redis://user:password@host:port, rediss:// for TLS; needs STROWGER_DATABASE_URL; unset: none',
      redisUrl,
    ),
  ),
} as const

export type Environment = Readonly<Record<string, string | undefined>>

/** Reads a variable; an empty value is the default. @throws ConfigError for an invalid text */
export const read = <T>(env: Environment, wanted: Variable<T>): T => {
  const text = env[wanted.name]?.trim() || wanted.default
  try {
    return wanted.parse(text, wanted.name)
  } catch (error) {
    if (!wanted.secret || text === '' || !(error instanceof ConfigError)) throw error
    // What a secret holds must not reach a log, whatever is wrong with it.
    throw new ConfigError(error.message.replaceAll(text, '…'))
  }
}

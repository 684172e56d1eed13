import type { Roles } from '../../core/domain/machines/roles.ts'
import type { Bus } from '../../core/runtime/bus.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import type { Config } from '../../core/runtime/config.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { MachineFiles } from '../../core/runtime/machine-files.ts'
import type { ObjectStore } from '../../core/runtime/object-store.ts'
import type { State } from '../../core/state/index.ts'
import type { Listeners } from '../live/listeners.ts'
import type { Mp3Encoder } from '../mp3/encoder.ts'
import type { Computations } from './computations.ts'
import type { RequestLimits } from './limits.ts'
import type { RateLimiter } from './rate-limit.ts'
import type { WrittenTexts } from './written-texts.ts'

/** The services that the control plane's routes and reconcilers use. */
export interface Services {
  readonly state: State
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly settings: ControlSettings
  /** Stores finished recordings; null keeps them in the data folder. */
  readonly objects: ObjectStore | null
  /** The files of the other machines; null or undefined: there are none. */
  readonly machines?: MachineFiles | null
}

/** Adds the services that live as long as the HTTP server. */
export interface HttpServices extends Services {
  /** Makes the limits that are named where they are used. */
  readonly limits: RequestLimits
  /** Limits failed sign-ins by account and address. */
  readonly sign_ins: RateLimiter
  /** Limits requests without a valid credential by address, over all APIs. */
  readonly bad_credentials: RateLimiter
  /** Long computations for requests, which take turns. */
  readonly computations: Computations
  /** Makes MP3 of recordings. */
  readonly mp3: Mp3Encoder
  /** Those who listen to live calls. */
  readonly listeners: Listeners
  /** Answers that are written once for facts that have not changed. */
  readonly texts: WrittenTexts
}

/** The part of the configuration that the control plane uses. */
export interface ControlSettings {
  readonly base_url: string
  readonly domain: string
  readonly host: string
  /** Our address of the other IP family, for SIP and RTP. */
  readonly second?: { readonly host: string } | null
  readonly sip_port: number
  readonly sips_port: number
  readonly ws_port: number
  /** The external drachtio-server; null with the embedded edge. */
  readonly drachtio: { readonly host: string; readonly port: number } | null
  readonly rtp_ports: { readonly first: number; readonly last: number }
  readonly data_dir: string
  /** The database of PostgreSQL that holds the state; null or undefined: it is in the data folder. */
  readonly database_url?: string | null
  readonly run_dir: string
  /** The operator's certificate, and how one is got by ACME; null or undefined: the platform made its own. */
  readonly tls?: Config['tls']
  readonly acme?: Config['acme']
  /** What this machine does; undefined: all. */
  readonly roles?: Roles
  readonly master_key: Buffer
  readonly allow_private_webhooks: readonly string[]
  /** Proxies whose word for a client's address is taken, in the same form. */
  readonly trusted_proxies: readonly string[]
  /** Networks from which requests of operators are taken; `loopback` is a word for two of them. */
  readonly operator_sources: readonly string[]
  /** Bytes of recordings that a project may keep; null means no limit. */
  readonly recordings_quota_bytes: number | null
  /** The speech engines that voice applications may choose. */
  readonly stt_choices: readonly { readonly engine: string }[]
  readonly tts_choices: readonly { readonly engine: string }[]
  /** Mail server, `smtp(s)://user:password@host:port`; null disables e-mail. */
  readonly smtp_url: string | null
  readonly smtp_from: string
  /** Provider of short messages (SMS); null disables them. */
  readonly sms_url: string | null
  readonly sms_token: string | null
  /** Bearer token for `GET /metrics` from other machines; null allows only this machine. */
  readonly metrics_token: string | null
}

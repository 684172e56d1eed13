import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startControl } from '../../control/control.ts'
import { SCOPES } from '../../control/http/access.ts'
import type { RateLimit } from '../../control/http/rate-limit.ts'
import type { HttpPatience } from '../../control/http/server.ts'
import type { ControlSettings } from '../../control/http/services.ts'
import { type Bus, connectBus } from '../../core/runtime/bus.ts'
import { type Clock, iso, systemClock } from '../../core/runtime/clock.ts'
import type { S3Config } from '../../core/runtime/config.ts'
import { newId } from '../../core/runtime/ids.ts'
import { createLog, type Log } from '../../core/runtime/log.ts'
import { createObjectStore, type ObjectStore } from '../../core/runtime/object-store.ts'
import { hashSecret } from '../../core/runtime/secrets.ts'
import { addAdminKey, type Demo, ensureDemo, putSandboxCarrier } from '../../core/state/configuration/bootstrap.ts'
import type { State } from '../../core/state/index.ts'
import { type ApiKeyRow, insertKey } from '../../core/state/people/api-keys.ts'
import { freshState } from './fresh-state.ts'
import { hashOnce } from './passwords.ts'
import { requested } from './requested.ts'

/** A real control plane on its own port, with real SQLite in a fresh folder and the demo project. */
export interface ControlPlane {
  readonly base_url: string
  readonly state: State
  readonly bus: Bus
  readonly log: Log
  readonly clock: Clock
  readonly settings: ControlSettings
  readonly objects: ObjectStore | null
  readonly demo: Demo
  /** An org:admin key with all scopes. */
  readonly key: string
  newKey(changes?: Partial<ApiKeyRow>): Promise<string>
  ask(method: string, path: string, request?: Request): Promise<Answer>
  /** Calls the voice-calls API with the demo account's credentials, unless `headers` has others. */
  voice(method: string, path: string, form?: Form, headers?: Record<string, string>): Promise<Answer>
}

export interface Request {
  readonly key?: string | null
  readonly body?: unknown
  readonly raw?: string | Buffer
  readonly headers?: Record<string, string>
}

export type Form = Record<string, string | readonly string[]>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape.
  readonly body: any
  readonly text: string
  readonly bytes: Buffer
}

interface Teardown {
  teardown(end: () => unknown): void
}

interface ControlPlaneOptions {
  readonly clock?: Clock
  readonly rate_limit?: RateLimit
  readonly bad_credentials?: RateLimit
  readonly patience?: HttpPatience
  /** An external drachtio-server to use instead of the embedded edge. */
  readonly drachtio?: ControlSettings['drachtio']
  readonly operator_sources?: readonly string[]
  readonly trusted_proxies?: readonly string[]
  /** An object store for the recordings. */
  readonly s3?: S3Config
}

export const METRICS_TOKEN = 'what-prometheus-sends'
export const CONSOLE_PASSWORD = 'correct horse battery staple'

export async function controlPlane(t: Teardown, options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-control-'))
  const run_dir = join(data_dir, 'run')
  const clock = options.clock ?? systemClock
  const state = await freshState({ data_dir, local: true })
  const bus = connectBus(run_dir)
  const log = createLog('control', { log_level: (process.env['TEST_LOG'] as 'info' | undefined) ?? 'fatal' })
  const settings: ControlSettings = {
    base_url: 'http://strowger.test',
    domain: 'voice.test',
    host: '127.0.0.1',
    sip_port: 5060,
    sips_port: 5061,
    ws_port: 5066,
    drachtio: options.drachtio ?? null,
    rtp_ports: { first: 20000, last: 29999 },
    data_dir,
    run_dir,
    master_key: Buffer.alloc(32, 7),
    allow_private_webhooks: ['loopback'],
    trusted_proxies: options.trusted_proxies ?? [],
    operator_sources: options.operator_sources ?? ['loopback'],
    recordings_quota_bytes: 1_000_000,
    stt_choices: [{ engine: 'pocketsphinx' }],
    tts_choices: [{ engine: 'espeak-ng' }],
    smtp_url: null,
    smtp_from: 'strowger@strowger.test',
    sms_url: null,
    sms_token: null,
    metrics_token: METRICS_TOKEN,
  }
  const now = iso(clock.now())
  const hashOfPassword = () => hashOnce(CONSOLE_PASSWORD)
  const demo = await ensureDemo(state, { master_key: settings.master_key, now, hashOfPassword })
  const key = await addAdminKey(state.db, demo.project_id, now, null)
  const objects = options.s3 ? createObjectStore(options.s3, log) : null
  const server = await startControl({
    objects,
    state,
    bus,
    clock,
    log,
    settings,
    listen: { host: '127.0.0.1', port: 0, patience: options.patience },
    check_replies: true,
    ...(options.rate_limit ? { rate_limit: options.rate_limit } : {}),
    ...(options.bad_credentials ? { bad_credentials: options.bad_credentials } : {}),
  })
  t.teardown(async () => {
    await server.close()
    await objects?.close()
    await bus.close()
    await state.close()
    rmSync(data_dir, { recursive: true, force: true })
  })
  const base_url = `http://127.0.0.1:${server.port}`
  const account = `/2010-04-01/Accounts/${demo.account_sid}`
  const basic = `Basic ${Buffer.from(`${demo.account_sid}:${demo.auth_token}`).toString('base64')}`
  return {
    base_url,
    state,
    bus,
    log,
    clock,
    settings,
    objects,
    demo,
    key,
    newKey: changes => newKey(state, demo.project_id, changes),
    async ask(method, path, request = {}) {
      const credential = request.key === undefined ? key : request.key
      const body = request.raw ?? (request.body === undefined ? undefined : JSON.stringify(request.body))
      return answerTo(`${base_url}${path}`, {
        method,
        headers: {
          ...(credential === null ? {} : { Authorization: `Bearer ${credential}` }),
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...request.headers,
        },
        body,
      })
    },
    async voice(method, path, form, headers = {}) {
      return answerTo(`${base_url}${path.startsWith('/2010') ? path : `${account}${path}`}`, {
        method,
        headers: { Authorization: basic, ...headers },
        body: form && encoded(form),
      })
    },
  }
}

function encoded(form: Form): URLSearchParams {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(form))
    for (const item of typeof value === 'string' ? [value] : value) parameters.append(name, item)
  return parameters
}

async function answerTo(...request: Parameters<typeof requested>): Promise<Answer> {
  const { status, headers, bytes } = await requested(...request)
  const text = new TextDecoder().decode(bytes)
  const json = /[/+]json\b/.test(headers.get('content-type') ?? '')
  return { status, headers, body: json && text !== '' ? JSON.parse(text) : undefined, text, bytes }
}

async function newKey(state: State, project_id: string, changes: Partial<ApiKeyRow> = {}): Promise<string> {
  const { public_id, secret } = newId.apiKey()
  await state.transaction(trx =>
    insertKey(trx, {
      id: newId.key(),
      project_id,
      public_id,
      secret_hash: hashSecret(secret),
      name: 'test key',
      role: 'org:admin',
      scopes: JSON.stringify(SCOPES),
      subaccount_id: null,
      expires_at: null,
      retires_at: null,
      rotated_from_id: null,
      revoked_at: null,
      last_used_at: null,
      created_at: iso(Date.now()),
      ...changes,
    }),
  )
  return `sk_live_${public_id}_${secret}`
}

/** Configures a sandbox carrier, so that every number has a route. Nothing listens at its port. */
export const openSandbox = (w: Pick<ControlPlane, 'state'>): Promise<void> =>
  putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 9, now: iso(Date.now()) })

let keys = 0
/** Returns an Idempotency-Key that is unique in this process. */
export const freshKey = (): string => `test-${process.pid}-${++keys}`

import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Open, openOf } from '../../bench/descriptors.ts'
import { DRACHTIO_PROGRAM, startDrachtioServer } from '../../bench/drachtio-server.ts'
import { type Bootstrapped, bootstrap } from '../../bin/bootstrap.ts'
import { loadConfig } from '../../core/runtime/config.ts'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { openState, type State } from '../../core/state/index.ts'
import { onPostgres } from './engine.ts'
import { putEmptyDatabase } from './fresh-state.ts'
import type { Test } from './harness/index.ts'
import { assertInvariants } from './invariants.ts'
import { type Platform, startPlatform } from './platform.ts'
import { freeBlock, freePort } from './ports.ts'
import { requested } from './requested.ts'
import { PATIENCE_MS, SCRAPE_AGAIN_MS, until } from './wait.ts'

interface Reply {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape.
  readonly body: any
  readonly bytes: Buffer
}

export type ProcessName = 'edge' | 'signaling' | 'media' | 'control' | 'sandbox'

/** A whole platform in its own folder, started as users start it. */
export interface World {
  readonly base_url: string
  /** `port` serves UDP and TCP. */
  readonly sip: { readonly host: string; readonly port: number; readonly tls_port: number; readonly ws_port: number }
  readonly rtp_ports: { readonly first: number; readonly last: number }
  readonly project_id: string
  readonly api_key: string
  readonly account_sid: string
  readonly auth_token: string
  readonly numbers: readonly string[]
  readonly data_dir: string
  /** The database of PostgreSQL that holds the platform's rows; null: SQLite in `data_dir`. */
  readonly database_url: string | null
  /** The environment that its platform was started with. */
  readonly settings: Readonly<Record<string, string>>
  /** The settings by which commands find the platform. */
  readonly place: Readonly<Record<string, string>>
  readonly master_key: Buffer
  /** The platform's rows, for facts that no API shows. */
  readonly state: State
  /** Returns the same platform in the hands of another customer. */
  as(customer: Customer): World
  /** Rejects unless all invariants hold (see `assertInvariants`). */
  intact(): Promise<void>
  /** Sends a request to /v1 with a key that has all scopes. */
  manage(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** Sends a request below /2010-04-01/Accounts/{AccountSid}; `form` may contain lists. */
  voice(method: string, path: string, form?: Record<string, string | readonly string[]>): Promise<Reply>
  /** Waits until the call has ended, and returns it as the API shows it. */
  ended(sid: string): Promise<Reply['body']>
  /** Reads metrics by their name after `strowger_`, summed; NaN for one that is missing because its process is busy. */
  metrics(): Promise<(name: string) => number>
  /** Waits until all of these metrics are 0. */
  untilNone(...names: readonly string[]): Promise<unknown>
  /** Adds a trunk in both directions with G.711, whose peer calls from `source`. Resolves with its id once applied. */
  addTrunk(source: string, over?: Readonly<Record<string, unknown>>): Promise<string>
  /** Adds a trunk in both directions with G.711 and digest authentication. It may not be applied yet. */
  addDigestTrunk(over?: Readonly<Record<string, unknown>>): Promise<DigestTrunk>
  /**
   * Routes a number to a voice application that fetches `voice_url`. The number belongs to `project_id`, by default the
   * demo project.
   */
  routeToApplication(e164: string, voice_url: string, project_id?: string): Promise<void>
  routeToTrunk(e164: string, trunk_id: string): Promise<void>
  pid(name: ProcessName): number
  /** Kills a process with SIGKILL. Returns the pid of its successor, which starts only after `meanwhile`. */
  kill(name: ProcessName, meanwhile?: () => Promise<unknown>): Promise<number>
  log(): string
}

/** Enough ports for the media of a few calls at once. */
export const RTP_PORTS = 200

/** Who a world belongs to. */
type Customer = Pick<World, 'project_id' | 'api_key' | 'account_sid' | 'auth_token' | 'numbers'>

interface DigestTrunk {
  readonly id: string
  readonly username: string
  readonly password: string
}

/**
 * Starts a platform for this test and stops it at the end. A failed test shows the platform's log. With `beside`, it is
 * another machine on the database of that platform, which must outlive it. Most stories need no platform of their own:
 * see `sharedWorld`.
 */
export async function world(t: Test, env: Record<string, string> = {}, beside?: World): Promise<World> {
  const opened = await openWorld({ env, ...(beside ? { beside } : {}) })
  t.teardown(async () => {
    let whole = false
    try {
      if (t.passing() && !beside) await opened.w.intact()
      whole = t.passing()
    } finally {
      await opened.close()
      if (!whole) t.comment(opened.w.log())
    }
  })
  return opened.w
}

interface Opened {
  readonly w: World
  close(): Promise<void>
}

/** Starts a platform, which the caller closes. `rtp_ports` is the number of its ports for media. */
export async function openWorld(options: {
  readonly env?: Readonly<Record<string, string>>
  readonly beside?: World
  readonly rtp_ports?: number
}): Promise<Opened> {
  const { env = {}, beside } = options
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-world-'))
  const given = env['STROWGER_DATABASE_URL'] ?? beside?.database_url
  const database_url = given ?? (!beside && onPostgres() ? await emptyPostgres() : null)
  if (beside) copyFileSync(join(beside.data_dir, 'master.key'), join(data_dir, 'master.key'))
  if (beside && database_url === null) shareDatabase(beside.data_dir, data_dir)
  else if (database_url === null) await putEmptyDatabase(data_dir)
  const [http_port, sip_port, sips_port, ws_port] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const rtp_ports = await freeBlock(options.rtp_ports ?? RTP_PORTS)
  const settings = {
    ...(database_url === null ? {} : { STROWGER_DATABASE_URL: database_url }),
    PATH: process.env['PATH'] ?? '',
    HOME: data_dir,
    STROWGER_DATA: data_dir,
    STROWGER_HTTP_PORT: String(http_port),
    STROWGER_SIP_PORT: String(sip_port),
    STROWGER_SIPS_PORT: String(sips_port),
    STROWGER_WS_PORT: String(ws_port),
    STROWGER_RTP_PORTS: `${rtp_ports.first}-${rtp_ports.last}`,
    // Do not hang up on peers that send no media while a slow machine runs another part of the test.
    STROWGER_DEAD_CALL_SECONDS: '9999',
    ...env,
  }
  const server = DRACHTIO_PROGRAM && (await startDrachtioServer(DRACHTIO_PROGRAM, settings, await freePort()))
  const platform = await startPlatform({ ...settings, ...(server ? server.env : {}) })
  let state: State | null = null
  const close = async (): Promise<void> => {
    await state?.close()
    await platform.stop()
    if (server) await server.stop()
    rmSync(data_dir, { recursive: true, force: true })
  }
  try {
    const config = loadConfig(settings)
    const made = await bootstrap(config)
    state = await openState({ data_dir, database_url })
    const { master_key } = config
    const rest = openOf(data_dir)
    return {
      w: present({ made, state, rtp_ports, data_dir, database_url, master_key, platform, settings, rest }),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Links the database. SQLite resolves the link and uses the log and index at its target; our own code needs theirs. */
function shareDatabase(from: string, data_dir: string): void {
  for (const name of ['strowger.sqlite', 'strowger.sqlite-wal', 'strowger.sqlite-shm'])
    symlinkSync(join(from, name), join(data_dir, name))
}

/** Makes an empty database of PostgreSQL. The driver is loaded where it is used. */
const emptyPostgres = async (): Promise<string> => (await import('./postgres.ts')).postgresDatabase()

function present(parts: {
  made: Bootstrapped
  state: State
  rtp_ports: World['rtp_ports']
  data_dir: string
  database_url: string | null
  master_key: Buffer
  platform: Platform
  settings: World['settings']
  /** What the processes had open before their first request. */
  rest: Open
}): World {
  const { made, state, data_dir, database_url, master_key, rest } = parts
  const { child } = parts.platform
  const account = `${made.base_url}/2010-04-01/Accounts/${made.account_sid}`
  const basic = `Basic ${Buffer.from(`${made.account_sid}:${made.auth_token}`).toString('base64')}`
  const pid = (name: ProcessName): number => {
    const written = Number(readFileSync(join(data_dir, 'run', `${name}.pid`), 'utf8'))
    // A signal to pid 0 would reach our whole process group.
    if (!(written > 0)) throw new Error(`${name} has no pid`)
    return written
  }
  const metrics: World['metrics'] = async () => {
    const text = (await requested(`${made.base_url}/metrics`, { method: 'GET' })).bytes.toString('utf8')
    return name => {
      const values = [...text.matchAll(new RegExp(`^strowger_${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))]
      return values.length === 0 ? Number.NaN : values.reduce((sum, [, value]) => sum + Number(value), 0)
    }
  }
  const voice: World['voice'] = (method, path, form) =>
    ask(`${account}${path}`, {
      method,
      headers: { authorization: basic },
      ...(form ? { body: formOf(form) } : {}),
    })
  const manage: World['manage'] = (method, path, body, headers = {}) =>
    ask(`${made.base_url}/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${made.api_key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  return {
    base_url: made.base_url,
    sip: { host: made.sip.host, port: made.sip.udp, tls_port: made.sip.tls, ws_port: made.sip.ws },
    rtp_ports: parts.rtp_ports,
    project_id: made.project_id,
    api_key: made.api_key,
    account_sid: made.account_sid,
    auth_token: made.auth_token,
    numbers: made.numbers,
    data_dir,
    database_url,
    settings: parts.settings,
    place: { STROWGER_DATA: data_dir, ...(database_url === null ? {} : { STROWGER_DATABASE_URL: database_url }) },
    master_key,
    state,
    as: customer => present({ ...parts, made: { ...made, ...customer } }),
    intact: () =>
      assertInvariants({
        ...{ state, master_key, metrics, data_dir, rest },
        runs: () => child.exitCode === null && child.signalCode === null,
      }),
    manage,
    voice,
    async ended(sid) {
      const row = () => state.db.selectFrom('call').select('ended_at').where('sid', '=', sid).executeTakeFirst()
      await until(`call ${sid} ends`, async () => (await row())?.ended_at)
      return (await voice('GET', `/Calls/${sid}.json`)).body
    },
    metrics,
    untilNone: (...names) =>
      until(
        `none of ${names.join(', ')}`,
        async () => {
          const value = await metrics()
          // A drachtio-server has none of the edge's metrics.
          return names.every(name => (DRACHTIO_PROGRAM !== null && name.startsWith('edge_')) || value(name) === 0)
        },
        PATIENCE_MS,
        SCRAPE_AGAIN_MS,
      ),
    addTrunk: (source, over = {}) => addTrunk(manage, source, over),
    async addDigestTrunk(over = {}) {
      const body = await createTrunk(manage, { auth_mode: 'digest', sources: [], ...over })
      const username: string = body.trunk.authentication.digest_identities[0].username
      return { id: body.trunk.id, username, password: body.digest_password }
    },
    routeToApplication: async (e164, voice_url, project_id = made.project_id) => {
      await routeToApplication(state, project_id, e164, voice_url)
    },
    routeToTrunk: (e164, trunk_id) => routeNumber(state, e164, { route_kind: 'trunk', route_id: trunk_id }),
    pid,
    async kill(name, meanwhile) {
      const old = pid(name)
      // A stopped supervisor restarts no process.
      if (meanwhile) child.kill('SIGSTOP')
      try {
        process.kill(old, 'SIGKILL')
        await meanwhile?.()
      } finally {
        if (meanwhile) child.kill('SIGCONT')
      }
      return until(`${name} is started again`, () => {
        const now = pid(name)
        return now !== old && now
      })
    },
    log: () => parts.platform.log(),
  }
}

export function formOf(form: Record<string, string | readonly string[]>): URLSearchParams {
  const body = new URLSearchParams()
  for (const [name, value] of Object.entries(form)) for (const one of [value].flat()) body.append(name, one)
  return body
}

async function ask(...request: Parameters<typeof requested>): Promise<Reply> {
  const { status, headers, bytes } = await requested(...request)
  const json = /json/.test(headers.get('content-type') ?? '')
  return {
    status,
    headers,
    body: json && bytes.length > 0 ? JSON.parse(bytes.toString('utf8')) : bytes.toString('latin1'),
    bytes,
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the creation as the API answers it.
async function createTrunk(manage: World['manage'], over: Readonly<Record<string, unknown>>): Promise<any> {
  const trunk = {
    name: 'PBX',
    direction: 'both',
    codecs: ['PCMU', 'PCMA'],
    media_security: 'rtp',
    require_tls: false,
    source_validation: 'relaxed',
    targets: [],
    ...over,
  }
  const { status, body } = await manage('POST', '/trunks', trunk, { 'idempotency-key': `trunk-${Math.random()}` })
  if (status !== 201) throw new Error(`trunk refused: ${JSON.stringify(body)}`)
  return body
}

async function addTrunk(manage: World['manage'], source: string, over: Readonly<Record<string, unknown>>) {
  const wanted = { auth_mode: 'ip_allow_list', sources: [`${source}/32`], ...over }
  const id: string = (await createTrunk(manage, wanted)).trunk.id
  await trunkApplied(manage, id)
  return id
}

/** Waits until the nodes have applied a trunk. A challenge does not say so: the edge challenges all strangers. */
export const trunkApplied = (manage: World['manage'], id: string): Promise<unknown> =>
  until('the trunk is applied', async () => {
    const { body: detail } = await manage('GET', `/trunks/${id}`)
    return detail.apply.state === 'applied' && detail.apply.effective_revision === detail.revision
  })

/** Routes a project's number to a new application. Resolves with the application's id once the route is applied. */
export async function routeToApplication(
  state: State,
  project_id: string,
  e164: string,
  voice_url: string,
  status_callback_url: string | null = null,
): Promise<string> {
  const now = new Date().toISOString()
  const id = `AP${Math.random().toString(16).slice(2).padEnd(32, '0').slice(0, 32)}`
  await state.transaction(async trx => {
    await trx
      .insertInto('voice_application')
      .values({
        id,
        project_id,
        name: `Application of ${e164}`,
        voice_url,
        voice_method: 'POST',
        fallback_url: null,
        fallback_method: 'POST',
        status_callback_url,
        status_callback_method: 'POST',
        stt: null,
        tts: null,
        revision: 1,
        created_at: now,
        updated_at: now,
        deleted_at: null,
      })
      .execute()
  })
  await routeNumber(state, e164, { route_kind: 'voice_application', route_id: id })
  return id
}

/** Routes a number. Resolves once calls take the new route. */
async function routeNumber(
  state: State,
  e164: string,
  route: { route_kind: 'trunk' | 'voice_application'; route_id: string },
) {
  await state.transaction(async trx => {
    await trx
      .updateTable('number')
      .set(eb => ({ ...route, revision: eb('revision', '+', 1), updated_at: new Date().toISOString() }))
      .where('e164', '=', e164)
      .execute()
    await bumpConfiguration(trx)
  })
  await until('the signaling node has applied the route', () =>
    state.db
      .selectFrom('apply_report')
      .innerJoin('number', 'number.id', 'apply_report.resource_id')
      .select('apply_report.revision')
      .where('number.e164', '=', e164)
      .whereRef('apply_report.revision', '=', 'number.revision')
      .executeTakeFirst(),
  )
}

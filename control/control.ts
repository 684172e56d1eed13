import type { IncomingMessage } from 'node:http'
import type { Bus } from '../core/runtime/bus.ts'
import type { Clock } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'
import type { MachineFiles } from '../core/runtime/machine-files.ts'
import type { ObjectStore } from '../core/runtime/object-store.ts'
import type { State } from '../core/state/index.ts'
import { consolePages } from './console-pages.ts'
import { createEventsHub } from './events/hub.ts'
import { evidenceKeyPage } from './evidence-key-page.ts'
import { exportDownloads } from './exports/downloads.ts'
import { generalHandlers } from './general/index.ts'
import { createManual, guidePages } from './guides/pages.ts'
import { BAD_CREDENTIALS } from './http/bad-credentials.ts'
import { bearerAuthentication } from './http/bearer.ts'
import { createComputations } from './http/computations.ts'
import { apiHandler } from './http/dispatch.ts'
import { healthPages } from './http/health.ts'
import { limitsBy } from './http/limits.ts'
import type { RateLimit } from './http/rate-limit.ts'
import { type HttpServer, type Listening, serveHttp } from './http/server.ts'
import type { ControlSettings, HttpServices } from './http/services.ts'
import type { SharedRates } from './http/shared-rates.ts'
import { WrittenTexts } from './http/written-texts.ts'
import { listenerDoors } from './live/listener-doors.ts'
import { Listeners } from './live/listeners.ts'
import { createMp3Encoder } from './mp3/encoder.ts'
import { referencePages, referencesOf, searchEntries } from './openapi/pages.ts'
import { operatorAuthentication, operatorSessions } from './operator/authenticate.ts'
import { OPERATOR_ROUTES } from './operator/index.ts'
import { MAX_RATE_LIST_BYTES } from './operator/price-books.ts'
import { MEMBERS_ONLY, sessionAuthentication } from './session/cookie.ts'
import { CONSOLE_ROUTES } from './session/index.ts'
import { SIGN_INS } from './session/sign-in.ts'
import { V1_ROUTES } from './v1/index.ts'
import { voiceHandler } from './voice/dispatch.ts'
import { VOICE_ROUTES } from './voice/index.ts'
import { voiceDocumentPages } from './voice-documents.ts'

interface ControlOptions {
  readonly state: State
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly settings: ControlSettings
  readonly objects?: ObjectStore | null
  readonly machines?: MachineFiles | null
  readonly listen: Listening
  /** What counts requests for all machines; null or undefined: this machine is alone. */
  readonly rates?: SharedRates | null
  readonly rate_limit?: RateLimit
  readonly bad_credentials?: RateLimit
  /** Checks every answer against its schema. For tests, because it costs time. */
  readonly check_replies?: boolean
}

/** Limits the requests of one credential. A program that waits for each answer stays below it. */
const RATE_LIMIT: RateLimit = { burst: 2000, per_second: 1000 }

const operatorApi = (services: HttpServices) => ({
  prefix: '/operator/v1',
  routes: OPERATOR_ROUTES,
  authenticate: operatorAuthentication(services),
  max_body_bytes: MAX_RATE_LIST_BYTES,
})

/** The console uses the routes of `v1` as the signed-in member, and those of operators when the member is one. */
function consoleApis(v1: Parameters<typeof apiHandler>[0], services: HttpServices, session: Session) {
  const prefix = '/console/api'
  const operator = { prefix: `${prefix}/operator/v1`, authenticate: operatorSessions(services, session) }
  return {
    [`${prefix}/v1`]: apiHandler({ ...v1, prefix: `${prefix}/v1`, authenticate: session }, services),
    [operator.prefix]: apiHandler({ ...v1, ...operatorApi(services), ...operator }, services),
    [prefix]: apiHandler({ ...v1, prefix, routes: CONSOLE_ROUTES, authenticate: session }, services),
  }
}

type Session = ReturnType<typeof sessionAuthentication>

function servicesOf(options: ControlOptions): HttpServices {
  const { state, bus, clock, log, settings, objects, machines, rates, bad_credentials } = options
  const limits = limitsBy(rates ?? null)
  return {
    state,
    bus,
    clock,
    log,
    settings,
    objects: objects ?? null,
    machines: machines ?? null,
    limits,
    sign_ins: limits.bucket('sign-ins', SIGN_INS),
    bad_credentials: limits.bucket('bad credentials', bad_credentials ?? BAD_CREDENTIALS),
    computations: createComputations(),
    mp3: createMp3Encoder(),
    listeners: new Listeners(clock),
    texts: new WrittenTexts(),
  }
}

/** What a machine without the role `control` serves: who balances load and who watches ask each machine. */
const healthAlone = (services: HttpServices): Parameters<typeof serveHttp>[0] => ({
  upgrade: (_, socket) => void socket.destroy(),
  pages: healthPages(services),
  below: {},
})

/** Starts the HTTP server of the control plane: four APIs on one port, or health alone. */
export async function startControl(options: ControlOptions): Promise<HttpServer> {
  const { settings, listen } = options
  const services = servicesOf(options)
  const rate_limit = options.rate_limit ?? RATE_LIMIT
  const check_replies = options.check_replies ?? false
  const v1 = {
    prefix: '/v1',
    routes: V1_ROUTES,
    rate_limit,
    check_replies,
    authenticate: bearerAuthentication(services),
  }
  const session = sessionAuthentication(services)
  const program = { authenticate: v1.authenticate, same_origin: false }
  const person = { authenticate: (request: IncomingMessage) => session(request, MEMBERS_ONLY), same_origin: true }
  const events = createEventsHub(services, { '/v1/events': program, '/console/api/v1/events': person })
  const ears = listenerDoors(services, { '/v1': program, '/console/api/v1': person })
  const routes = { v1: V1_ROUTES, operator: OPERATOR_ROUTES, voice: VOICE_ROUTES }
  const references = referencesOf(routes, settings.base_url)
  const manual = createManual(() => references.flatMap(searchEntries))
  const apis: Parameters<typeof serveHttp>[0] = {
    upgrade: (request, socket, head) => {
      if (!ears.upgrade(request, socket, head)) events.upgrade(request, socket, head)
    },
    pages: {
      ...healthPages(services),
      '/evidence-key.pem': evidenceKeyPage(settings),
      ...referencePages(references, manual),
      ...guidePages(manual),
      '/': ctx => ctx.redirect('/console/'),
      '/console': ctx => ctx.redirect('/console/'),
    },
    below: {
      '/v1': apiHandler(v1, services),
      '/operator/v1': apiHandler({ ...v1, ...operatorApi(services) }, services),
      '/2010-04-01': voiceHandler({ routes: VOICE_ROUTES, rate_limit, check_replies }, services),
      ...generalHandlers(services),
      ...consoleApis(v1, services, session),
      '/downloads': exportDownloads(services),
      '/console': consolePages(services, session),
      '/documents': voiceDocumentPages(services),
    },
  }
  const serves = settings.roles?.has('control') ?? true
  const server = await serveHttp(serves ? apis : healthAlone(services), services, listen)
  return {
    ...server,
    async close() {
      ears.close()
      events.close()
      await server.close()
      await services.mp3.close()
    },
  }
}

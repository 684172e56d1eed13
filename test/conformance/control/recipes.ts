import type { Route } from '../../../control/http/route.ts'
import { callExports } from '../../../control/reconcilers/call-exports.ts'
import { newId } from '../../../core/runtime/ids.ts'
import { insertTestAlert, insertTestContainment } from '../../support/alerts.ts'
import { type ControlPlane, freshKey, openSandbox } from '../../support/control-plane.ts'
import { acceptConsent, addRecording } from '../../support/recordings.ts'
import { addConference, addQueue } from '../../support/rooms.ts'

/** What one successful request to a route needs. */
export interface Made {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: Record<string, unknown>
  /** The value of If-Match. */
  readonly etag?: string
}

/** Makes new resources at each call. */
type Recipe = (w: ControlPlane) => Promise<Made>

let made = 0
const unique = (): number => ++made

/** Returns a source range that no other trunk of the test has. */
const freshSource = (): string => `10.${(unique() >> 8) & 255}.${made & 255}.0/24`

const trunkBody = (changes: object = {}): Record<string, unknown> => ({
  name: `Trunk ${unique()}`,
  direction: 'both',
  auth_mode: 'ip_allow_list',
  sources: [freshSource()],
  targets: [{ sip_uri: 'sip:203.0.113.10:5060', transport: 'udp', priority: 10, weight: 100 }],
  codecs: ['PCMA', 'PCMU'],
  media_security: 'rtp',
  require_tls: false,
  source_validation: 'relaxed',
  ...changes,
})

async function post(w: ControlPlane, path: string, body: unknown, headers: Record<string, string> = {}) {
  const answer = await w.ask('POST', path, { body, headers: { 'Idempotency-Key': freshKey(), ...headers } })
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`)
  return { body: answer.body, etag: answer.headers.get('etag') ?? '' }
}

const trunk = async (w: ControlPlane, changes: object = {}) => {
  const { body, etag } = await post(w, '/v1/trunks', trunkBody(changes))
  return { id: body.trunk.id as string, name: body.trunk.name as string, etag, trunk: body.trunk }
}

/** Returns a recipe that makes a trunk, for a route on that trunk. */
const onTrunk =
  (body?: Record<string, unknown>): Recipe =>
  async w => {
    const { id, etag } = await trunk(w)
    return { params: { trunk_id: id }, etag, ...(body ? { body } : {}) }
  }

/** Returns a recipe that uses the bodies in turn, so that each differs from the one before. */
function inTurn(...bodies: readonly Record<string, unknown>[]): Recipe {
  let turn = 0
  return async () => ({ body: bodies[turn++ % bodies.length] ?? {} })
}

const credential = async (w: ControlPlane) => {
  const { id, etag } = await trunk(w, { auth_mode: 'digest', sources: [] })
  const made = await post(w, `/v1/trunks/${id}/digest-credentials`, { realm: 'r.test' }, { 'If-Match': etag })
  return { params: { trunk_id: id, credential_id: made.body.id as string }, etag: made.etag }
}

const settings = () => {
  const { sources: _sources, targets: _targets, ...body } = trunkBody()
  return body
}

/** Recipes that make what the last parameter of a path names. */
const THINGS: Readonly<Record<string, Recipe>> = {
  trunk_id: onTrunk(),
  subtrunk_id: onSubtrunk(),
  policy_id: onPolicy(),
  application_id: onApplication(),
  number_id: onNumber(),
  subaccount_id: onSubaccount(),
  endpoint_id: onEndpoint(),
  call_id: onCall,
  recording_id: onRecording,
  conference_id: onConference(),
  participant_id: onParticipant(),
  queue_id: onQueue(),
  voice_document_id: onVoiceDocument(),
  waiting_call_id: onMember,
  document_id: onStatement,
  export_id: onExport(),
}

/** Recipes of routes that need more than the resource in their path, such as a body. */
export const RECIPES: Readonly<Record<string, Recipe>> = {
  'post /trunks': async () => ({ body: trunkBody() }),
  'patch /trunks/{trunk_id}': onTrunk(settings()),
  'delete /trunks/{trunk_id}': async w => {
    const { id, name, etag } = await trunk(w)
    return { params: { trunk_id: id }, etag, body: { confirm_name: name } }
  },
  'post /trunks/{trunk_id}/ip-credentials': async w => ({
    ...(await onTrunk()(w)),
    body: { cidr: freshSource(), enabled: true, selector_precedence: 1 },
  }),
  'patch /trunks/{trunk_id}/ip-credentials/{credential_id}': async w => {
    const { trunk: made, etag } = await trunk(w)
    const credential_id = made.authentication.sources[0].id
    return { params: { trunk_id: made.id, credential_id }, etag, body: { cidr: freshSource() } }
  },
  'delete /trunks/{trunk_id}/ip-credentials/{credential_id}': async w => {
    const { trunk: made, etag } = await trunk(w)
    return { params: { trunk_id: made.id, credential_id: made.authentication.sources[0].id }, etag }
  },
  'post /trunks/{trunk_id}/digest-credentials': onTrunk({ realm: 'sip.example.com' }),
  'delete /trunks/{trunk_id}/digest-credentials/{credential_id}': credential,
  'post /trunks/{trunk_id}/digest-credentials/{credential_id}/rotate': credential,
  'post /trunks/{trunk_id}/termination-uris': onTrunk({ sip_uri: 'sip:pbx.example.com', transport: 'tcp' }),
  'patch /trunks/{trunk_id}/termination-uris/{target_id}': async w => {
    const { trunk: made, etag } = await trunk(w)
    const params = { trunk_id: made.id, target_id: made.routes[0].id }
    return { params, etag, body: { sip_uri: 'sip:198.51.100.7', transport: 'udp', enabled: false } }
  },
  'delete /trunks/{trunk_id}/termination-uris/{target_id}': async w => {
    const { trunk: made, etag } = await trunk(w)
    return { params: { trunk_id: made.id, target_id: made.routes[0].id }, etag }
  },
  'get /metrics/series': async () => ({ query: 'window=1h' }),
  'get /trunks/{trunk_id}/metrics': async w => ({ ...(await onTrunk()(w)), query: 'window=7d' }),
  'get /calls': async () => ({ query: 'limit=2&direction=outbound-api&call_id=CA0&reason=capacity_exhausted' }),
  'get /call-faults': async () => ({ query: 'limit=2' }),
  'get /metrics': async () => ({ query: 'window=1h' }),
  'post /voice/documents': async () => ({ body: { name: `Document ${unique()}`, content: '<Response/>' } }),
  'patch /voice/documents/{voice_document_id}': onVoiceDocument({ content: '<Response><Hangup/></Response>' }),
  'post /voice/documents/{voice_document_id}/rollback': onVoiceDocument({ revision: 1 }),
  'get /conferences': async () => ({ query: 'limit=2&status=in-progress' }),
  'post /conferences/{conference_id}/announce': onConference({ url: 'https://app.example.com/news.wav' }),
  'post /conferences/{conference_id}/participants': async w => ({
    ...(await onConference()(w)),
    body: { from: w.demo.numbers[0] ?? '', to: '+2348030000001', label: 'guest' },
  }),
  'patch /conferences/{conference_id}/participants/{participant_id}': onParticipant({ muted: true }),
  'post /conferences/{conference_id}/participants/{participant_id}/announce': onParticipant({
    url: 'https://app.example.com/news.wav',
  }),
  'get /queues': async () => ({ query: 'limit=2' }),
  'post /queues': async () => ({ body: { name: `Queue ${unique()}`, max_size: 5 } }),
  'patch /queues/{queue_id}': onQueue({ max_size: 7 }),
  'post /live-calls/{call_id}/recordings': async w => {
    await acceptConsent(w)
    return { ...(await onTalking(w)), body: { channels: 2 } }
  },
  'post /live-calls/{call_id}/listen': async w => {
    await acceptConsent(w)
    return onTalking(w)
  },
  'put /organization/listening-notice': inTurn({ listening_notice: 'spoken' }, { listening_notice: 'tone' }),
  'post /live-calls/{call_id}/transfer': async w => ({
    ...(await onTalking(w)),
    body: { to: '+2348030000008' },
  }),
  'post /recordings/{recording_id}/pause': onRunning({ behavior: 'skip' }),
  'post /recordings/{recording_id}/resume': onRunning(),
  'post /recordings/{recording_id}/stop': onRunning(),
  'get /recordings': async () => ({ query: 'limit=2&status=completed' }),
  'put /recordings/{recording_id}/retention': async w => ({ ...(await onRecording(w)), body: { retention_days: 90 } }),
  'get /recordings/retention-jobs': async () => ({ query: 'limit=2' }),
  'post /recordings/retention-jobs': inTurn({ retention_days: 30 }, { retention_days: 90 }),
  'get /recordings/retention-jobs/{job_id}': async w => {
    const { body } = await post(w, '/v1/recordings/retention-jobs', { retention_days: 365 })
    return { params: { job_id: body.id } }
  },
  'get /exports': async () => ({ query: 'limit=2' }),
  'post /exports': async w => {
    await withoutExports(w)
    return { body: { format: 'csv', filter: { number: String(unique() + 1000) } } }
  },
  'post /exports/{export_id}/links': onExport({ valid_seconds: 600 }),
  'get /number-blocks/{block_id}': async w => ({ params: { block_id: (await block(w)).id } }),
  'delete /number-blocks/{block_id}': async w => ({ params: { block_id: (await block(w)).id } }),
  'post /markup/check': async () => ({ body: { markup: `<Response><Say>${unique()}</Say></Response>` } }),
  'post /trunks/{trunk_id}/subtrunks': async w => {
    const { params } = await onTrunk()(w)
    return { ...(params ? { params } : {}), body: { name: 'Share', status: 'enabled', configuration: ceilings(1) } }
  },
  'patch /trunks/{trunk_id}/subtrunks/{subtrunk_id}': onSubtrunk({ name: 'Other', configuration: ceilings(null) }),
  'delete /trunks/{trunk_id}/subtrunks/{subtrunk_id}': onSubtrunk({ confirm_name: 'Share' }),
  'post /trunks/{trunk_id}/subtrunks/{subtrunk_id}/delegations': async w => {
    const made = await onSubtrunk()(w)
    return { ...made, body: { block_id: (await block(w)).id } }
  },
  'delete /trunks/{trunk_id}/subtrunks/{subtrunk_id}/delegations/{delegation_id}': async w => {
    const { params = {}, etag = '' } = await onSubtrunk()(w)
    const path = `/v1/trunks/${params['trunk_id']}/subtrunks/${params['subtrunk_id']}/delegations`
    const made = await post(w, path, { block_id: (await block(w)).id }, { 'If-Match': etag })
    return { params: { ...params, delegation_id: made.body.id }, etag: made.etag }
  },
  'post /outbound-policies': async () => ({ body: policyBody() }),
  'patch /outbound-policies/{policy_id}': onPolicy(policyBody()),
  'patch /outbound-policies/{policy_id}/destination-rules': onPolicy({
    rules: [{ kind: 'country', op: 'allow', value: 'NG', label: null }],
  }),
  'put /trunks/{trunk_id}/outbound-policy': async w => onTrunk(await attaching(w))(w),
  'put /trunks/{trunk_id}/subtrunks/{subtrunk_id}/outbound-policy': async w => onSubtrunk(await attaching(w))(w),
  'put /voice/applications/{application_id}/outbound-policy': async w => onApplication(await attaching(w))(w),
  'put /voice-account/outbound-policy': async w => {
    const { headers } = await w.ask('GET', '/v1/voice-account')
    return { etag: headers.get('etag') ?? '', body: await attaching(w) }
  },
  'post /client-tokens': async () => ({ body: { identity: `ada-${unique()}`, allowed: ['out'], ttl_seconds: 600 } }),
  'post /voice/applications': async () => ({ body: applicationBody() }),
  'patch /voice/applications/{application_id}': onApplication({ name: 'Other', fallback_url: null }),
  'put /numbers/{number_id}/route': async w => {
    const { body } = await post(w, '/v1/voice/applications', applicationBody())
    return onNumber({ kind: 'voice_application', id: body.id })(w)
  },
  'post /number-orders': async w => ({ body: { numbers: [(await insertNumber(w, null)).e164] } }),
  'get /number-orders': async () => ({ query: 'limit=2' }),
  'get /number-orders/{order_id}': async w => {
    const { body } = await post(w, '/v1/number-orders', { numbers: [(await insertNumber(w, null)).e164] })
    return { params: { order_id: body.id } }
  },
  'get /billing/usage': async () => ({ query: 'group_by=trunk' }),
  'post /number-blocks': async w => {
    const { e164 } = await insertNumber(w, w.demo.project_id)
    return { body: { start: e164, end: e164 } }
  },
  'post /number-blocks/{block_id}/delegate': async w => {
    const { params = {} } = await onSubtrunk()(w)
    return { params: { block_id: (await block(w)).id }, body: { subtrunk_id: params['subtrunk_id'] } }
  },
  'post /subaccounts': async () => ({ body: subaccountBody() }),
  'patch /subaccounts/{subaccount_id}': onSubaccount(() => ({ name: 'Other', configuration: { max_cps: 3 } })),
  'post /subaccounts/{subaccount_id}/suspend': onSubaccount(name => ({ confirm_name: name })),
  'post /subaccounts/{subaccount_id}/resume': onSubaccount(name => ({ confirm_name: name })),
  'get /rates/lookup': async () => ({ query: 'destination=%2B2348030000001' }),
  'post /admission/dry-run': async w => ({
    body: {
      service_type: 'automation',
      service_id: `x${unique()}`,
      called: '+2348030000001',
      caller: w.demo.numbers[0] ?? '',
    },
  }),
  'post /trunks/{trunk_id}/tests': onTrunk({ kind: 'config_validation' }),
  'get /trunks/{trunk_id}/tests/{run_id}': async w => {
    const { id } = await trunk(w)
    const { body } = await post(w, `/v1/trunks/${id}/tests`, { kind: 'test_call', destination: '+2348030000001' })
    return { params: { trunk_id: id, run_id: body.run.id }, query: 'after_sequence=0' }
  },
  'get /alerts': async () => ({ query: 'range=7d' }),
  'patch /alerts/policies/{policy_id}': async w => {
    const { body } = await w.ask('GET', '/v1/alerts/policies')
    const policy = body.data.find((one: { kind: string }) => one.kind === 'balance_low')
    const threshold = { amount_minor: policy.threshold.amount_minor + 1000 }
    return { params: { policy_id: policy.id }, etag: `"${policy.revision}"`, body: { threshold } }
  },
  'put /alerts/settings': async () => ({
    body: { email_recipients: [`a${unique()}@example.com`], sms_recipients: [], quiet_from: null, quiet_to: null },
  }),
  'post /alerts/{alert_id}/acknowledge': async w => ({ params: { alert_id: await insertTestAlert(w) } }),
  'get /containments': async () => ({ query: 'open=true' }),
  'get /containments/{containment_id}/release-requests': async w => ({
    params: { containment_id: await insertTestContainment(w) },
  }),
  'post /containments/{containment_id}/release-requests': async w => ({
    params: { containment_id: await insertTestContainment(w) },
    body: { note: 'It is our own campaign.' },
  }),
  'get /audit': async () => ({ query: 'range=all&limit=5' }),
  'get /audit/{event_id}': async w => {
    await trunk(w)
    const { body } = await w.ask('GET', '/v1/audit?limit=1')
    return { params: { event_id: body.data[0].id } }
  },
  'post /webhook-endpoints': async () => ({ body: endpointBody() }),
  'patch /webhook-endpoints/{endpoint_id}': onEndpoint({ description: 'changed', enabled: true }),
  'post /webhook-endpoints/{endpoint_id}/deliveries/{delivery_id}/redeliver': async w => {
    const { params = {} } = await onEndpoint()(w)
    const { body } = await post(w, `/v1/webhook-endpoints/${params['endpoint_id']}/test`, undefined)
    await w.state.db.updateTable('webhook_delivery').set({ state: 'failed' }).where('id', '=', body.id).execute()
    return { params: { ...params, delivery_id: body.id } }
  },
}

export const nameOf = (route: Pick<Route, 'method' | 'path'>): string => `${route.method} ${route.path}`

/** Returns the recipe of one successful request to a route. */
export function recipeOf(route: Route): Recipe {
  const [, thing = ''] = /.*\{(\w+)\}/.exec(route.path) ?? []
  const recipe = RECIPES[nameOf(route)] ?? (thing === '' ? async () => ({}) : THINGS[thing])
  if (!recipe) throw new Error(`${nameOf(route)}: recipes.ts has no recipe for {${thing}}`)
  return recipe
}

/** Deletes earlier exports: a project has only a few at a time. */
const withoutExports = (w: ControlPlane) =>
  w.state.db.deleteFrom('call_export').where('project_id', '=', w.demo.project_id).execute()

/** A completed export with its file. */
function onExport(body?: Record<string, unknown>): Recipe {
  return async w => {
    await withoutExports(w)
    const made = await post(w, '/v1/exports', { format: 'csv' })
    const writing = callExports({ niceness: 0 })
    await writing.run(w)
    await writing.stop?.()
    return { params: { export_id: made.body.id }, ...(body ? { body } : {}) }
  }
}

function onSubtrunk(body?: Record<string, unknown>): Recipe {
  return async w => {
    const { id } = await trunk(w)
    const made = await post(w, `/v1/trunks/${id}/subtrunks`, { name: 'Share', status: 'enabled' })
    return { params: { trunk_id: id, subtrunk_id: made.body.id }, etag: made.etag, ...(body ? { body } : {}) }
  }
}

/** Returns a subtrunk's ceilings. The API requires all of them together. */
function ceilings(cps: number | null): Record<string, unknown> {
  return {
    concurrency: null,
    cps,
    daily_spend_cap_minor: null,
    velocity_cap_minor: null,
    max_call_duration_seconds: null,
    max_destination_rate_minor: null,
  }
}

function policyBody(): Record<string, unknown> {
  return {
    name: `Policy ${unique()}`,
    recording_channels: 2,
    recording_mode: 'off',
    recording_retention_days: 30,
    concurrency: 5,
    daily_spend_limit_minor: null,
  }
}

/** Returns a body that attaches a new policy. */
async function attaching(w: ControlPlane): Promise<Record<string, unknown>> {
  const { body } = await post(w, '/v1/outbound-policies', policyBody())
  return { policy_id: body.id, note: 'as agreed', outbound_enabled: true }
}

function onPolicy(body?: Record<string, unknown>): Recipe {
  return async w => {
    const made = await post(w, '/v1/outbound-policies', policyBody())
    return { params: { policy_id: made.body.id }, etag: made.etag, ...(body ? { body } : {}) }
  }
}

function applicationBody(): Record<string, unknown> {
  return { name: `App ${unique()}`, voice_method: 'POST', voice_url: 'https://app.example.com/voice' }
}

function onApplication(body?: Record<string, unknown>): Recipe {
  return async w => {
    const made = await post(w, '/v1/voice/applications', applicationBody())
    return { params: { application_id: made.body.id }, etag: made.etag, ...(body ? { body } : {}) }
  }
}

function subaccountBody(): Record<string, unknown> {
  return { name: `Branch ${unique()}`, configuration: { currency: 'NGN', max_concurrent: 3 } }
}

function onSubaccount(body?: (name: string) => Record<string, unknown>): Recipe {
  return async w => {
    const made = await post(w, '/v1/subaccounts', subaccountBody())
    const params = { subaccount_id: made.body.id }
    return { params, etag: made.etag, ...(body ? { body: body(made.body.name) } : {}) }
  }
}

function endpointBody(): Record<string, unknown> {
  return { url: `https://app.example.com/hook/${unique()}`, event_kinds: ['call.ended'] }
}

function onEndpoint(body?: Record<string, unknown>): Recipe {
  return async w => {
    // Delete earlier endpoints: a project has at most twenty.
    await w.state.db
      .updateTable('webhook_endpoint')
      .set({ deleted_at: 'x' })
      .where('project_id', '=', w.demo.project_id)
      .execute()
    const made = await post(w, '/v1/webhook-endpoints', endpointBody())
    return { params: { endpoint_id: made.body.endpoint.id }, etag: made.etag, ...(body ? { body } : {}) }
  }
}

async function insertNumber(w: ControlPlane, project_id: string | null) {
  const now = new Date().toISOString()
  const row = {
    id: newId.number(),
    e164: `+23470${String(unique()).padStart(8, '0')}`,
    project_id,
    status: project_id === null ? ('available' as const) : ('held' as const),
    route_kind: null,
    route_id: null,
    quarantined_until: null,
    revision: 1,
    created_at: now,
    updated_at: now,
  }
  await w.state.db.insertInto('number').values(row).execute()
  return row
}

function onNumber(body?: Record<string, unknown>): Recipe {
  return async w => {
    const { id } = await insertNumber(w, w.demo.project_id)
    return { params: { number_id: id }, etag: '"1"', ...(body ? { body } : {}) }
  }
}

async function block(w: ControlPlane): Promise<{ id: string }> {
  const { e164 } = await insertNumber(w, w.demo.project_id)
  return (await post(w, '/v1/number-blocks', { start: e164, end: e164 })).body
}

/** A call that talks. */
async function onTalking(w: ControlPlane): Promise<Made> {
  const made = await onCall(w)
  const sid = made.params?.['call_id'] ?? ''
  await w.state.db.updateTable('call').set({ status: 'in-progress' }).where('sid', '=', sid).execute()
  return made
}

async function onCall(w: ControlPlane): Promise<Made> {
  await openSandbox(w)
  const form = { To: '+2348030000001', From: w.demo.numbers[0] ?? '', Twiml: '<Response/>' }
  const { body, status, text } = await w.voice('POST', '/Calls.json', form)
  if (status !== 201) throw new Error(text)
  return { params: { call_id: body.sid } }
}

async function onRecording(w: ControlPlane): Promise<Made> {
  const { params = {} } = await onCall(w)
  return { params: { recording_id: await addRecording(w, params['call_id'] ?? '') } }
}

function onVoiceDocument(body?: Record<string, unknown>): Recipe {
  return async w => {
    const content = '<Response><Say>Hello {{From}}</Say></Response>'
    const made = await post(w, '/v1/voice/documents', { name: `Document ${unique()}`, content })
    return { params: { voice_document_id: made.body.id }, etag: made.etag, ...(body ? { body } : {}) }
  }
}

async function inConference(w: ControlPlane) {
  const { params = {} } = await onCall(w)
  const participant_id = params['call_id'] ?? ''
  return { participant_id, conference_id: await addConference(w, participant_id, `Room ${unique()}`) }
}

function onConference(body?: Record<string, unknown>): Recipe {
  return async w => ({
    params: { conference_id: (await inConference(w)).conference_id },
    ...(body ? { body } : {}),
  })
}

function onParticipant(body?: Record<string, unknown>): Recipe {
  return async w => ({ params: await inConference(w), etag: '"1"', ...(body ? { body } : {}) })
}

function onQueue(body?: Record<string, unknown>): Recipe {
  return async w => {
    const queue_id = await addQueue(w, `Queue ${unique()}`, null)
    return { params: { queue_id }, etag: '"1"', ...(body ? { body } : {}) }
  }
}

async function onMember(w: ControlPlane): Promise<Made> {
  const { params = {} } = await onCall(w)
  const waiting_call_id = params['call_id'] ?? ''
  const queue_id = await addQueue(w, `Queue ${unique()}`, waiting_call_id)
  return { params: { queue_id, waiting_call_id }, body: { url: 'https://app.example.com/next' } }
}

function onRunning(body?: Record<string, unknown>): Recipe {
  return async w => {
    const { params = {} } = await onCall(w)
    const recording_id = await addRecording(w, params['call_id'] ?? '', 'in-progress')
    return { params: { recording_id }, ...(body ? { body } : {}) }
  }
}

async function onStatement(w: ControlPlane): Promise<Made> {
  const { body } = await w.ask('GET', '/v1/billing/documents')
  return { params: { document_id: body.data[0].id } }
}

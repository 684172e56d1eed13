import { newId } from '../../../core/runtime/ids.ts'
import { insertTestAlert, insertTestContainment } from '../../support/alerts.ts'
import { type ControlPlane, freshKey, openSandbox } from '../../support/control-plane.ts'
import { addRecording } from '../../support/recordings.ts'

/** What one successful request to a route needs, made afresh at each call. */
export interface Made {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: Record<string, unknown>
  /** ETag of what If-Match names. */
  readonly etag?: string
}

type Recipe = (w: ControlPlane) => Promise<Made>

let made = 0
const unique = (): number => ++made

/** A source range that no other trunk of the test has. */
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

/** A trunk and what the path of a route on it needs. */
const onTrunk =
  (body?: Record<string, unknown>): Recipe =>
  async w => {
    const { id, etag } = await trunk(w)
    return { params: { trunk_id: id }, etag, ...(body ? { body } : {}) }
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

export const RECIPES: Readonly<Record<string, Recipe>> = {
  'get /projects': async () => ({}),
  'get /trunks': async () => ({}),
  'post /trunks': async () => ({ body: trunkBody() }),
  'get /trunks/{trunk_id}': onTrunk(),
  'patch /trunks/{trunk_id}': onTrunk(settings()),
  'delete /trunks/{trunk_id}': async w => {
    const { id, name, etag } = await trunk(w)
    return { params: { trunk_id: id }, etag, body: { confirm_name: name } }
  },
  'post /trunks/{trunk_id}/suspend': onTrunk(),
  'post /trunks/{trunk_id}/resume': onTrunk(),
  'get /trunks/{trunk_id}/ip-credentials': onTrunk(),
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
  'get /trunks/{trunk_id}/digest-credentials': onTrunk(),
  'post /trunks/{trunk_id}/digest-credentials': onTrunk({ realm: 'sip.example.com' }),
  'delete /trunks/{trunk_id}/digest-credentials/{credential_id}': credential,
  'post /trunks/{trunk_id}/digest-credentials/{credential_id}/rotate': credential,
  'get /trunks/{trunk_id}/termination-uris': onTrunk(),
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
  'get /trunks/{trunk_id}/metrics': async w => ({ ...(await onTrunk()(w)), query: 'window=7d' }),
  'get /trunks/{trunk_id}/diagnostics': onTrunk(),
  'get /calls': async () => ({ query: 'limit=2&direction=outbound-api' }),
  'get /calls/{call_id}': onCall,
  'get /calls/{call_id}/ladder': onCall,
  'get /calls/{call_id}/decision': onCall,
  'get /calls/{call_id}/media': onCall,
  'get /metrics': async () => ({ query: 'window=1h' }),
  'get /live-calls': async () => ({}),
  'get /recordings': async () => ({ query: 'limit=2&status=completed' }),
  'get /recordings/{recording_id}': onRecording,
  'get /recordings/{recording_id}.wav': onRecording,
  'put /recordings/{recording_id}/retention': async w => ({ ...(await onRecording(w)), body: { retention_days: 90 } }),
  'get /recordings/retention-jobs': async () => ({ query: 'limit=2' }),
  'post /recordings/retention-jobs': async () => ({ body: { retention_days: unique() % 2 ? 30 : 90 } }),
  'get /recordings/retention-jobs/{job_id}': async w => {
    const { body } = await post(w, '/v1/recordings/retention-jobs', { retention_days: 365 })
    return { params: { job_id: body.id } }
  },
  'delete /recordings/{recording_id}': onRecording,
  'post /markup/check': async () => ({ body: { markup: `<Response><Say>${unique()}</Say></Response>` } }),
  'post /live-calls/{call_id}/hang-up': onCall,
  'get /organization': async () => ({}),
  'get /trunks/{trunk_id}/subtrunks': onTrunk(),
  'post /trunks/{trunk_id}/subtrunks': async w => {
    const { params } = await onTrunk()(w)
    return { ...(params ? { params } : {}), body: { name: 'Share', status: 'enabled', configuration: ceilings(1) } }
  },
  'get /trunks/{trunk_id}/subtrunks/{subtrunk_id}': onSubtrunk(),
  'patch /trunks/{trunk_id}/subtrunks/{subtrunk_id}': onSubtrunk({ name: 'Other', configuration: ceilings(null) }),
  'delete /trunks/{trunk_id}/subtrunks/{subtrunk_id}': onSubtrunk({ confirm_name: 'Share' }),
  'post /trunks/{trunk_id}/subtrunks/{subtrunk_id}/suspend': onSubtrunk(),
  'post /trunks/{trunk_id}/subtrunks/{subtrunk_id}/resume': onSubtrunk(),
  'get /trunks/{trunk_id}/subtrunks/{subtrunk_id}/delegations': onSubtrunk(),
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
  'get /outbound-policies': async () => ({}),
  'post /outbound-policies': async () => ({ body: policyBody() }),
  'get /outbound-policies/{policy_id}': onPolicy(),
  'patch /outbound-policies/{policy_id}': onPolicy(policyBody()),
  'delete /outbound-policies/{policy_id}': onPolicy(),
  'get /outbound-policies/{policy_id}/attachments': onPolicy(),
  'patch /outbound-policies/{policy_id}/destination-rules': onPolicy({
    rules: [{ kind: 'country', op: 'allow', value: 'NG', label: null }],
  }),
  'put /trunks/{trunk_id}/outbound-policy': async w => {
    const { body } = await post(w, '/v1/outbound-policies', policyBody())
    return onTrunk({ policy_id: body.id })(w)
  },
  'get /voice/applications': async () => ({}),
  'post /voice/applications': async () => ({ body: applicationBody() }),
  'get /voice/applications/{application_id}': onApplication(),
  'patch /voice/applications/{application_id}': onApplication({ name: 'Other', fallback_url: null }),
  'delete /voice/applications/{application_id}': onApplication(),
  'get /voice/applications/{application_id}/numbers': onApplication(),
  'get /voice-account': async () => ({}),
  'get /numbers': async () => ({}),
  'get /numbers/available': async () => ({}),
  'get /numbers/{number_id}': onNumber(),
  'put /numbers/{number_id}/route': async w => {
    const { body } = await post(w, '/v1/voice/applications', applicationBody())
    return onNumber({ kind: 'voice_application', id: body.id })(w)
  },
  'post /numbers/{number_id}/release': onNumber(),
  'post /number-orders': async w => ({ body: { numbers: [(await insertNumber(w, null)).e164] } }),
  'get /number-orders': async () => ({ query: 'limit=2' }),
  'get /number-orders/{order_id}': async w => {
    const { body } = await post(w, '/v1/number-orders', { numbers: [(await insertNumber(w, null)).e164] })
    return { params: { order_id: body.id } }
  },
  'get /billing/balance': async () => ({}),
  'get /billing/usage': async () => ({ query: 'group_by=trunk' }),
  'get /billing/documents': async () => ({}),
  'get /billing/documents/{document_id}': onStatement,
  'get /billing/documents/{document_id}.pdf': onStatement,
  'get /number-blocks': async () => ({}),
  'post /number-blocks': async w => {
    const { e164 } = await insertNumber(w, w.demo.project_id)
    return { body: { start: e164, end: e164 } }
  },
  'post /number-blocks/{block_id}/delegate': async w => {
    const { params = {} } = await onSubtrunk()(w)
    return { params: { block_id: (await block(w)).id }, body: { subtrunk_id: params['subtrunk_id'] } }
  },
  'get /subaccounts': async () => ({}),
  'post /subaccounts': async () => ({ body: subaccountBody() }),
  'get /subaccounts/{subaccount_id}': onSubaccount(),
  'patch /subaccounts/{subaccount_id}': onSubaccount(() => ({ name: 'Other', configuration: { max_cps: 3 } })),
  'post /subaccounts/{subaccount_id}/suspend': onSubaccount(name => ({ confirm_name: name })),
  'post /subaccounts/{subaccount_id}/resume': onSubaccount(name => ({ confirm_name: name })),
  'get /rates/coverage': async () => ({}),
  'get /rates/lookup': async () => ({ query: 'destination=%2B2348030000001' }),
  'post /admission/dry-run': async w => ({
    body: {
      service_type: 'automation',
      service_id: `x${unique()}`,
      called: '+2348030000001',
      caller: w.demo.numbers[0] ?? '',
    },
  }),
  'get /trunks/{trunk_id}/tests': onTrunk(),
  'post /trunks/{trunk_id}/tests': onTrunk({ kind: 'config_validation' }),
  'get /trunks/{trunk_id}/tests/{run_id}': async w => {
    const { id } = await trunk(w)
    const { body } = await post(w, `/v1/trunks/${id}/tests`, { kind: 'test_call', destination: '+2348030000001' })
    return { params: { trunk_id: id, run_id: body.run.id }, query: 'after_sequence=0' }
  },
  'get /alerts': async () => ({ query: 'range=7d' }),
  'get /alerts/policies': async () => ({}),
  'patch /alerts/policies/{policy_id}': async w => {
    const { body } = await w.ask('GET', '/v1/alerts/policies')
    const policy = body.data.find((one: { kind: string }) => one.kind === 'balance_low')
    const threshold = { amount_minor: 400_000 + unique() }
    return { params: { policy_id: policy.id }, etag: `"${policy.revision}"`, body: { threshold } }
  },
  'get /alerts/settings': async () => ({}),
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
  'get /webhook-endpoints': async () => ({}),
  'post /webhook-endpoints': async () => ({ body: endpointBody() }),
  'get /webhook-endpoints/{endpoint_id}': onEndpoint(),
  'patch /webhook-endpoints/{endpoint_id}': onEndpoint({ description: 'changed', enabled: true }),
  'delete /webhook-endpoints/{endpoint_id}': onEndpoint(),
  'get /webhook-endpoints/{endpoint_id}/deliveries': onEndpoint(),
  'post /webhook-endpoints/{endpoint_id}/test': onEndpoint(),
  'post /webhook-endpoints/{endpoint_id}/deliveries/{delivery_id}/redeliver': async w => {
    const { params = {} } = await onEndpoint()(w)
    const { body } = await post(w, `/v1/webhook-endpoints/${params['endpoint_id']}/test`, undefined)
    await w.state.db.updateTable('webhook_delivery').set({ state: 'failed' }).where('id', '=', body.id).execute()
    return { params: { ...params, delivery_id: body.id } }
  },
  'get /platform/endpoints': async () => ({}),
  'get /destination-countries': async () => ({}),
}

function onSubtrunk(body?: Record<string, unknown>): Recipe {
  return async w => {
    const { id } = await trunk(w)
    const made = await post(w, `/v1/trunks/${id}/subtrunks`, { name: 'Share', status: 'enabled' })
    return { params: { trunk_id: id, subtrunk_id: made.body.id }, etag: made.etag, ...(body ? { body } : {}) }
  }
}

/** Of a subtrunk: they are always sent together. */
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
    // A project has at most twenty.
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

async function onStatement(w: ControlPlane): Promise<Made> {
  const { body } = await w.ask('GET', '/v1/billing/documents')
  return { params: { document_id: body.data[0].id } }
}

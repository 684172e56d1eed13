import { type ControlPlane, freshKey } from '../../support/control-plane.ts'

/** What one successful request to a route needs, made afresh at each call. */
export interface Made {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: Record<string, unknown>
  /** ETag of what If-Match names. */
  readonly etag?: string
}

export type Recipe = (w: ControlPlane) => Promise<Made>

let made = 0
export const unique = (): number => ++made

/** A source range that no other trunk of the test has. */
const freshSource = (): string => `10.${(unique() >> 8) & 255}.${made & 255}.0/24`

export const trunkBody = (changes: object = {}): Record<string, unknown> => ({
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

export async function post(w: ControlPlane, path: string, body: unknown, headers: Record<string, string> = {}) {
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
}

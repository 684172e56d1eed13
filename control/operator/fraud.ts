import { ALERT_KINDS } from '../../core/domain/alerts/types.ts'
import { type AlertRow, listAllAlerts } from '../../core/state/alerts/alerts.ts'
import {
  type ContainmentRow,
  findAnyContainment,
  listAllContainments,
  listAllReleaseRequests,
  type ReleaseRequestRow,
} from '../../core/state/alerts/containments.ts'
import { ownerOfTrunk } from '../../core/state/configuration/trunks.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { namesOfProjects } from '../../core/state/people/customers.ts'
import { acknowledge, acknowledgedChange } from '../alerts/acknowledge.ts'
import {
  ContainedPrefix,
  ContainedSeconds,
  ContainmentCategory,
  ContainmentReason,
  closePrefix,
  containmentChange,
  decideRequest,
  openPrefix,
} from '../alerts/fraud-desk.ts'
import { pageOf, pageQuery, readCursor } from '../http/paging.ts'
import { type Change, invalid, isRefusal } from '../http/reply.ts'
import { Flag, input, nullable, oneOf, optional, pageSchema, resource, type Static, Type } from '../http/schema.ts'
import {
  Alert,
  Containment,
  presentAlert,
  presentContainments,
  presentRequest,
  ReleaseRequest,
} from '../v1/alert-present.ts'
import { customerOf } from './customer-of.ts'
import { route } from './route.ts'

const MAX_PAGE = 200
const DEFAULT_PAGE = 50
const Id = Type.String({ minLength: 1, maxLength: 128 })
/** Who decided, as the customer reads it: no operator is named to a customer. */
const OPERATOR = 'operator'

/** Whose something is. */
const OfProject = { project_id: Type.String(), project_name: Type.String() }

/** Returns whose each row is. */
async function projectsOf(db: Db | Trx, rows: readonly { readonly project_id: string }[]) {
  const names = await namesOfProjects(db, [...new Set(rows.map(({ project_id }) => project_id))])
  return (of: { readonly project_id: string }) => {
    const { project_id } = of
    return { project_id, project_name: names.get(project_id) ?? '' }
  }
}

const OperatorAlert = resource('OperatorAlert', {
  ...Alert.properties,
  organization_id: Type.String(),
  ...OfProject,
})

/** Returns how alerts are shown, of which these are all. */
async function alertsShown(db: Db | Trx, rows: readonly AlertRow[]) {
  const project = await projectsOf(db, rows)
  return (row: AlertRow): Static<typeof OperatorAlert> => {
    const { organization_id } = row
    return { ...presentAlert(row), organization_id, ...project(row) }
  }
}

const OperatorContainment = resource('OperatorContainment', { ...Containment.properties, ...OfProject })

async function presentAll(
  db: Db | Trx,
  rows: readonly ContainmentRow[],
): Promise<Static<typeof OperatorContainment>[]> {
  const [shown, project] = [await presentContainments(db, rows), await projectsOf(db, rows)]
  return rows.flatMap((row, at) => (shown[at] ? [{ ...shown[at], ...project(row) }] : []))
}

async function presentOne(db: Trx, row: ContainmentRow): Promise<Static<typeof OperatorContainment>> {
  const [shown] = await presentAll(db, [row])
  if (!shown) throw new Error(`the containment ${row.id} cannot be shown`)
  return shown
}

const OperatorReleaseRequest = resource('OperatorReleaseRequest', {
  ...ReleaseRequest.properties,
  containment: nullable(OperatorContainment),
})

async function presentRequests(db: Db, rows: readonly ReleaseRequestRow[]) {
  const shown: Static<typeof OperatorReleaseRequest>[] = []
  for (const row of rows) {
    const containment = await findAnyContainment(db, row.containment_id)
    const [of = null] = containment ? await presentAll(db, [containment]) : []
    shown.push({ ...presentRequest(row), containment: of })
  }
  return shown
}

/** Reads the cursor of a list that is sorted by a time and an id, newest first. */
function beforeOf(cursor: string | undefined) {
  const position = readCursor(cursor, ['string', 'string'])
  if (position === undefined || isRefusal(position)) return position ?? {}
  return { before: { at: position[0], id: position[1] } }
}

export const fraud = [
  route({
    method: 'get',
    path: '/alerts',
    summary: 'List the alerts of all customers, newest first',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(
      {
        ...pageQuery(MAX_PAGE),
        organization_id: optional(Id),
        kind: optional(oneOf(...ALERT_KINDS)),
        state: optional(oneOf('firing', 'acknowledged', 'resolved')),
      },
      { additionalProperties: false },
    ),
    replies: { 200: pageSchema(OperatorAlert) },
    async run({ db, query: { cursor, limit = DEFAULT_PAGE, ...filter } }) {
      const before = beforeOf(cursor)
      if (isRefusal(before)) return before
      const rows = await listAllAlerts(db, { ...filter, ...before, limit: limit + 1 })
      const page = pageOf(rows, limit, row => [row.fired_at, row.id])
      return { status: 200, body: { data: page.shown.map(await alertsShown(db, page.shown)), ...page.more } }
    },
  }),

  route({
    method: 'post',
    path: '/alerts/{alert_id}/acknowledge',
    summary: 'Acknowledge an alert of a customer',
    scope: 'operator:fraud',
    context: 'organization',
    audit: { kind: 'alerts', action: 'alert.acknowledged' },
    replies: { 200: OperatorAlert },
    refusals: ['state_conflict'],
    async run({ db, alert, services }) {
      const { base_url } = services.settings
      const row = await acknowledge(db, alert, { by: OPERATOR, now_ms: services.clock.now(), base_url })
      if (isRefusal(row)) return row
      const change = row === alert ? null : { ...acknowledgedChange(row), ...(await customerOf(db, row.project_id)) }
      const shown = await alertsShown(db, [row])
      return { status: 200, body: shown(row), change, wake: ['outbox'] as const }
    },
  }),

  route({
    method: 'get',
    path: '/containments',
    summary: 'List the prefixes that are or were closed, of all customers, newest first',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(
      { ...pageQuery(MAX_PAGE), project_id: optional(Id), open: optional(Flag) },
      { additionalProperties: false },
    ),
    replies: { 200: pageSchema(OperatorContainment) },
    async run({ db, query: { cursor, limit = DEFAULT_PAGE, open, ...filter }, now }) {
      const before = beforeOf(cursor)
      if (isRefusal(before)) return before
      const asked = { ...filter, ...before, limit: limit + 1, ...(open === true ? { open_at: now } : {}) }
      const page = pageOf(await listAllContainments(db, asked), limit, row => [row.starts_at, row.id])
      return { status: 200, body: { data: await presentAll(db, page.shown), ...page.more } }
    },
  }),

  route({
    method: 'post',
    path: '/containments',
    summary: 'Close a prefix of a trunk, or of a whole project; running calls go on',
    description: 'Exactly one of `trunk_id` and `project_id` says where. A protected number keeps its prefixes open.',
    scope: 'operator:fraud',
    context: 'organization',
    idempotent: true,
    audit: { kind: 'alerts', action: 'containment.opened', category: 'security' },
    body: input('ClosePrefixRequest', {
      prefix: ContainedPrefix,
      reason_category: ContainmentCategory,
      reason_detail: ContainmentReason,
      expires_in_seconds: ContainedSeconds,
      case_ref: optional(nullable(Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9._/-]+$' }))),
      trunk_id: optional(Id),
      project_id: optional(Id),
    }),
    replies: { 201: OperatorContainment },
    refusals: ['state_conflict'],
    async run({ db, body, services }) {
      const { trunk_id = null, project_id = null, ...wanted } = body
      if ((trunk_id === null) === (project_id === null)) return invalid('/trunk_id', 'or project_id says where')
      const trunk = trunk_id === null ? null : await ownerOfTrunk(db, trunk_id)
      if (trunk === undefined) return invalid('/trunk_id', 'is no trunk')
      const of = await customerOf(db, trunk?.project_id ?? project_id)
      const closed_for = of.customer?.project_id ?? null
      if (closed_for === null) return invalid('/project_id', 'is no project')
      const row = await closePrefix(db, { ...wanted, trunk_id, project_id: closed_for }, services.clock.now())
      if (isRefusal(row)) return row
      const detail = `${row.reason_category}: ${row.reason_detail} (${row.case_ref})`
      const change = { ...containmentChange(row, 'containment.opened', `Closed +${row.prefix}`, detail), ...of }
      return { status: 201, body: await presentOne(db, row), change, wake: ['outbox'] as const }
    },
  }),

  route({
    method: 'post',
    path: '/containments/{containment_id}/release',
    summary: 'Open a closed prefix again',
    scope: 'operator:fraud',
    context: 'organization',
    audit: { kind: 'alerts', action: 'containment.released', category: 'security' },
    body: input('OpenPrefixRequest', { reason: ContainmentReason }),
    replies: { 200: OperatorContainment },
    refusals: ['state_conflict'],
    async run({ db, containment, body, services }) {
      const row = await openPrefix(db, containment, { by: OPERATOR, now_ms: services.clock.now() })
      if (isRefusal(row)) return row
      const change: Change = {
        ...containmentChange(row, 'containment.released', `Opened +${row.prefix} again`, body.reason),
        ...(await customerOf(db, row.project_id)),
      }
      return { status: 200, body: await presentOne(db, row), change, wake: ['outbox'] as const }
    },
  }),

  route({
    method: 'get',
    path: '/release-requests',
    summary: 'List the requests of customers to open closed prefixes, newest first',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(
      { ...pageQuery(MAX_PAGE), state: optional(oneOf('pending', 'approved', 'rejected')) },
      { additionalProperties: false },
    ),
    replies: { 200: pageSchema(OperatorReleaseRequest) },
    async run({ db, query: { cursor, limit = DEFAULT_PAGE, ...filter } }) {
      const before = beforeOf(cursor)
      if (isRefusal(before)) return before
      const rows = await listAllReleaseRequests(db, { ...filter, ...before, limit: limit + 1 })
      const page = pageOf(rows, limit, row => [row.requested_at, row.id])
      return { status: 200, body: { data: await presentRequests(db, page.shown), ...page.more } }
    },
  }),

  route({
    method: 'post',
    path: '/release-requests/{request_id}/decide',
    summary: 'Approve or reject a request to open a prefix; an approval opens it',
    scope: 'operator:fraud',
    context: 'organization',
    audit: { kind: 'alerts', action: 'containment.release_decided', category: 'security' },
    body: input('DecideReleaseRequest', {
      decision: oneOf('approved', 'rejected'),
      reason: optional(nullable(ContainmentReason)),
    }),
    replies: { 200: ReleaseRequest },
    refusals: ['state_conflict'],
    async run({ db, release_request: request, body, services }) {
      const reason = body.reason ?? null
      const now_ms = services.clock.now()
      const decided = await decideRequest(db, request, { decision: body.decision, reason, by: OPERATOR }, now_ms)
      if (isRefusal(decided)) return decided
      const row = await findAnyContainment(db, request.containment_id)
      if (!row) throw new Error(`the containment of the release request ${request.id} is gone`)
      const summary = `${body.decision === 'approved' ? 'Approved' : 'Rejected'} the release of +${row.prefix}`
      const change: Change = {
        ...containmentChange(row, `containment.release_${body.decision}`, summary, reason),
        ...(await customerOf(db, row.project_id)),
      }
      return { status: 200, body: presentRequest(decided), change, wake: ['outbox'] as const }
    },
  }),
]

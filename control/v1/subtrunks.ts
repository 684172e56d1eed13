import {
  countSubtrunks,
  insertSubtrunk,
  listDelegations,
  listSubtrunks,
  newSubtrunkId,
  type SubtrunkRow,
  saveSubtrunk,
} from '../../core/state/configuration/subtrunks.ts'
import { refuse } from '../http/reply.ts'
import { input, listOf, Name, oneOf, optional, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'
import {
  presentSubtrunk,
  presentSubtrunkSummary,
  SubtrunkConfigurationInput,
  SubtrunkDetail,
  SubtrunkSummary,
  subtrunkChange,
} from './subtrunk-present.ts'
import { releasing } from './trunk-writes.ts'

/** The ceilings in the examples of the OpenAPI document. */
const CEILINGS = {
  concurrency: 5,
  cps: 1,
  daily_spend_cap_minor: 2_000_000,
  velocity_cap_minor: null,
  max_call_duration_seconds: null,
  max_destination_rate_minor: null,
}

/** The most subtrunks of a project. */
const MAX_SUBTRUNKS = 1000

const LIST = '/trunks/{trunk_id}/subtrunks'
const ONE = '/trunks/{trunk_id}/subtrunks/{subtrunk_id}'

const listRoute = route({
  method: 'get',
  path: LIST,
  summary: 'List the subtrunks of a trunk',
  scope: 'service_configuration:read',
  replies: { 200: listOf(SubtrunkSummary) },
  async run({ db, trunk }) {
    const data: Static<typeof SubtrunkSummary>[] = []
    for (const row of await listSubtrunks(db, trunk.id)) data.push(await presentSubtrunkSummary(db, trunk, row))
    return { status: 200, body: { data } }
  },
})

const createRoute = route({
  method: 'post',
  path: LIST,
  summary: 'Create a subtrunk: a share of a trunk with its own ceilings',
  scope: 'service_configuration:write',
  idempotent: true,
  applies: true,
  audit: { kind: 'trunks', action: 'subtrunk.created' },
  body: input('CreateSubtrunkRequest', {
    name: Name,
    status: oneOf('enabled', 'disabled'),
    configuration: optional(SubtrunkConfigurationInput),
  }),
  replies: { 201: SubtrunkDetail },
  refusals: ['trunk_releasing', 'limit_reached'],
  example: { name: 'Reseller A', status: 'enabled', configuration: CEILINGS },
  async run({ db, project, trunk, body, now, services }) {
    const gone = releasing(trunk)
    if (gone) return gone
    const held = await countSubtrunks(db, project.id)
    if (held >= MAX_SUBTRUNKS)
      return refuse('limit_reached', { name: 'the project', value: `${held} subtrunks`, limit: MAX_SUBTRUNKS })
    const row: SubtrunkRow = {
      id: newSubtrunkId(),
      project_id: project.id,
      trunk_id: trunk.id,
      name: body.name,
      status: body.status,
      concurrency: null,
      cps: null,
      daily_spend_cap_minor: null,
      velocity_cap_minor: null,
      max_call_duration_seconds: null,
      max_destination_rate_minor: null,
      ...body.configuration,
      revision: 1,
      created_at: now,
      updated_at: now,
    }
    await insertSubtrunk(db, row)
    const detail = await presentSubtrunk(db, project, trunk, row, services.clock.now())
    return {
      status: 201,
      revision: 1,
      headers: { Location: `/v1/trunks/${trunk.id}/subtrunks/${row.id}` },
      body: detail,
      change: subtrunkChange(`Created subtrunk ${row.name}`, row, null, detail),
    }
  },
})

const readRoute = route({
  method: 'get',
  path: ONE,
  summary: 'Read a subtrunk',
  scope: 'service_configuration:read',
  replies: { 200: SubtrunkDetail },
  async run({ db, project, trunk, subtrunk, services }) {
    const body = await presentSubtrunk(db, project, trunk, subtrunk, services.clock.now())
    return { status: 200, revision: subtrunk.revision, body }
  },
})

const updateRoute = route({
  method: 'patch',
  path: ONE,
  summary: 'Change the name of a subtrunk, or its ceilings: all of them are sent',
  scope: 'service_configuration:write',
  if_match: 'subtrunk',
  applies: true,
  audit: { kind: 'trunks', action: 'subtrunk.updated' },
  body: input('UpdateSubtrunkRequest', { name: optional(Name), configuration: optional(SubtrunkConfigurationInput) }),
  replies: { 200: SubtrunkDetail },
  refusals: ['state_conflict'],
  async run({ db, project, trunk, subtrunk, body, now, services }) {
    if (subtrunk.status === 'releasing') return refuse('state_conflict', { name: subtrunk.name, value: 'releasing' })
    const now_ms = services.clock.now()
    const before = await presentSubtrunk(db, project, trunk, subtrunk, now_ms)
    const changes = { ...body.configuration, ...(body.name === undefined ? {} : { name: body.name }) }
    const saved = await saveSubtrunk(db, subtrunk, changes, now)
    const after = await presentSubtrunk(db, project, trunk, saved, now_ms)
    const change = subtrunkChange(`Saved subtrunk ${saved.name}`, saved, before, after)
    return { status: 200, revision: saved.revision, body: after, change }
  },
})

const deleteRoute = route({
  method: 'delete',
  path: ONE,
  summary: 'Release a subtrunk without delegations; calls in progress go on',
  scope: 'service_configuration:write',
  if_match: 'subtrunk',
  idempotent: true,
  applies: true,
  audit: { kind: 'trunks', action: 'subtrunk.released' },
  body: input('ReleaseSubtrunkRequest', { confirm_name: Type.String({ maxLength: 240 }) }),
  replies: { 204: null },
  refusals: ['state_conflict', 'confirm_name_mismatch'],
  async run({ db, project, trunk, subtrunk, body, now, services }) {
    if (body.confirm_name !== subtrunk.name) return refuse('confirm_name_mismatch', { value: body.confirm_name })
    if (subtrunk.status === 'releasing') return refuse('state_conflict', { name: subtrunk.name, value: 'releasing' })
    const delegations = (await listDelegations(db, subtrunk.id)).filter(({ status }) => status !== 'detaching')
    if (delegations.length > 0)
      return refuse('state_conflict', {
        name: subtrunk.name,
        value: `in possession of ${delegations.length} delegations`,
      })
    const before = await presentSubtrunk(db, project, trunk, subtrunk, services.clock.now())
    const saved = await saveSubtrunk(db, subtrunk, { status: 'releasing' }, now)
    const change = subtrunkChange(`Released subtrunk ${subtrunk.name}`, saved, before, null)
    return { status: 204, change, wake: ['jobs'] as const }
  },
})

const statusRoute = (action: 'suspend' | 'resume') => {
  const status = action === 'suspend' ? 'disabled' : 'enabled'
  return route({
    method: 'post',
    path: `/trunks/{trunk_id}/subtrunks/{subtrunk_id}/${action}`,
    summary: action === 'suspend' ? 'Stop admitting new calls of a subtrunk' : 'Admit new calls of a subtrunk again',
    scope: 'service_configuration:write',
    if_match: 'subtrunk',
    idempotent: true,
    applies: true,
    audit: { kind: 'trunks', action: `subtrunk.${action === 'suspend' ? 'suspended' : 'resumed'}` },
    replies: { 200: SubtrunkDetail },
    refusals: ['state_conflict'],
    async run({ db, project, trunk, subtrunk, now, services }) {
      if (subtrunk.status === 'releasing') return refuse('state_conflict', { name: subtrunk.name, value: 'releasing' })
      const now_ms = services.clock.now()
      const before = await presentSubtrunk(db, project, trunk, subtrunk, now_ms)
      if (subtrunk.status === status) return { status: 200, revision: subtrunk.revision, body: before, change: null }
      const saved = await saveSubtrunk(db, subtrunk, { status }, now)
      const after = await presentSubtrunk(db, project, trunk, saved, now_ms)
      const summary = `${action === 'suspend' ? 'Suspended' : 'Resumed'} subtrunk ${saved.name}`
      return {
        status: 200,
        revision: saved.revision,
        body: after,
        change: subtrunkChange(summary, saved, before, after),
      }
    },
  })
}

export const subtrunks = [
  listRoute,
  createRoute,
  readRoute,
  updateRoute,
  deleteRoute,
  statusRoute('suspend'),
  statusRoute('resume'),
]

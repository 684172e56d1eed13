import { RECOGNIZERS, VOICES } from '../../core/domain/speech/engines.ts'
import { wrongTarget } from '../../core/domain/webhooks/target.ts'
import { newId } from '../../core/runtime/ids.ts'
import { appliedState } from '../../core/state/configuration/apply.ts'
import type { NumberRow } from '../../core/state/configuration/numbers.ts'
import { detachPolicy } from '../../core/state/configuration/policy-attachments.ts'
import {
  countApplications,
  countNumbersOf,
  insertApplication,
  listApplications,
  numbersOfApplication,
  saveApplication,
  type VoiceApplicationRow,
} from '../../core/state/configuration/voice-applications.ts'
import type { Db } from '../../core/state/index.ts'
import { type Change, invalid, refuse } from '../http/reply.ts'
import {
  Count64,
  described,
  HttpUrl,
  Instant,
  input,
  listOf,
  Name,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import type { ControlSettings } from '../http/services.ts'
import { AttachedPolicy, attachedPolicy } from './attached-policy.ts'
import { route } from './route.ts'

/** The most voice applications of a project. */
const MAX_APPLICATIONS = 1000

const HttpMethod = oneOf('GET', 'POST')
export const ProvisioningStatus = oneOf('pending', 'applying', 'applied', 'partially_applied', 'failed')
const UrlOrNull = nullable(Type.String())

export const VoiceApplication = resource('VoiceApplication', {
  created_at: Instant,
  desired_revision: Count64,
  effective_revision: Count64,
  fallback_method: HttpMethod,
  fallback_url: UrlOrNull,
  id: Type.String(),
  name: Type.String(),
  numbers_pointed: Count64,
  outbound_policy: nullable(AttachedPolicy),
  project_id: Type.String(),
  provisioning_status: ProvisioningStatus,
  revision: Count64,
  status_callback_method: HttpMethod,
  status_callback_url: UrlOrNull,
  stt: described(UrlOrNull, "The engine that hears in calls of the application; null: the operator's choice."),
  tts: described(UrlOrNull, "The engine that speaks in them; null: the operator's choice."),
  updated_at: Instant,
  voice_method: HttpMethod,
  voice_url: Type.String(),
})
type Shown = Static<typeof VoiceApplication>

/** Presents an application with the apply state that the nodes report. */
export async function presentApplication(db: Db, row: VoiceApplicationRow, now: string): Promise<Shown> {
  const applied = await appliedState(db, row, Date.parse(now))
  return {
    created_at: row.created_at,
    desired_revision: row.revision,
    effective_revision: applied.effective_revision,
    fallback_method: row.fallback_method,
    fallback_url: row.fallback_url,
    id: row.id,
    name: row.name,
    numbers_pointed: (await countNumbersOf(db, [row.id])).get(row.id) ?? 0,
    outbound_policy: await attachedPolicy(db, row.project_id, { type: 'voice_application', id: row.id }),
    project_id: row.project_id,
    provisioning_status: applied.state,
    revision: row.revision,
    status_callback_method: row.status_callback_method,
    status_callback_url: row.status_callback_url,
    stt: row.stt,
    tts: row.tts,
    updated_at: row.updated_at,
    voice_method: row.voice_method,
    voice_url: row.voice_url,
  }
}

export const applicationChange = (
  summary: string,
  row: VoiceApplicationRow,
  before: Shown | null,
  after: Shown | null,
): Change => ({
  resource: { type: 'voice_application', id: row.id, name: row.name, href: `/v1/voice/applications/${row.id}` },
  summary,
  before,
  after,
  from_revision: before?.revision ?? null,
  to_revision: row.revision,
})

/** Refuses the first URL of a body that is not an absolute http(s) URL. */
function badUrl(body: Partial<Record<'voice_url' | 'fallback_url' | 'status_callback_url', string | null>>) {
  for (const name of ['voice_url', 'fallback_url', 'status_callback_url'] as const) {
    const url = body[name]
    const wrong = url ? wrongTarget(url) : null
    if (wrong !== null) return invalid(`/${name}`, wrong)
  }
  return null
}

/** Refuses an engine that this installation does not have. */
function badEngine(body: { stt?: string | null; tts?: string | null }, settings: ControlSettings) {
  for (const kind of ['stt', 'tts'] as const) {
    const ready = settings[`${kind}_choices`].map(({ engine }) => engine)
    const wanted = body[kind]
    if (wanted && !ready.some(engine => engine === wanted))
      return invalid(`/${kind}`, `is not ready in this installation, which has ${ready.join(', ') || 'none'}`)
  }
  return null
}

const given = {
  fallback_url: optional(nullable(HttpUrl)),
  fallback_method: optional(HttpMethod),
  status_callback_url: optional(nullable(HttpUrl)),
  status_callback_method: optional(HttpMethod),
  stt: optional(nullable(oneOf(...RECOGNIZERS))),
  tts: optional(nullable(oneOf(...VOICES))),
}

const PATH = '/voice/applications/{application_id}'

const Slice = resource('NumberRouteSlice', { number_id: Type.String(), e164: Type.String(), routed_at: Instant })

const presentSlice = (row: NumberRow): Static<typeof Slice> => ({
  number_id: row.id,
  e164: row.e164,
  routed_at: row.updated_at,
})

export const voiceApplications = [
  route({
    method: 'get',
    path: '/voice/applications',
    summary: 'List the voice applications of the project, by name',
    scope: 'service_configuration:read',
    replies: { 200: listOf(VoiceApplication) },
    async run({ db, project, now }) {
      const data: Shown[] = []
      for (const row of await listApplications(db, project.id)) data.push(await presentApplication(db, row, now))
      return { status: 200, body: { data } }
    },
  }),

  route({
    method: 'post',
    path: '/voice/applications',
    summary: 'Create a voice application',
    scope: 'service_configuration:write',
    idempotent: true,
    applies: true,
    audit: { kind: 'numbers', action: 'voice_application.created' },
    body: input('CreateVoiceApplicationRequest', {
      name: Name,
      voice_method: HttpMethod,
      voice_url: HttpUrl,
      ...given,
    }),
    replies: { 201: VoiceApplication },
    refusals: ['limit_reached'],
    example: {
      name: 'Reception',
      voice_url: 'https://app.example.com/voice',
      voice_method: 'POST',
      fallback_url: null,
      status_callback_url: 'https://app.example.com/status',
    },
    async run({ db, project, body, now, services }) {
      const bad = badUrl(body) ?? badEngine(body, services.settings)
      if (bad) return bad
      const held = await countApplications(db, project.id)
      if (held >= MAX_APPLICATIONS)
        return refuse('limit_reached', { name: 'the project', value: `${held} applications`, limit: MAX_APPLICATIONS })
      const row: VoiceApplicationRow = {
        id: newId.application(),
        project_id: project.id,
        name: body.name,
        voice_url: body.voice_url,
        voice_method: body.voice_method,
        fallback_url: body.fallback_url ?? null,
        fallback_method: body.fallback_method ?? 'POST',
        status_callback_url: body.status_callback_url ?? null,
        status_callback_method: body.status_callback_method ?? 'POST',
        stt: body.stt ?? null,
        tts: body.tts ?? null,
        revision: 1,
        created_at: now,
        updated_at: now,
        deleted_at: null,
      }
      await insertApplication(db, row)
      const shown = await presentApplication(db, row, now)
      return {
        status: 201,
        revision: 1,
        headers: { Location: `/v1/voice/applications/${row.id}` },
        body: shown,
        change: applicationChange(`Created voice application ${row.name}`, row, null, shown),
      }
    },
  }),

  route({
    method: 'get',
    path: PATH,
    summary: 'Read a voice application',
    scope: 'service_configuration:read',
    replies: { 200: VoiceApplication },
    async run({ db, application, now }) {
      return { status: 200, revision: application.revision, body: await presentApplication(db, application, now) }
    },
  }),

  route({
    method: 'patch',
    path: PATH,
    summary: 'Save a voice application; the running nodes take it up in the background',
    scope: 'service_configuration:write',
    if_match: 'application',
    applies: true,
    audit: { kind: 'numbers', action: 'voice_application.updated' },
    body: input('UpdateVoiceApplicationRequest', {
      name: optional(nullable(Name)),
      voice_url: optional(nullable(HttpUrl)),
      voice_method: optional(HttpMethod),
      ...given,
    }),
    replies: { 200: VoiceApplication },
    async run({ db, application, body, now, services }) {
      const bad = badUrl(body) ?? badEngine(body, services.settings)
      if (bad) return bad
      const before = await presentApplication(db, application, now)
      // The name and the voice URL cannot be removed: null keeps them, like omitting them.
      const { name, voice_url, ...rest } = body
      const changes = { ...rest, ...(name ? { name } : {}), ...(voice_url ? { voice_url } : {}) }
      const saved = await saveApplication(db, application, changes, now)
      const after = await presentApplication(db, saved, now)
      return {
        status: 200,
        revision: saved.revision,
        body: after,
        change: applicationChange(`Saved voice application ${saved.name}`, saved, before, after),
      }
    },
  }),

  route({
    method: 'delete',
    path: PATH,
    summary: 'Delete a voice application that no number points to',
    scope: 'service_configuration:write',
    if_match: 'application',
    applies: true,
    audit: { kind: 'numbers', action: 'voice_application.deleted' },
    replies: { 204: null },
    refusals: ['state_conflict'],
    async run({ db, application, now }) {
      const before = await presentApplication(db, application, now)
      if (before.numbers_pointed > 0)
        return refuse('state_conflict', {
          name: application.name,
          value: `what ${before.numbers_pointed} numbers point to`,
        })
      await detachPolicy(db, { type: 'voice_application', id: application.id })
      const gone = await saveApplication(db, application, { deleted_at: now }, now)
      return {
        status: 204,
        change: applicationChange(`Deleted voice application ${application.name}`, gone, before, null),
      }
    },
  }),

  route({
    method: 'get',
    path: `${PATH}/numbers`,
    summary: 'List the numbers that point to a voice application',
    scope: 'service_configuration:read',
    replies: { 200: listOf(Slice) },
    async run({ db, application }) {
      const rows = await numbersOfApplication(db, application.id)
      return { status: 200, body: { data: rows.map(presentSlice) } }
    },
  }),
]

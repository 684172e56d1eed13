import { documentUrl } from '../../core/runtime/document-address.ts'
import { newId } from '../../core/runtime/ids.ts'
import {
  deleteDocument,
  findRevision,
  listDocuments,
  listRevisions,
  saveDocument,
  type VoiceDocumentRevisionRow,
  type VoiceDocumentRow,
} from '../../core/state/configuration/voice-documents.ts'
import type { Trx } from '../../core/state/index.ts'
import { checkDocument } from '../../markup/check.ts'
import { type Change, invalid, isRefusal, notFound, type Refusal, refuse } from '../http/reply.ts'
import {
  Count64,
  described,
  Instant,
  input,
  listOf,
  Name,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import type { Services } from '../http/services.ts'
import { MarkupCheck } from './markup.ts'
import { route } from './route.ts'

/** The limit of documents in calls (design section 6), in characters; the bytes are checked too. */
const MAX_BYTES = 65_536
/** The most documents of a project. */
const MAX_DOCUMENTS = 500

const Content = described(
  Type.String({ minLength: 1, maxLength: MAX_BYTES }),
  'Markup, at most 64 KiB. `{{From}}` stands for the parameter `From` of the request for the document, escaped.',
)
const Text = Type.String()

const fields = {
  id: described(Text, '`doc_` and a UUID.'),
  name: described(Text, 'A project has one document of a name.'),
  revision: Count64,
  check: MarkupCheck,
  created_at: Instant,
  updated_at: Instant,
  updated_by: described(Text, 'Who saved it last.'),
  url: described(
    Text,
    'Where it is served; works as a `voice_url`. Whoever has it may read the document, until that is deleted. Calls of the project read it without HTTP; calls of other projects do not read it.',
  ),
}

const Summary = resource('VoiceDocumentSummary', fields)
const VoiceDocument = resource('VoiceDocument', { ...fields, content: Content })

const Revision = resource('VoiceDocumentRevision', {
  revision: Count64,
  name: Text,
  content: Content,
  saved_at: Instant,
  saved_by: Text,
})

function presentSummary(row: VoiceDocumentRow, { settings }: Pick<Services, 'settings'>): Static<typeof Summary> {
  const url = documentUrl(settings, row.id)
  const { ok, advice } = checkDocument(row.content, { url })
  return {
    id: row.id,
    name: row.name,
    revision: row.revision,
    check: { ok, advice: [...advice] },
    created_at: row.created_at,
    updated_at: row.updated_at,
    updated_by: row.updated_by,
    url,
  }
}

const present = (row: VoiceDocumentRow, services: Pick<Services, 'settings'>): Static<typeof VoiceDocument> => ({
  ...presentSummary(row, services),
  content: row.content,
})

const presentRevision = (row: VoiceDocumentRevisionRow): Static<typeof Revision> => ({
  revision: row.revision,
  name: row.name,
  content: row.content,
  saved_at: row.saved_at,
  saved_by: row.saved_by,
})

/** The address of a document is a secret of its project: the trail does not have it. */
const audited = ({ name, content, revision }: VoiceDocumentRow) => ({ name, content, revision })

const changeOf = (summary: string, before: VoiceDocumentRow | null, after: VoiceDocumentRow | null): Change => {
  const { id = '', name = '' } = after ?? before ?? {}
  return {
    resource: { type: 'voice_document', id, name, href: `/v1/voice/documents/${id}` },
    summary,
    before: before && audited(before),
    after: after && audited(after),
    from_revision: before?.revision ?? null,
    to_revision: after?.revision ?? before?.revision ?? null,
  }
}

/** Writes a document at its next revision, unless its content is too long or another one has the name. */
async function save(
  trx: Trx,
  row: VoiceDocumentRow,
): Promise<VoiceDocumentRow | Refusal<'validation_failed' | 'state_conflict' | 'limit_reached'>> {
  const bytes = Buffer.byteLength(row.content)
  if (bytes > MAX_BYTES) return invalid('/content', `has ${bytes} bytes; at most ${MAX_BYTES} are allowed`)
  const others = (await listDocuments(trx, row.project_id)).filter(({ id }) => id !== row.id)
  if (others.some(({ name }) => name === row.name))
    return refuse('state_conflict', { name: row.name, value: 'the name of another document' })
  if (row.revision === 1 && others.length >= MAX_DOCUMENTS)
    return refuse('limit_reached', { name: 'the project', value: `${others.length} documents`, limit: MAX_DOCUMENTS })
  await saveDocument(trx, row)
  return row
}

const ONE = '/voice/documents/{voice_document_id}'

export const voiceDocuments = [
  route({
    method: 'get',
    path: '/voice/documents',
    summary: 'Saved documents of the project, by name, without their content',
    scope: 'service_configuration:read',
    replies: { 200: listOf(Summary) },
    async run({ db, project, services }) {
      const rows = await listDocuments(db, project.id)
      return { status: 200, body: { data: rows.map(row => presentSummary(row, services)) } }
    },
  }),

  route({
    method: 'post',
    path: '/voice/documents',
    summary: 'Save a new document of markup, which the platform serves',
    description:
      'Its `url` works as the `voice_url` of an application or the `Url` of a call, with no web server anywhere. A document with errors is saved too: `check` tells them.',
    scope: 'service_configuration:write',
    idempotent: true,
    audit: { kind: 'numbers', action: 'voice_document.created' },
    body: input('CreateVoiceDocumentRequest', { name: Name, content: Content }),
    replies: { 201: VoiceDocument },
    refusals: ['state_conflict', 'limit_reached'],
    example: { name: 'Greeting', content: '<Response><Say>Hello {{From}}</Say></Response>' },
    async run({ db, project, body, caller, now, services }) {
      const row = await save(db, {
        id: newId.voiceDocument(),
        project_id: project.id,
        ...body,
        revision: 1,
        created_at: now,
        updated_at: now,
        updated_by: caller.actor.name,
      })
      if (isRefusal(row)) return row
      const headers = { Location: `/v1/voice/documents/${row.id}` }
      const change = changeOf(`Saved the document ${row.name}`, null, row)
      return { status: 201, revision: 1, headers, body: present(row, services), change }
    },
  }),

  route({
    method: 'get',
    path: ONE,
    summary: 'Read a saved document',
    scope: 'service_configuration:read',
    replies: { 200: VoiceDocument },
    async run({ voice_document: row, services }) {
      return { status: 200, revision: row.revision, body: present(row, services) }
    },
  }),

  route({
    method: 'patch',
    path: ONE,
    summary: 'Save a document at its next revision; the calls that begin afterwards run it',
    scope: 'service_configuration:write',
    if_match: 'voice_document',
    audit: { kind: 'numbers', action: 'voice_document.updated' },
    body: input('UpdateVoiceDocumentRequest', { name: optional(Name), content: optional(Content) }),
    replies: { 200: VoiceDocument },
    refusals: ['state_conflict', 'limit_reached'],
    example: { content: '<Response><Say>Good morning {{From}}</Say></Response>' },
    async run({ db, voice_document: before, body, caller, now, services }) {
      const next = { revision: before.revision + 1, updated_at: now, updated_by: caller.actor.name }
      const row = await save(db, { ...before, ...body, ...next })
      if (isRefusal(row)) return row
      const change = changeOf(`Saved the document ${row.name}`, before, row)
      return { status: 200, revision: row.revision, body: present(row, services), change }
    },
  }),

  route({
    method: 'delete',
    path: ONE,
    summary: 'Delete a saved document with its revisions; its URL is 404 from now on',
    scope: 'service_configuration:write',
    if_match: 'voice_document',
    audit: { kind: 'numbers', action: 'voice_document.deleted' },
    replies: { 204: null },
    async run({ db, voice_document: row }) {
      await deleteDocument(db, row.id)
      return { status: 204, change: changeOf(`Deleted the document ${row.name}`, row, null) }
    },
  }),

  route({
    method: 'get',
    path: `${ONE}/revisions`,
    summary: 'The last 100 revisions of a document, newest first',
    scope: 'service_configuration:read',
    replies: { 200: listOf(Revision) },
    async run({ db, voice_document: row }) {
      const rows = await listRevisions(db, row.id)
      return { status: 200, body: { data: rows.map(presentRevision) } }
    },
  }),

  route({
    method: 'post',
    path: `${ONE}/rollback`,
    summary: 'Restore an earlier revision of a document as its next one',
    scope: 'service_configuration:write',
    if_match: 'voice_document',
    audit: { kind: 'numbers', action: 'voice_document.rolled_back' },
    body: input('RollbackVoiceDocumentRequest', {
      revision: described(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), 'One of its revisions.'),
    }),
    replies: { 200: VoiceDocument },
    refusals: ['state_conflict', 'limit_reached'],
    example: { revision: 1 },
    async run({ db, voice_document: before, body, caller, now, services }) {
      const earlier = await findRevision(db, before.id, body.revision)
      if (!earlier) return notFound(`revision ${body.revision} of ${before.name}`)
      const { name, content } = earlier
      const next = { revision: before.revision + 1, updated_at: now, updated_by: caller.actor.name }
      const row = await save(db, { ...before, name, content, ...next })
      if (isRefusal(row)) return row
      const change = changeOf(`Rolled the document ${row.name} back to revision ${body.revision}`, before, row)
      return { status: 200, revision: row.revision, body: present(row, services), change }
    },
  }),
]

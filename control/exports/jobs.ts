import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { machineOf } from '../../core/runtime/machine.ts'
import { MachineFileError } from '../../core/runtime/machine-files.ts'
import { openPlainFile } from '../../core/runtime/plain-file.ts'
import {
  type CallExportRow,
  dropCallExport,
  type ExportOwner,
  exportFile,
  exportUse,
  insertCallExport,
  listCallExports,
} from '../../core/state/calls/call-exports.ts'
import { type HistoryFilter, positionsOfCalls } from '../../core/state/calls/call-history.ts'
import { pathBelow } from '../../core/state/calls/recording-file.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import type { Caller } from '../http/caller.ts'
import { type FileAnswer, fileAnswer } from '../http/file-answer.ts'
import { pageOf, pageQuery, positionOf } from '../http/paging.ts'
import { type Change, isRefusal, type Refusal, refuse } from '../http/reply.ts'
import {
  Count64,
  Instant,
  input,
  nullable,
  oneOf,
  optional,
  pageSchema,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import type { Services } from '../http/services.ts'
import { LINK_SECONDS, linkPath } from './link.ts'

// What /v1/exports and /operator/v1/exports have in common.

/** Bytes that the files of a project's exports may have together. */
export const EXPORT_QUOTA_BYTES = 10_000_000_000
/** Jobs of a project that are not finished, and all that are kept. */
const MAX_OPEN = 3
const MAX_KEPT = 50
const MAX_PAGE = 200
const DEFAULT_PAGE = 50

export const ExportFormat = oneOf('csv', 'jsonl')

export const CallExport = resource('CallExport', {
  id: Type.String(),
  state: oneOf('queued', 'running', 'completed', 'failed'),
  format: ExportFormat,
  filter: Type.Record(Type.String(), Type.String(), { description: 'The filter of the request.' }),
  progress_percent: Type.Integer({ minimum: 0, maximum: 100 }),
  rows: Count64,
  bytes: Count64,
  error: nullable(Type.String(), { description: 'Why it failed.' }),
  begun_by: Type.String(),
  created_at: Instant,
  finished_at: nullable(Instant),
  expires_at: nullable(Instant, { description: 'When the job and its file are deleted.' }),
})
export const CallExportPage = pageSchema(CallExport)
export const ExportsQuery = Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false })

export const LinkRequest = input('ExportLinkRequest', {
  valid_seconds: optional(
    Type.Integer({
      minimum: LINK_SECONDS.least,
      maximum: LINK_SECONDS.most,
      description: `${LINK_SECONDS.usual} unless given; never longer than the key that asks.`,
    }),
  ),
})
export const ExportLink = resource('ExportLink', {
  url: nullable(Type.String(), {
    description: 'Whoever has it may download the file until it expires. Null in a replay.',
  }),
  expires_at: Instant,
})

export function presentExport(row: CallExportRow): Static<typeof CallExport> {
  const { id, format, rows, bytes, error, begun_by, created_at, finished_at, expires_at } = row
  if (row.state === 'deleted') throw new Error(`${id} is deleted`)
  const all = row.last_position - row.first_position
  const done = row.after_position - row.first_position
  const progress_percent = row.state === 'completed' ? 100 : all === 0 ? 0 : Math.floor((99 * done) / all)
  const { subaccount_id: _own, ...filter } = JSON.parse(row.filter)
  return {
    id,
    state: row.state,
    format,
    filter,
    progress_percent,
    rows,
    bytes,
    error,
    begun_by,
    created_at,
    finished_at,
    expires_at,
  }
}

export async function exportPage(
  db: Db,
  owner: ExportOwner,
  query: Static<typeof ExportsQuery>,
): Promise<Static<typeof CallExportPage> | Refusal<'validation_failed'>> {
  const before = positionOf(query.cursor)
  if (isRefusal(before)) return before
  const limit = query.limit ?? DEFAULT_PAGE
  const rows = await listCallExports(db, owner, { limit: limit + 1, ...before })
  const { shown, more } = pageOf(rows, limit, row => [row.position])
  return { data: shown.map(presentExport), ...more }
}

/** Begins a job. Its calls are those that there are now and that have ended when it reads them. */
export async function beginExport(
  db: Trx,
  owner: ExportOwner,
  wish: { readonly format: 'csv' | 'jsonl'; readonly filter: HistoryFilter },
  by: { readonly caller: Caller; readonly now: string; readonly machine_id: string },
): Promise<CallExportRow | Refusal<'limit_reached'>> {
  const use = await exportUse(db, owner.project_id)
  const name = owner.project_id === null ? 'the operator' : 'the project'
  const refused = (value: string, limit: string) => refuse('limit_reached', { name, value, limit })
  if (use.open >= MAX_OPEN) return refused(`${use.open} exports that are not finished`, String(MAX_OPEN))
  if (use.kept >= MAX_KEPT) return refused(`${use.kept} exports`, String(MAX_KEPT))
  if (owner.project_id !== null && use.bytes >= EXPORT_QUOTA_BYTES)
    return refused(`${use.bytes} bytes of exports`, String(EXPORT_QUOTA_BYTES))
  const there = await positionsOfCalls(db, owner.project_id)
  const first_position = there ? there.first - 1 : 0
  return insertCallExport(db, {
    id: `exp_${newId.uuid()}`,
    ...owner,
    state: 'queued',
    format: wish.format,
    filter: JSON.stringify(wish.filter),
    begun_by: by.caller.actor.name,
    created_at: by.now,
    finished_at: null,
    expires_at: null,
    error: null,
    rows: 0,
    bytes: 0,
    failures: 0,
    first_position,
    after_position: first_position,
    last_position: there?.last ?? 0,
    machine_id: by.machine_id,
  })
}

const SUMMARIES = { created: 'Began', deleted: 'Deleted', link: 'Made a link to' } as const

/** The entry of the audit trail about a job. */
export const exportChange = (row: CallExportRow, what: keyof typeof SUMMARIES): Change => {
  const { id, format, filter } = presentExport(row)
  const href = row.project_id === null ? `/operator/v1/exports/${id}` : `/v1/exports/${id}`
  const facts = { format, ...filter }
  return {
    resource: { type: 'export', id, name: `Export of calls (${format})`, href },
    summary: `${SUMMARIES[what]} an export of calls`,
    before: what === 'deleted' ? facts : null,
    after: what === 'created' ? facts : null,
  }
}

export async function deleteExport(db: Trx, row: CallExportRow): Promise<Change> {
  await dropCallExport(db, row.id)
  return exportChange(row, 'deleted')
}

/** Makes a link to the file of a job. It ends with the job, and with the key or the member that asked for it. */
export function makeLink(
  { settings, clock }: Services,
  row: CallExportRow,
  caller: Caller,
  valid_seconds: number = LINK_SECONDS.usual,
): Static<typeof ExportLink> {
  const ends = [row.expires_at, caller.expires_at ?? null].flatMap(at => (at === null ? [] : Date.parse(at)))
  const until_seconds = Math.floor(Math.min(clock.now() + valid_seconds * 1000, ...ends) / 1000)
  const path = linkPath(settings.master_key, { id: row.id, until_seconds, maker: caller.id })
  return { url: `${settings.base_url}${path}`, expires_at: iso(until_seconds * 1000) }
}

const TYPES = { csv: 'text/csv; charset=utf-8; header=present', jsonl: 'application/x-ndjson' } as const

const isElsewhere = ({ settings }: Services, { machine_id }: CallExportRow): boolean =>
  machine_id !== '' && machine_id !== machineOf(settings.data_dir).machine_id

async function fileHere({ settings, log }: Services, row: CallExportRow) {
  const handle = await openPlainFile(pathBelow(settings.data_dir, exportFile(row))).catch((err: unknown) => {
    log.warn({ err, export: row.id }, 'the file of an export cannot be read')
    return null
  })
  if (!handle) return null
  return {
    bytes: row.bytes,
    stream: (first: number, last: number): Readable => handle.createReadStream({ start: first, end: last }),
    close: () => handle.close(),
  }
}

/** The file of a job that another machine has carried out. */
async function fileElsewhere({ machines, log }: Services, row: CallExportRow) {
  const name = exportFile(row)
  if (!machines)
    return refuse('export_unavailable', { value: row.id, name: 'it is on another machine of the installation' })
  try {
    await machines.size(row.machine_id, name)
  } catch (err) {
    if (!(err instanceof MachineFileError)) throw err
    log.warn({ err, export: row.id }, 'the file of an export cannot be read')
    return err.missing ? null : refuse('export_unavailable', { value: row.id, name: err.message })
  }
  return {
    bytes: row.bytes,
    stream: (first: number, last: number): Readable =>
      Readable.from(machines.read(row.machine_id, name, first, last), { objectMode: false }),
    close: () => Promise.resolve(),
  }
}

/** Answers with the file of a completed job; null while there is none, a refusal when another machine has it. */
export async function exportAnswer(
  services: Services,
  row: CallExportRow,
  request: Pick<IncomingMessage, 'headers' | 'method'>,
): Promise<FileAnswer | Refusal<'export_unavailable'> | null> {
  if (row.state !== 'completed') return null
  const file = await (isElsewhere(services, row) ? fileElsewhere(services, row) : fileHere(services, row))
  if (file === null || isRefusal(file)) return file
  const about = {
    type: TYPES[row.format],
    etag: `"${row.id}"`,
    modified_at: row.finished_at ?? row.created_at,
    filename: `calls-${row.created_at.slice(0, 10)}.${row.format}`,
  }
  return fileAnswer(file, about, request)
}

import { findTrunk } from '../../core/state/configuration/trunks.ts'
import {
  beginExport,
  CallExport,
  CallExportPage,
  deleteExport,
  ExportFormat,
  ExportLink,
  ExportsQuery,
  exportAnswer,
  exportChange,
  exportPage,
  LinkRequest,
  makeLink,
  presentExport,
} from '../exports/jobs.ts'
import { invalid, isRefusal, notFound, refuse } from '../http/reply.ts'
import { input, optional, type Static } from '../http/schema.ts'
import { CALL_FILTER, historyFilter } from './calls.ts'
import { route } from './route.ts'

const ExportRequest = input('CallExportRequest', {
  format: ExportFormat,
  filter: optional(input('CallExportFilter', CALL_FILTER)),
})

export const exports = [
  route({
    method: 'get',
    path: '/exports',
    summary: 'List the exports of the project, newest first',
    scope: 'call_history:read',
    restricted_keys: true,
    query: ExportsQuery,
    replies: { 200: CallExportPage },
    async run({ db, project, caller, query }) {
      const page = await exportPage(db, { project_id: project.id, subaccount_id: caller.subaccount_id }, query)
      return isRefusal(page) ? page : { status: 200, body: page }
    },
  }),

  route({
    method: 'post',
    path: '/exports',
    summary: 'Write the ended calls of the project into a file, oldest first; it goes on in the background',
    description:
      'The filter is that of `GET /calls`. CSV has the fields of `CallSummary`, `billed_seconds`, `currency`, ' +
      '`destination`, `pdd_ms` and `price_minor` as columns, in the order of its first line; a text that a ' +
      "spreadsheet would take for a formula begins with `'`. JSON Lines has an object with the same fields a line. " +
      'The file is kept for seven days.',
    scope: 'call_history:read',
    restricted_keys: true,
    idempotent: true,
    audit: { kind: 'trunks', action: 'export.created', category: 'security' },
    body: ExportRequest,
    replies: { 201: CallExport },
    refusals: ['limit_reached'],
    example: { format: 'csv', filter: { since: '2026-11-01T00:00:00.000Z' } },
    async run({ db, project, caller, body: { format, filter = {} }, now }) {
      const { subaccount_id } = caller
      if (filter.trunk_id !== undefined) {
        const trunk = await findTrunk(db, project.id, filter.trunk_id)
        if (!trunk || (subaccount_id !== null && trunk.subaccount_id !== subaccount_id))
          return invalid('/filter/trunk_id', 'names no trunk of the project')
      }
      const owner = { project_id: project.id, subaccount_id }
      const row = await beginExport(db, owner, { format, filter: historyFilter(filter, caller) }, { caller, now })
      if (isRefusal(row)) return row
      const headers = { Location: `/v1/exports/${row.id}` }
      return {
        status: 201,
        headers,
        body: presentExport(row),
        change: exportChange(row, 'created'),
        wake: ['jobs'] as const,
      }
    },
  }),

  route({
    method: 'get',
    path: '/exports/{export_id}',
    summary: 'Read how far an export is',
    scope: 'call_history:read',
    replies: { 200: CallExport },
    async run({ job }) {
      return { status: 200, body: presentExport(job) }
    },
  }),

  route({
    method: 'delete',
    path: '/exports/{export_id}',
    summary: 'Stop an export, or delete its file',
    scope: 'call_history:read',
    audit: { kind: 'trunks', action: 'export.deleted', category: 'security' },
    replies: { 204: null },
    async run({ db, job }) {
      return { status: 204, change: await deleteExport(db, job), wake: ['jobs'] as const }
    },
  }),

  route({
    method: 'get',
    path: '/exports/{export_id}/file',
    summary: 'Download the file of a completed export; one range at a time',
    scope: 'call_history:read',
    produces: 'text/csv',
    replies: { 200: null, 206: null, 416: null },
    async run({ job, services, request }) {
      return (await exportAnswer(services, job, request)) ?? notFound(`a file of export ${job.id}`)
    },
  }),

  route({
    method: 'post',
    path: '/exports/{export_id}/links',
    summary: 'Make a link by which the file of a completed export is downloaded without a key',
    scope: 'call_history:read',
    audit: { kind: 'trunks', action: 'export.link_created', category: 'security' },
    body: LinkRequest,
    replies: { 201: ExportLink },
    refusals: ['state_conflict'],
    for_replay: (body: Static<typeof ExportLink>) => ({ ...body, url: null }),
    example: { valid_seconds: 900 },
    async run({ job, services, caller, body }) {
      if (job.state !== 'completed') return refuse('state_conflict', { name: `export ${job.id}`, value: job.state })
      const link = makeLink(services, job, caller, body.valid_seconds)
      return { status: 201, body: link, change: exportChange(job, 'link') }
    },
  }),
]

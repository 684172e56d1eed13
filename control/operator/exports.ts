import {
  beginExport,
  CallExport,
  CallExportPage,
  deleteExport,
  ExportFormat,
  ExportsQuery,
  exportAnswer,
  exportChange,
  exportPage,
  presentExport,
} from '../exports/jobs.ts'
import { isRefusal, notFound } from '../http/reply.ts'
import { input, optional, Type } from '../http/schema.ts'
import { CALL_FILTER, historyFilter } from '../v1/calls.ts'
import { route } from './route.ts'

const OWNER = { project_id: null, subaccount_id: null } as const

const ExportRequest = input('OperatorCallExportRequest', {
  format: ExportFormat,
  filter: optional(
    input('OperatorCallExportFilter', {
      ...CALL_FILTER,
      project_id: optional(Type.String({ minLength: 1, maxLength: 64, description: 'Of one project alone.' })),
    }),
  ),
})

/** Exports across all customers, with what calls cost the operator. */
export const exports = [
  route({
    method: 'get',
    path: '/exports',
    summary: 'List the exports of operators, newest first',
    scope: 'operator:money',
    context: 'organization',
    query: ExportsQuery,
    replies: { 200: CallExportPage },
    async run({ db, query }) {
      const page = await exportPage(db, OWNER, query)
      return isRefusal(page) ? page : { status: 200, body: page }
    },
  }),

  route({
    method: 'post',
    path: '/exports',
    summary: 'Write ended calls of all customers into a file, oldest first; it goes on in the background',
    description:
      'The fields are those of an export of a customer, and `carrier_id`, `cost_minor` and `project_id`. ' +
      'The file is kept for seven days.',
    scope: 'operator:money',
    context: 'organization',
    idempotent: true,
    audit: { kind: 'trunks', action: 'export.created', category: 'security' },
    body: ExportRequest,
    replies: { 201: CallExport },
    refusals: ['limit_reached'],
    example: { format: 'jsonl', filter: { since: '2026-11-01T00:00:00.000Z' } },
    async run({ db, caller, body: { format, filter: { project_id, ...asked } = {} }, now }) {
      const filter = { ...historyFilter(asked, caller), ...(project_id === undefined ? {} : { project_id }) }
      const row = await beginExport(db, OWNER, { format, filter }, { caller, now })
      if (isRefusal(row)) return row
      const headers = { Location: `/operator/v1/exports/${row.id}` }
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
    scope: 'operator:money',
    context: 'organization',
    replies: { 200: CallExport },
    async run({ job }) {
      return { status: 200, body: presentExport(job) }
    },
  }),

  route({
    method: 'delete',
    path: '/exports/{export_id}',
    summary: 'Stop an export, or delete its file',
    scope: 'operator:money',
    context: 'organization',
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
    scope: 'operator:money',
    context: 'organization',
    produces: 'text/csv',
    replies: { 200: null, 206: null, 416: null },
    async run({ job, services, request }) {
      return (await exportAnswer(services, job, request)) ?? notFound(`a file of export ${job.id}`)
    },
  }),
]

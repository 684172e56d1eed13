import { ownerOfTrunk } from '../../core/state/configuration/trunks.ts'
import { ExportFormat, ExportLink, exportChange, LinkRequest, makeLink } from '../exports/jobs.ts'
import { exportRoutes } from '../exports/routes.ts'
import { invalid, refuse } from '../http/reply.ts'
import { input, optional, type Static } from '../http/schema.ts'
import { CALL_FILTER, historyFilter } from './calls.ts'
import { route } from './route.ts'

const ExportRequest = input('CallExportRequest', {
  format: ExportFormat,
  filter: optional(input('CallExportFilter', CALL_FILTER)),
})

export const exports = [
  ...exportRoutes({
    base: '/v1',
    scope: 'call_history:read',
    context: 'project',
    summaries: {
      list: 'List the exports of the project, newest first',
      begin: 'Write the ended calls of the project into a file, oldest first; it goes on in the background',
    },
    description:
      'The filter is that of `GET /calls`. CSV has the fields of `CallSummary`, `billed_seconds`, `currency`, ' +
      '`destination`, `pdd_ms` and `price_minor` as columns, in the order of its first line; a text that a ' +
      "spreadsheet would take for a formula begins with `'`. JSON Lines has an object with the same fields a line. " +
      'The file is kept for seven days.',
    body: ExportRequest,
    example: { format: 'csv', filter: { since: '2026-11-01T00:00:00.000Z' } },
    async wish({ format, filter = {} }, { db, caller, project_id }) {
      if (filter.trunk_id !== undefined && project_id !== null) {
        const trunk = await ownerOfTrunk(db, filter.trunk_id)
        const is_own = trunk?.project_id === project_id
        if (!is_own || (caller.subaccount_id !== null && trunk.subaccount_id !== caller.subaccount_id))
          return invalid('/filter/trunk_id', 'names no trunk of the project')
      }
      return { format, filter: historyFilter(filter, caller) }
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

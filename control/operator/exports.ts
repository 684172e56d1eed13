import { ExportFormat } from '../exports/jobs.ts'
import { exportRoutes } from '../exports/routes.ts'
import { input, optional, Type } from '../http/schema.ts'
import { CALL_FILTER, historyFilter } from '../v1/calls.ts'

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
export const exports = exportRoutes({
  base: '/operator/v1',
  scope: 'operator:money',
  context: 'organization',
  summaries: {
    list: 'List the exports of operators, newest first',
    begin: 'Write ended calls of all customers into a file, oldest first; it goes on in the background',
  },
  description:
    'The fields are those of an export of a customer, and `carrier_id`, `cost_minor` and `project_id`. ' +
    'The file is kept for seven days.',
  body: ExportRequest,
  example: { format: 'jsonl', filter: { since: '2026-11-01T00:00:00.000Z' } },
  async wish({ format, filter: { project_id, ...asked } = {} }, { caller }) {
    return { format, filter: { ...historyFilter(asked, caller), ...(project_id === undefined ? {} : { project_id }) } }
  },
})

import { ownerOfTrunk } from '../../core/state/configuration/trunks.ts'
import { findAnyProject } from '../../core/state/people/customers.ts'
import { ExportFormat } from '../exports/jobs.ts'
import { exportRoutes } from '../exports/routes.ts'
import { invalid } from '../http/reply.ts'
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
  async wish({ format, filter: { project_id, ...asked } = {} }, { db, caller }) {
    if (project_id !== undefined && !(await findAnyProject(db, project_id)))
      return invalid('/filter/project_id', 'names no project')
    if (asked.trunk_id !== undefined) {
      const trunk = await ownerOfTrunk(db, asked.trunk_id)
      if (!trunk) return invalid('/filter/trunk_id', 'names no trunk')
      if (project_id !== undefined && trunk.project_id !== project_id)
        return invalid('/filter/trunk_id', 'names a trunk of another project')
    }
    return { format, filter: { ...historyFilter(asked, caller), ...(project_id === undefined ? {} : { project_id }) } }
  },
})

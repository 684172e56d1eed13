import { machineOf } from '../../core/runtime/machine.ts'
import { type CallExportRow, findCallExport } from '../../core/state/calls/call-exports.ts'
import type { HistoryFilter } from '../../core/state/calls/call-history.ts'
import type { Db } from '../../core/state/index.ts'
import type { OperatorScope, Scope } from '../http/access.ts'
import type { Caller } from '../http/caller.ts'
import { isRefusal, notFound, type Refusal } from '../http/reply.ts'
import { type Loader, routesWith } from '../http/route.ts'
import type { Static, TObject } from '../http/schema.ts'
import {
  beginExport,
  CallExport,
  CallExportPage,
  deleteExport,
  ExportsQuery,
  exportAnswer,
  exportChange,
  exportPage,
  presentExport,
} from './jobs.ts'

/** The routes of exports, for an API whose exports belong to one kind of owner. */

interface Kind<B extends TObject> {
  /** Where the API begins: `/v1` or `/operator/v1`. */
  readonly base: string
  readonly scope: Scope | OperatorScope
  /** `organization`: the operator's exports, which belong to no project. */
  readonly context: 'project' | 'organization'
  readonly summaries: { readonly list: string; readonly begin: string }
  readonly description: string
  readonly body: B
  readonly example: Static<B>
  /** Reads what to write from the body of a request. */
  wish(
    body: Static<B>,
    by: { readonly db: Db; readonly caller: Caller; readonly project_id: string | null },
  ): Promise<
    | { readonly format: 'csv' | 'jsonl'; readonly filter: HistoryFilter & { readonly project_id?: string } }
    | Refusal<'validation_failed'>
  >
}

const AUDIT = { kind: 'trunks', category: 'security' } as const

/** Returns the loader of an export that the path names; of the operator's with `context` organization. */
export const exportLoader = (context: Kind<TObject>['context']): Loader<'job', CallExportRow> => ({
  name: 'job',
  load: (db, { id, project_id }) =>
    findCallExport(db, { project_id: context === 'organization' ? null : project_id, subaccount_id: null }, id),
  subaccount_id: row => row.subaccount_id,
})

export function exportRoutes<B extends TObject>(kind: Kind<B>) {
  const { base, scope, context, summaries, description, body, example, wish } = kind
  const route = routesWith({ export_id: exportLoader(context) } as const)
  const ownerOf = (project: { readonly id: string } | null, { subaccount_id }: Caller) =>
    context === 'organization' || !project
      ? { project_id: null, subaccount_id: null }
      : { project_id: project.id, subaccount_id }
  return [
    route({
      method: 'get',
      path: '/exports',
      summary: summaries.list,
      scope,
      context,
      restricted_keys: context === 'project',
      query: ExportsQuery,
      replies: { 200: CallExportPage },
      async run({ db, project, caller, query }) {
        const page = await exportPage(db, ownerOf(project, caller), query)
        return isRefusal(page) ? page : { status: 200, body: page }
      },
    }),

    route({
      method: 'post',
      path: '/exports',
      summary: summaries.begin,
      description,
      scope,
      context,
      restricted_keys: context === 'project',
      idempotent: true,
      audit: { ...AUDIT, action: 'export.created' },
      body,
      replies: { 201: CallExport },
      refusals: ['limit_reached'],
      example,
      async run({ db, project, caller, body, now, services }) {
        const owner = ownerOf(project, caller)
        // The route has a body, which the compiler cannot tell of a generic schema.
        const wished = await wish(body as Static<B>, { db, caller, project_id: owner.project_id })
        if (isRefusal(wished)) return wished
        const row = await beginExport(db, owner, wished, {
          caller,
          now,
          machine_id: machineOf(services.settings.data_dir).machine_id,
        })
        if (isRefusal(row)) return row
        return {
          status: 201,
          headers: { Location: `${base}/exports/${row.id}` },
          body: presentExport(row),
          change: exportChange(row, 'created'),
          wake: ['exports'] as const,
        }
      },
    }),
    ...jobRoutes(kind),
  ]
}

/** The routes of one export. */
function jobRoutes({ scope, context }: Pick<Kind<TObject>, 'scope' | 'context'>) {
  const route = routesWith({ export_id: exportLoader(context) } as const)
  return [
    route({
      method: 'get',
      path: '/exports/{export_id}',
      summary: 'Read the progress of an export',
      scope,
      context,
      replies: { 200: CallExport },
      async run({ job }) {
        return { status: 200, body: presentExport(job) }
      },
    }),

    route({
      method: 'delete',
      path: '/exports/{export_id}',
      summary: 'Stop an export, or delete its file',
      scope,
      context,
      audit: { ...AUDIT, action: 'export.deleted' },
      replies: { 204: null },
      async run({ db, job }) {
        return { status: 204, change: await deleteExport(db, job), wake: ['exports'] as const }
      },
    }),

    route({
      method: 'get',
      path: '/exports/{export_id}/file',
      summary: 'Download the file of a completed export; one range at a time',
      scope,
      context,
      produces: 'text/csv',
      replies: { 200: null, 206: null, 416: null },
      refusals: ['export_unavailable'],
      async run({ job, services, request }) {
        return (await exportAnswer(services, job, request)) ?? notFound(`a file of export ${job.id}`)
      },
    }),
  ]
}

import type { ProjectRow } from '../../core/state/people/organizations.ts'
import type { Caller } from './caller.ts'
import type { Sent } from './carry-out.ts'
import { bodyErrors, withoutAccess } from './checks.ts'
import { withUtcInstants } from './instants.ts'
import type { Pipeline } from './pipeline.ts'
import { projectOf } from './project-context.ts'
import { queryOf } from './query.ts'
import { isRefusal, type Refusal, refuse } from './reply.ts'
import type { Answer, Route } from './route.ts'
import type { HttpServices } from './services.ts'

/** A request whose route and caller are known, whoever brought it: HTTP, or a command. */
export interface Brought {
  readonly ctx: Sent
  readonly request_id: string
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
  readonly caller: Caller
  readonly bearer: Bearer
}

/** How the parts of a request are read that HTTP has in headers and a body. */
export interface Bearer {
  /** The value of X-Project-ID. */
  readonly project_id: string | undefined
  body(route: Route): Promise<object | undefined | Refusal>
  idempotency_key(route: Route): string | undefined | Refusal
  if_match(route: Route): number | null | Refusal
}

/** Adds the steps from the caller to the route, in the order that is part of the API's contract. */
export const judged = <Known extends Brought, Start extends object>(
  steps: Pick<Pipeline<Known, Answer, Refusal, Start>, 'check'>,
  services: HttpServices,
) =>
  steps
    .check('role and scope', ({ route, caller }) => withoutAccess(route, caller))
    .gather('project', async ({ route, caller, bearer }) => {
      if ((route.context ?? 'project') !== 'project') return { project: null }
      const project = await projectOf(services.state.db, caller, bearer.project_id)
      return isRefusal(project) ? project : { project }
    })
    .gather('body', async ({ route, bearer }) => {
      const body = await bearer.body(route)
      return isRefusal(body) ? body : { body }
    })
    .gather('idempotency key', ({ route, bearer }) => {
      const idempotency_key = bearer.idempotency_key(route)
      return isRefusal(idempotency_key) ? idempotency_key : { idempotency_key }
    })
    .gather('revision', ({ route, bearer }) => {
      const if_match = bearer.if_match(route)
      return isRefusal(if_match) ? if_match : { if_match }
    })
    .gather('query', async ({ ctx, route }) => {
      const query = await queryOf(ctx.querystring, route.query)
      return isRefusal(query) ? query : { query }
    })
    .check('fields', ({ route, body }) => bodyErrors(route, body))
    .gather('instants', ({ route, body }) => ({ body: withUtcInstants(route.body, body) }))
    .gather('preparation', async ({ route: { prepare }, body, caller }) => ({
      prepared:
        prepare &&
        (await services.computations.run(sharerOf(caller), breathe => prepare({ body, services, caller, breathe }))),
    }))
    .check('status of the project', ({ route, project }) =>
      route.method !== 'get' && project && project.status !== 'active'
        ? refuse('project_disabled', { name: project.name, value: project.status }, causeOf(project))
        : null,
    )

/** Returns who shares turns of long computations. The members of an organization share them with each other. */
const sharerOf = ({ kind, id, organization_id }: Caller): string =>
  // Strangers are members of none.
  (kind === 'member' && organization_id) || id

/** A project that its organization's suspension disabled names that. */
const causeOf = ({ suspended }: ProjectRow) =>
  suspended === 1 ? { extra: { caused_by: 'organization_suspended' } } : {}

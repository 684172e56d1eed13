import type { Db } from '../../core/state/index.ts'
import { listProjects, type ProjectRow } from '../../core/state/people/organizations.ts'
import type { Caller } from './caller.ts'
import { type Refusal, refuse } from './reply.ts'

const PROJECT_ID = /^prj_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns the project of a request (spec, "Choosing a project"). A key can access only its own project: another project
 * of the organization is refused like one that does not exist.
 */
export async function projectOf(db: Db, caller: Caller, header: string | undefined): Promise<ProjectRow | Refusal> {
  if (header !== undefined && !PROJECT_ID.test(header)) return refuse('project_invalid', { value: header.slice(0, 60) })
  const projects = caller.projects ?? (await listProjects(db, caller.organization_id))
  if (header !== undefined) {
    const named = projects.find(project => project.id === header)
    if (!named || (caller.project_id !== null && caller.project_id !== named.id))
      return refuse('project_not_found', { value: header })
    return named
  }
  const active = projects.filter(project => project.status === 'active')
  const [only] = active
  if (only && active.length === 1 && (caller.project_id === null || caller.project_id === only.id)) return only
  if (active.length === 0) {
    const own = projects.find(project => project.id === caller.project_id) ?? projects[0]
    if (own) return own
  }
  return refuse(
    'project_context_required',
    {},
    {
      extra: { available_projects: active.map(({ id, name }) => ({ id, name })) },
    },
  )
}

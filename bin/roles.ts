import { ALL_ROLES, namesOfRoles } from '../core/domain/machines/roles.ts'
import { type Settings, VARIABLES } from '../core/runtime/config.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'

/** Refuses roles for which this machine lacks a way to those that do the rest. @throws StartRefused */
export function refuseRoles({ roles, database_url, drachtio, link }: Settings): void {
  const refused = (why: string): StartRefused =>
    new StartRefused(`${VARIABLES.roles.name}=${namesOfRoles(roles)}: ${why}`)
  if (roles.size < ALL_ROLES.size && database_url === null)
    throw refused(`set ${VARIABLES.database_url.name}, as other machines do the rest`)
  if (drachtio !== null && roles.has('edge') && !roles.has('signaling'))
    throw refused(`unset ${VARIABLES.drachtio.name}, which names an edge in place of this machine's`)
  if (drachtio === null && roles.has('edge') !== roles.has('signaling') && link === null)
    throw refused(`set ${VARIABLES.link.name}, by which edges reach the signaling of other machines`)
}

/** Reports whether this machine has the sandbox carrier, which is called at an address of its machine. */
export const hasSandbox = ({ sandbox, roles }: Pick<Settings, 'sandbox' | 'roles'>): boolean =>
  sandbox && roles.has('edge') && roles.has('signaling')

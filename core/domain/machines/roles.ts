/** What a machine may do. Edge: it speaks SIP with peers. Control: it serves the APIs and the console. */
export const ROLES = ['edge', 'signaling', 'media', 'control'] as const

type Role = (typeof ROLES)[number]
export type Roles = ReadonlySet<Role>

export const ALL_ROLES: Roles = new Set(ROLES)

const isRole = (word: string): word is Role => (ROLES as readonly string[]).includes(word)

/** Returns the roles that these words name; none means all. A string says why they cannot be. */
export function rolesOf(words: readonly string[]): Roles | string {
  const unknown = words.find(word => !isRole(word))
  if (unknown !== undefined) return `${unknown} is none of ${ROLES.join(', ')}`
  const roles = new Set(words.filter(isRole))
  if (roles.has('signaling') !== roles.has('media'))
    return 'signaling and media go together: the sound of a call is where the call is'
  return roles.size === 0 ? ALL_ROLES : roles
}

/** Writes roles in the order in which people read them. */
export const namesOfRoles = (roles: Roles): string => ROLES.filter(role => roles.has(role)).join(' ')

const CONTROL_ALONE: Roles = new Set<Role>(['control'])

/** Reads the roles in the row of a machine. An older version does not name them; a newer one may know more of them. */
export function rolesInRow({ roles, takes_calls }: { readonly roles: string; readonly takes_calls: 0 | 1 }): Roles {
  if (roles === '') return takes_calls === 1 ? ALL_ROLES : CONTROL_ALONE
  return new Set(roles.split(' ').filter(isRole))
}

/** Whether peers speak SIP with the machine. */
export const speaksSip = (roles: Roles): boolean => roles.has('edge')

/** Whether calls run on the machine. */
export const runsCalls = (roles: Roles): boolean => roles.has('signaling')

/** The processes without which a machine does not do its part. Calls need the edge's process without its role, too. */
export function processesOf(roles: Roles): readonly ('edge' | 'media' | 'signaling')[] {
  if (runsCalls(roles)) return ['edge', 'media', 'signaling']
  return speaksSip(roles) ? ['edge'] : []
}

import { computed, signal } from '@preact/signals'

export type Role = 'org:admin' | 'org:engineer' | 'org:billing' | 'org:viewer'

export interface Session {
  readonly csrf_token: string
  readonly member: {
    readonly id: string
    readonly email: string
    readonly role: Role
    readonly operator: boolean
    readonly totp_enabled: boolean
    readonly scopes: readonly string[]
  }
  readonly organization: { readonly id: string; readonly name: string; readonly time_zone: string }
  readonly projects: readonly {
    readonly id: string
    readonly name: string
    /** Calls reach the sandbox carrier alone and cost nothing. */
    readonly sandbox: boolean
    readonly status: string
  }[]
}

const PROJECT_KEY = 'strowger-project'

/** `undefined` until the first answer shows whether a member is signed in; then the session or null. */
export const session = signal<Session | null | undefined>(undefined)
/** Why the sign-in page is shown again. */
export const signInNotice = signal('')

const chosenProject = signal(localStorage.getItem(PROJECT_KEY) ?? '')

export const csrfToken = computed(() => session.value?.csrf_token ?? '')

const project = computed(() => {
  const projects = session.value?.projects ?? []
  return projects.find(({ id }) => id === chosenProject.value) ?? projects[0]
})

export const projectId = computed(() => project.value?.id ?? '')

/** The chosen project is in the sandbox. */
export const inSandbox = computed(() => project.value?.sandbox ?? true)

/** Takes what the platform says of the session. An unchanged session wakes nothing that depends on it. */
export function setSession(found: Session): void {
  if (JSON.stringify(found) !== JSON.stringify(session.peek())) session.value = found
}

export function chooseProject(id: string): void {
  localStorage.setItem(PROJECT_KEY, id)
  chosenProject.value = id
}

export function signedOut(notice = ''): void {
  signInNotice.value = notice
  session.value = null
}

/** Reports whether the member's role may use `scope`. The API checks this again at each request. */
export const may = (scope: string): boolean => session.value?.member.scopes.includes(scope) ?? false

export const hasRole = (...roles: readonly Role[]): boolean =>
  session.value != null && roles.includes(session.value.member.role)

export const ROLE_NAMES: Readonly<Record<Role, string>> = {
  'org:admin': 'Admin',
  'org:engineer': 'Engineer',
  'org:billing': 'Billing',
  'org:viewer': 'Viewer',
}

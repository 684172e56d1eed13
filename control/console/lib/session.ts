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
  readonly projects: readonly { readonly id: string; readonly name: string; readonly status: string }[]
}

const PROJECT_KEY = 'strowger-project'

/** `undefined` until the first answer shows whether a member is signed in; then the session or null. */
export const session = signal<Session | null | undefined>(undefined)
/** Why the sign-in page is shown again. */
export const signInNotice = signal('')

const chosenProject = signal(localStorage.getItem(PROJECT_KEY) ?? '')

export const csrfToken = computed(() => session.value?.csrf_token ?? '')

export const projectId = computed(() => {
  const projects = session.value?.projects ?? []
  return (projects.find(project => project.id === chosenProject.value) ?? projects[0])?.id ?? ''
})

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

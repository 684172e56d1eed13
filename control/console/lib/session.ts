import { computed, signal } from '@preact/signals'
import type { ConsoleSession } from './api-types.ts'

export type Session = ConsoleSession
export type Role = Session['member']['role']
export type Scope = Session['member']['scopes'][number]

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

/** The organization has one project. */
export const onlyProject = (): boolean => session.peek()?.projects.length === 1

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
export const may = (scope: Scope): boolean => session.value?.member.scopes.includes(scope) ?? false

export const hasRole = (...roles: readonly Role[]): boolean =>
  session.value != null && roles.includes(session.value.member.role)

export const ROLE_NAMES: Readonly<Record<Role, string>> = {
  'org:admin': 'Admin',
  'org:engineer': 'Engineer',
  'org:billing': 'Billing',
  'org:viewer': 'Viewer',
}

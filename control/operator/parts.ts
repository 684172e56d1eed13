import type { Route } from '../http/route.ts'

type Part = () => Promise<readonly Route[]>

const projects: readonly Part[] = [
  async () => (await import('./projects.ts')).projects,
  async () => (await import('./voice-accounts.ts')).voiceAccounts,
  async () => (await import('./money.ts')).money,
]
const organizations: readonly Part[] = [
  async () => (await import('./organizations.ts')).organizations,
  async () => (await import('./invitations.ts')).invitations,
]
const members: readonly Part[] = [async () => (await import('./members.ts')).members]
const carriers: readonly Part[] = [
  async () => (await import('./carriers.ts')).carriers,
  async () => (await import('./carrier-traffic.ts')).carrierTraffic,
  async () => (await import('./carrier-tests.ts')).carrierTests,
]
const fraud: readonly Part[] = [async () => (await import('./fraud.ts')).fraud]
const limits: readonly Part[] = [async () => (await import('./limits.ts')).limits]
const installation: readonly Part[] = [async () => (await import('./installation.ts')).installation]

/** The endpoints of /operator/v1 by the first word of their paths: a command loads only those of its own word. */
const PARTS: Readonly<Record<string, readonly Part[]>> = {
  organizations,
  members,
  'password-resets': members,
  projects,
  margins: [async () => (await import('./money-margins.ts')).margins],
  exports: [async () => (await import('./exports.ts')).exports],
  numbers: [async () => (await import('./numbers.ts')).numbers],
  'number-imports': [async () => (await import('./number-imports.ts')).numberImports],
  'number-offers': [async () => (await import('./number-offers.ts')).numberOffers],
  carriers,
  'price-books': [async () => (await import('./price-books.ts')).priceBooks],
  'cost-books': [async () => (await import('./price-books.ts')).costBooks],
  alerts: fraud,
  containments: fraud,
  'release-requests': fraud,
  'source-approvals': [async () => (await import('./sources.ts')).sources],
  trunks: limits,
  'short-codes': limits,
  slots: limits,
  nodes: installation,
  machines: installation,
  registrations: installation,
  settings: installation,
  audit: [async () => (await import('./audit.ts')).audit],
  keys: [async () => (await import('./keys.ts')).keys],
}

/** Finds an endpoint by its method and its path; undefined when there is none. */
export async function operatorRoute(method: string, path: string): Promise<Route | undefined> {
  const [, word = ''] = path.split('/')
  if (!Object.hasOwn(PARTS, word)) return undefined
  for (const part of PARTS[word] ?? []) {
    const found = (await part()).find(route => route.method === method && route.path === path)
    if (found) return found
  }
  return undefined
}

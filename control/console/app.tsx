import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ask, readAhead } from './lib/api.ts'
import { ApiError } from './lib/problem.ts'
import { match, type PageProps, path } from './lib/router.ts'
import { type Session, session, setSession, signedOut } from './lib/session.ts'
import { Invitation, NewPassword } from './pages/invitation.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { Shell } from './shell.tsx'
import { Empty, LinkButton } from './ui/basics.tsx'
import { type AheadComponent, Lazy, lazy } from './ui/lazy.tsx'
import { Toasts } from './ui/toast.tsx'

type Page = AheadComponent<PageProps>

/** Every page by its path. A page's code is loaded when the page is first opened. */
const PAGES: readonly (readonly [string, () => Promise<Page>])[] = [
  ['/', async () => (await import('./pages/overview.tsx')).Overview],
  ['/welcome', async () => (await import('./pages/welcome.tsx')).Welcome],
  ['/calls', async () => (await import('./pages/calls.tsx')).Calls],
  ['/calls/live', async () => (await import('./pages/live-calls.tsx')).LiveCalls],
  ['/rooms', async () => (await import('./pages/rooms.tsx')).Rooms],
  ['/rooms/:id', async () => (await import('./pages/rooms.tsx')).RoomPage],
  ['/queues', async () => (await import('./pages/queues.tsx')).Queues],
  ['/queues/:id', async () => (await import('./pages/queues.tsx')).QueuePage],
  ['/calls/:id', async () => (await import('./pages/call.tsx')).CallPage],
  ['/calls/:id/:tab', async () => (await import('./pages/call.tsx')).CallPage],
  ['/recordings', async () => (await import('./pages/recordings.tsx')).Recordings],
  ['/alerts', async () => (await import('./pages/alerts.tsx')).Alerts],
  ['/alerts/:tab', async () => (await import('./pages/alerts.tsx')).Alerts],
  ['/trunks', async () => (await import('./pages/trunks.tsx')).Trunks],
  ['/trunks/new', async () => (await import('./pages/trunk-create.tsx')).TrunkCreate],
  ['/trunks/:id', async () => (await import('./pages/trunk.tsx')).TrunkPage],
  ['/trunks/:id/:tab', async () => (await import('./pages/trunk.tsx')).TrunkPage],
  ['/trunks/:id/subtrunks/:subtrunk', async () => (await import('./pages/subtrunk.tsx')).SubtrunkPage],
  ['/numbers', async () => (await import('./pages/numbers.tsx')).Numbers],
  ['/numbers/:tab', async () => (await import('./pages/numbers.tsx')).Numbers],
  ['/applications', async () => (await import('./pages/applications.tsx')).Applications],
  ['/applications/:id', async () => (await import('./pages/application.tsx')).ApplicationPage],
  ['/editor', async () => (await import('./pages/editor.tsx')).EditorPage],
  ['/policies', async () => (await import('./pages/policies.tsx')).Policies],
  ['/policies/:id', async () => (await import('./pages/policy.tsx')).PolicyPage],
  ['/destinations', async () => (await import('./pages/destinations.tsx')).Destinations],
  ['/destinations/:tab', async () => (await import('./pages/destinations.tsx')).Destinations],
  ['/subaccounts', async () => (await import('./pages/subaccounts.tsx')).Subaccounts],
  ['/subaccounts/:id', async () => (await import('./pages/subaccounts.tsx')).SubaccountPage],
  ['/billing', async () => (await import('./pages/billing.tsx')).Billing],
  ['/audit', async () => (await import('./pages/audit.tsx')).Audit],
  ['/audit/:id', async () => (await import('./pages/audit.tsx')).AuditEvent],
  ['/keys', async () => (await import('./pages/keys.tsx')).Keys],
  ['/debugger', async () => (await import('./pages/debugger.tsx')).Debugger],
  ['/webhooks', async () => (await import('./pages/webhooks.tsx')).Webhooks],
  ['/webhooks/:id', async () => (await import('./pages/webhooks.tsx')).WebhookPage],
  ['/platform', async () => (await import('./pages/platform.tsx')).Platform],
  ['/members', async () => (await import('./pages/members.tsx')).Members],
  ['/operator/customers', async () => (await import('./pages/operator/customers.tsx')).Customers],
  ['/operator/customers/:id', async () => (await import('./pages/operator/customer.tsx')).CustomerPage],
  ['/operator/projects/:id', async () => (await import('./pages/operator/project.tsx')).OperatorProjectPage],
  ['/operator/carriers', async () => (await import('./pages/operator/carriers.tsx')).Carriers],
  ['/operator/carriers/:id', async () => (await import('./pages/operator/carrier.tsx')).CarrierPage],
  ['/operator/money', async () => (await import('./pages/operator/margins.tsx')).Margins],
  ['/operator/rates', async () => (await import('./pages/operator/price-books.tsx')).PriceBooks],
  ['/operator/rates/:id', async () => (await import('./pages/operator/price-books.tsx')).PriceBookPage],
  ['/operator/numbers', async () => (await import('./pages/operator/number-stock.tsx')).NumberStock],
  ['/operator/fraud', async () => (await import('./pages/operator/fraud-desk.tsx')).FraudDesk],
  ['/operator/nodes', async () => (await import('./pages/operator/nodes.tsx')).Nodes],
  ['/operator/audit', async () => (await import('./pages/operator/operator-audit.tsx')).OperatorAudit],
  ['/operator/audit/:id', async () => (await import('./pages/operator/operator-audit.tsx')).OperatorAuditEvent],
  ['/account', async () => (await import('./pages/account.tsx')).Account],
]

const SESSION_POLL_MS = 15_000

const LOADED = PAGES.map(([pattern, load]) => ({ pattern, page: lazy(load) }))

/** The code of the page that the address names comes while the session is asked for. */
const first = LOADED.find(({ pattern }) => match(pattern, path.peek()))
  ?.page.load()
  .catch(() => undefined)

/** A page is drawn with the answers that come this soon, and without those that take longer. */
const TOGETHER_MS = 200
const begun = signal(false)
/** A page that takes longer than this to begin says so. */
const SLOW_MS = 400
const slow = signal(false)
setTimeout(() => {
  slow.value = true
}, SLOW_MS)

// The session, the page's code and what the page reads are asked for before anything is drawn, and drawn together.
ask<Session>('GET', '/session')
  .then(
    async found => {
      const page = await first
      setSession(found)
      const answers = (page?.ahead?.() ?? []).map(readAhead)
      await Promise.race([Promise.all(answers), new Promise(resolve => setTimeout(resolve, TOGETHER_MS))])
    },
    error => signedOut(error instanceof ApiError && error.problem.status === 0 ? error.problem.detail : ''),
  )
  .finally(() => {
    begun.value = true
  })

export function App() {
  // An operator may change the member's role or take the project out of the sandbox at any time.
  const signedIn = session.value != null
  useEffect(() => {
    if (!signedIn) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') ask<Session>('GET', '/session').then(setSession, () => undefined)
    }, SESSION_POLL_MS)
    return () => clearInterval(timer)
  }, [signedIn])

  if (!begun.value) return slow.value ? <output class="door muted">Loading…</output> : null
  return (
    <>
      {path.value === '/invitation' ? <Invitation /> : path.value === '/password' ? <NewPassword /> : <Inside />}
      <Toasts />
    </>
  )
}

const Inside = () => (session.value ? <Shell>{pageAt(path.value)}</Shell> : <SignIn />)

function pageAt(at: string) {
  for (const { pattern, page } of LOADED) {
    const params = match(pattern, at)
    if (params) return <Lazy key={pattern + (params['id'] ?? '')} of={page} params={params} />
  }
  return (
    <Empty title="There is no such page" action={<LinkButton href="/console/">To the overview</LinkButton>}>
      The address may be misspelt, or the page was moved.
    </Empty>
  )
}

import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import logo from './icon.svg'
import { ask } from './lib/api.ts'
import { firing } from './lib/firing.ts'
import { live } from './lib/live.ts'
import { problemOf } from './lib/problem.ts'
import { hrefOf, path } from './lib/router.ts'
import {
  chooseProject,
  hasRole,
  inSandbox,
  may,
  projectId,
  ROLE_NAMES,
  type Scope,
  session,
  signedOut,
} from './lib/session.ts'
import { switchTheme, theme } from './lib/theme.ts'
import { PhoneDock } from './softphone/dock.tsx'
import { inCall, phoneOpen } from './softphone/open.ts'
import { Badge, Empty } from './ui/basics.tsx'
import { Icon, type IconName } from './ui/icons.tsx'
import { Palette, paletteOpen } from './ui/palette.tsx'
import { toast } from './ui/toast.tsx'

interface Item {
  readonly to: string
  readonly text: string
  readonly icon: IconName
  readonly show: () => boolean
}

const reads = (scope: Scope) => () => may(scope)
const operates = () => session.value?.member.operator ?? false
const configuration = reads('service_configuration:read')

const OPERATOR = 'Operator'

const MENU: readonly { readonly title: string; readonly items: readonly Item[] }[] = [
  {
    title: 'Watch',
    items: [
      { to: '/', text: 'Overview', icon: 'overview', show: () => true },
      { to: '/calls', text: 'Calls', icon: 'calls', show: reads('call_history:read') },
      { to: '/alerts', text: 'Alerts', icon: 'alerts', show: configuration },
    ],
  },
  {
    title: 'Connect',
    items: [
      { to: '/trunks', text: 'Trunks', icon: 'trunks', show: configuration },
      { to: '/numbers', text: 'Numbers', icon: 'numbers', show: configuration },
      { to: '/applications', text: 'Voice applications', icon: 'applications', show: configuration },
      { to: '/policies', text: 'Outbound policies', icon: 'policies', show: configuration },
      {
        to: '/destinations',
        text: 'Destinations and rates',
        icon: 'destinations',
        show: () => configuration() || may('billing:read'),
      },
      { to: '/platform', text: 'Connect a PBX', icon: 'platform', show: configuration },
    ],
  },
  {
    title: 'Organization',
    items: [
      { to: '/subaccounts', text: 'Subaccounts', icon: 'subaccounts', show: reads('subaccounts:read') },
      { to: '/billing', text: 'Billing', icon: 'billing', show: reads('billing:read') },
      { to: '/audit', text: 'Audit trail', icon: 'audit', show: reads('audit:read') },
      { to: '/members', text: 'Members', icon: 'members', show: () => hasRole('org:admin') },
    ],
  },
  {
    title: 'Develop',
    items: [
      { to: '/debugger', text: 'Debugger', icon: 'debugger', show: reads('call_diagnostics:read') },
      { to: '/keys', text: 'Keys and credentials', icon: 'keys', show: () => hasRole('org:admin', 'org:engineer') },
      { to: '/webhooks', text: 'Webhooks', icon: 'webhooks', show: reads('developers:manage') },
    ],
  },
  {
    title: OPERATOR,
    items: [
      { to: '/operator/customers', text: 'Customers', icon: 'subaccounts', show: operates },
      { to: '/operator/carriers', text: 'Carriers', icon: 'trunks', show: operates },
      { to: '/operator/rates', text: 'Price books', icon: 'destinations', show: operates },
      { to: '/operator/money', text: 'Money', icon: 'billing', show: operates },
      { to: '/operator/numbers', text: 'Number stock', icon: 'numbers', show: operates },
      { to: '/operator/fraud', text: 'Fraud desk', icon: 'policies', show: operates },
      { to: '/operator/nodes', text: 'Nodes', icon: 'platform', show: operates },
      { to: '/operator/audit', text: 'Audit of the installation', icon: 'audit', show: operates },
    ],
  },
]

/** The pages of the menu that the member may see, for Ctrl-K. */
const places = () =>
  MENU.flatMap(({ title, items }) =>
    items.filter(item => item.show()).map(({ text, to }) => ({ text, what: title, to })),
  )

const menuOpen = signal(false)

const isAt = (to: string, at: string): boolean => at === to || (to !== '/' && at.startsWith(`${to}/`))

/** The page belongs to an item of the menu that is not for the member. */
const barredAt = (at: string): string | null => {
  const group = MENU.find(({ items }) => items.some(({ to, show }) => isAt(to, at) && !show()))
  if (!group) return null
  return group.title === OPERATOR ? 'Only an operator of the platform may do this.' : 'This page is not for your role.'
}

export function Shell({ children }: { children: ComponentChildren }) {
  const at = path.value
  const barred = barredAt(at)
  useEffect(() => {
    menuOpen.value = false
  }, [at])
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <Side />
      <button
        type="button"
        class={`veil ${menuOpen.value ? 'open' : ''}`}
        aria-label="Close the menu"
        tabIndex={-1}
        onClick={() => {
          menuOpen.value = false
        }}
      />
      <div>
        <Top />
        <main class="main" id="main" tabIndex={-1}>
          {barred === null ? children : <Empty title={barred}>Ask an admin of your organization.</Empty>}
        </main>
      </div>
      <PhoneDock />
      <Palette pages={places()} />
    </div>
  )
}

const Side = () => (
  <div class={`side ${menuOpen.value ? 'open' : ''}`}>
    <a class="brand" href={hrefOf('/')}>
      <img src={logo} alt="" />
      Strowger
    </a>
    <div class="only-narrow">
      <ProjectState />
    </div>
    <nav aria-label="Main">
      {MENU.map(({ title, items }) => {
        const shown = items.filter(item => item.show())
        return shown.length === 0 ? null : (
          <div key={title}>
            <h2>{title}</h2>
            <ul>
              {shown.map(item => (
                <li key={item.to}>
                  <a href={hrefOf(item.to)} aria-current={isAt(item.to, path.value) ? 'page' : undefined}>
                    <Icon name={item.icon} />
                    {item.text}
                    {item.to === '/alerts' && (firing.value ?? 0) > 0 && (
                      <span class="tally">
                        {firing.value}
                        <span class="hidden-visually"> firing</span>
                      </span>
                    )}
                  </a>
                </li>
              ))}
            </ul>
          </div>
        )
      })}
      <h2>Help</h2>
      <ul>
        <li>
          <a href="/docs/guides" target="_blank" rel="noreferrer">
            <Icon name="audit" />
            Documentation
          </a>
        </li>
      </ul>
    </nav>
  </div>
)

function Top() {
  const who = session.value
  if (!who) return null
  const signOut = async () => {
    try {
      await ask('DELETE', '/session')
    } catch (error) {
      const { status, detail } = problemOf(error)
      if (status !== 401) return toast(`You are still signed in. ${detail}`)
    }
    signedOut()
  }
  return (
    <header class="top">
      <button
        type="button"
        class="icon-button menu-button"
        aria-label="Menu"
        aria-expanded={menuOpen.value}
        onClick={() => {
          menuOpen.value = !menuOpen.value
        }}
      >
        <Icon name="menu" />
      </button>
      <ProjectSwitch />
      <span class="only-wide" data-project-state>
        <ProjectState />
      </span>
      <div class="grow" />
      <GoTo />
      {may('live_calls:read') && (
        <span class={`live-dot only-wide ${live.value.connected ? 'on' : ''}`}>
          {live.value.connected ? 'Connected' : 'Reconnecting'}
        </span>
      )}
      {may('service_configuration:write') && (
        <button
          type="button"
          class="button"
          aria-expanded={phoneOpen.value}
          onClick={() => {
            phoneOpen.value = !phoneOpen.value
          }}
        >
          <Icon name="phone" />
          {inCall.value ? 'Phone: in a call' : 'Phone'}
        </button>
      )}
      <button
        type="button"
        class="icon-button"
        onClick={switchTheme}
        aria-label={theme.value === 'dark' ? 'Use light colours' : 'Use dark colours'}
      >
        <Icon name={theme.value === 'dark' ? 'sun' : 'moon'} />
      </button>
      <a class="button quiet" href={hrefOf('/account')} title={who.member.email}>
        <Icon name="members" />
        <span class="only-wide">
          {who.member.email} · {ROLE_NAMES[who.member.role]}
        </span>
        <span class="hidden-visually">Your account</span>
      </a>
      <button type="button" class="icon-button" onClick={() => void signOut()} aria-label="Sign out">
        <Icon name="out" />
      </button>
    </header>
  )
}

const GoTo = () => (
  <button
    type="button"
    class="button quiet only-wide"
    onClick={() => {
      paletteOpen.value = true
    }}
  >
    Go to <kbd>Ctrl K</kbd>
  </button>
)

const ProjectState = () => (
  <span
    title={
      inSandbox.value
        ? 'Calls reach the sandbox carrier alone and cost nothing.'
        : 'Calls reach carriers and are billed.'
    }
  >
    <Badge tone={inSandbox.value ? 'note' : 'good'}>{inSandbox.value ? 'Sandbox' : 'Live'}</Badge>
  </span>
)

function ProjectSwitch() {
  const projects = session.value?.projects ?? []
  if (projects.length <= 1)
    return (
      <span>
        <span class="hidden-visually">Project </span>
        <strong>{projects[0]?.name}</strong>
      </span>
    )
  return (
    <label>
      <span class="hidden-visually">Project</span>
      <select value={projectId.value} onChange={event => chooseProject(event.currentTarget.value)}>
        {projects.map(project => (
          <option key={project.id} value={project.id}>
            {project.name}
          </option>
        ))}
      </select>
    </label>
  )
}

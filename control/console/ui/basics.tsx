import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Data } from '../lib/data.ts'
import { ago, count, when, words } from '../lib/format.ts'
import { statusOfCall } from '../lib/outcome.ts'
import type { Problem } from '../lib/problem.ts'
import type { Tone } from '../lib/tone.ts'
import { Icon, type IconName } from './icons.tsx'
import { toast } from './toast.tsx'

interface ButtonProps {
  readonly children: ComponentChildren
  readonly onClick?: () => void
  readonly kind?: 'main-one' | 'danger' | 'quiet' | undefined
  readonly small?: boolean
  readonly type?: 'button' | 'submit'
  readonly disabled?: boolean
  readonly icon?: IconName
  readonly label?: string
}

export const Button = ({ children, onClick, kind, small, type = 'button', disabled, icon, label }: ButtonProps) => (
  <button
    type={type}
    class={`button ${kind ?? ''} ${small ? 'small' : ''}`}
    onClick={onClick}
    disabled={disabled}
    aria-label={label}
  >
    {icon && <Icon name={icon} />}
    {children}
  </button>
)

export const LinkButton = ({
  href,
  children,
  kind,
  icon,
  small,
}: {
  href: string
  children: ComponentChildren
  kind?: 'main-one' | 'quiet' | undefined
  icon?: IconName
  small?: boolean
}) => (
  <a class={`button ${kind ?? ''} ${small ? 'small' : ''}`} href={href}>
    {icon && <Icon name={icon} />}
    {children}
  </a>
)

export const Badge = ({
  tone = 'idle',
  children,
  busy,
}: {
  tone?: Tone
  children: ComponentChildren
  busy?: boolean
}) => <span class={`badge ${tone} ${busy ? 'busy' : ''}`}>{children}</span>

const TONES: Readonly<Record<string, Tone>> = {
  enabled: 'good',
  active: 'good',
  applied: 'good',
  completed: 'good',
  delivered: 'good',
  healthy: 'good',
  passed: 'good',
  resolved: 'good',
  approved: 'good',
  registered: 'good',
  'in-progress': 'note',
  ringing: 'note',
  queued: 'note',
  running: 'note',
  applying: 'warn',
  pending: 'warn',
  partially_applied: 'warn',
  releasing: 'warn',
  retiring: 'warn',
  quarantined: 'warn',
  acknowledged: 'warn',
  degraded: 'warn',
  waiting: 'idle',
  warning: 'warn',
  busy: 'warn',
  'no-answer': 'warn',
  suspended: 'bad',
  'document-failed': 'bad',
  failed: 'bad',
  revoked: 'bad',
  firing: 'bad',
  critical: 'bad',
  rejected: 'bad',
  info: 'note',
}
const MOVING = new Set(['applying', 'pending', 'running', 'ringing', 'in-progress', 'releasing', 'waiting'])

/** A badge for a state. A state has the same colour everywhere. */
export const Status = ({ of }: { of: string }) => (
  <Badge tone={TONES[of] ?? 'idle'} busy={MOVING.has(of)}>
    {words(of)}
  </Badge>
)

/** How a call stands. A call whose document failed is no success, though it was answered. */
export const CallStatus = ({ call }: { call: Parameters<typeof statusOfCall>[0] }) => <Status of={statusOfCall(call)} />

/** A relative time that updates itself; its title has the exact time. */
export function Time({ at }: { at: string | null | undefined }) {
  const [, setTick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setTick(value => value + 1), 15_000)
    return () => clearInterval(timer)
  }, [])
  if (at == null) return <span class="muted">–</span>
  return (
    <time dateTime={at} title={when(at)}>
      {ago(at)}
    </time>
  )
}

export function CopyButton({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState(false)
  const copy = async () => {
    await copyText(text)
    setDone(true)
    toast(`Copied ${what}`)
    setTimeout(() => setDone(false), 1500)
  }
  return (
    <button type="button" class="copy" onClick={() => void copy()} aria-label={`Copy ${what}`} title={`Copy ${what}`}>
      <Icon name={done ? 'check' : 'copy'} />
    </button>
  )
}

/** Copies with `navigator.clipboard`, or with `execCommand` where that is missing: browsers offer it only over TLS. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    const written = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    )
    if (written) return
  }
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}

export const Id = ({ value, what = 'the id' }: { value: string; what?: string }) => (
  <span class="with-copy">
    <span class="mono" title={value}>
      {value}
    </span>
    <CopyButton text={value} what={what} />
  </span>
)

/** A scrolling box that the keyboard can reach and scroll. */
export const ScrollBox = ({ label, kind, children }: { label: string; kind: string; children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach a scrolling box.
  <section class={kind} tabIndex={0} aria-label={label}>
    {children}
  </section>
)

export const CodeBox = ({ text, what, language }: { text: string; what: string; language?: string }) => (
  <div class="code-box">
    <ScrollBox label={what} kind="code">
      <pre data-language={language}>{text}</pre>
    </ScrollBox>
    <CopyButton text={text} what={what} />
  </div>
)

export const Card = ({
  title,
  hint,
  actions,
  children,
  flush,
  foot,
}: {
  title?: ComponentChildren
  hint?: ComponentChildren
  actions?: ComponentChildren
  children: ComponentChildren
  /** The body is a table that reaches to the edges. */
  flush?: boolean
  foot?: ComponentChildren
}) => (
  <section class="card">
    {title !== undefined && (
      <header>
        <h2>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
        {hint && <p>{hint}</p>}
      </header>
    )}
    {flush ? children : <div class="body">{children}</div>}
    {foot && <footer>{foot}</footer>}
  </section>
)

interface HeadProps {
  readonly title: string
  readonly sub?: ComponentChildren
  readonly badges?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly back?: { readonly href: string; readonly text: string }
}

export function PageHead({ title, sub, badges, actions, back }: HeadProps) {
  useEffect(() => {
    document.title = `${title} · Strowger`
  }, [title])
  return (
    <div class="head">
      <div>
        {back && (
          <p class="crumbs">
            <a href={back.href}>← {back.text}</a>
          </p>
        )}
        <div class="title">
          <h1>{title}</h1>
          {badges}
        </div>
        {sub && <div class="sub">{sub}</div>}
      </div>
      {actions && <div class="actions">{actions}</div>}
    </div>
  )
}

export const Facts = ({ rows }: { rows: readonly (readonly [string, ComponentChildren] | null)[] }) => (
  <dl class="facts">
    {rows.map(row =>
      row === null ? null : (
        <>
          <dt>{row[0]}</dt>
          <dd>{row[1]}</dd>
        </>
      ),
    )}
  </dl>
)

export const Stats = ({ children }: { children: ComponentChildren }) => <dl class="stats">{children}</dl>
export const Stat = ({ name, value, hint }: { name: string; value: ComponentChildren; hint?: ComponentChildren }) => (
  <div class="stat">
    <dt>{name}</dt>
    <dd>
      {value}
      {hint && <div class="hint">{hint}</div>}
    </dd>
  </div>
)

/** Shows how much of a ceiling is used; without a ceiling, only the number. */
export function Meter({
  name,
  used,
  limit,
  show,
}: {
  name: string
  used: number
  limit: number | null
  show?: (n: number) => string
}) {
  const text = show ?? count
  const share = limit === null ? 0 : limit === 0 ? 1 : Math.min(1, used / limit)
  return (
    <div class="meter">
      <div class="row">
        <span>{name}</span>
        <span class="muted num">
          {text(used)}
          {limit === null ? ', no ceiling' : ` of ${text(limit)}`}
        </span>
      </div>
      {limit !== null && (
        <div class="bar" aria-hidden="true">
          <i class={share >= 1 ? 'full' : share >= 0.8 ? 'high' : ''} style={{ width: `${share * 100}%` }} />
        </div>
      )}
    </div>
  )
}

export const Notice = ({
  tone = 'note',
  title,
  children,
}: {
  tone?: Tone
  title?: string
  children?: ComponentChildren
}) => (
  <div class={`notice ${tone}`}>
    {title && <strong>{title}</strong>}
    {children}
  </div>
)

/** Shows an error in the words of the API, with the messages that no form field shows. */
export function ProblemBox({ problem, rest }: { problem: Problem | null; rest?: readonly string[] }) {
  if (problem === null) return null
  const left = rest ?? (problem.errors ?? []).map(error => `${error.pointer} ${error.message}`)
  return (
    <div class="notice bad" role="alert">
      <strong>{problem.title}</strong>
      <span>{problem.detail}</span>
      {left.length > 0 && (
        <ul>
          {left.map(line => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      {problem.remediation && <span>{problem.remediation}</span>}
      {problem.type !== '' && (
        <span class="small">
          <a href={`/docs/errors/${problem.code}`} target="_blank" rel="noreferrer">
            {problem.code}
          </a>
          {problem.request_id && ` · request ${problem.request_id}`}
        </span>
      )}
    </div>
  )
}

interface LoadedProps<T> {
  readonly of: Data<T>
  /** The head of a page whose data could not be read: its own head needs the data. */
  readonly page?: Pick<HeadProps, 'title' | 'back'>
  readonly children: (data: T) => ComponentChildren
}

/** Shows an error, a placeholder while loading, or the data. */
export function Loaded<T>({ of, page, children }: LoadedProps<T>) {
  if (of.data !== undefined)
    return (
      <>
        {of.problem && <ProblemBox problem={of.problem} />}
        {children(of.data)}
      </>
    )
  if (of.problem)
    return (
      <div class="stack">
        {page && <PageHead {...page} />}
        <ProblemBox problem={of.problem} />
        {of.problem.status !== 403 && of.problem.status !== 404 && (
          <div>
            <Button onClick={of.reload}>Try again</Button>
          </div>
        )}
      </div>
    )
  return (
    <div class="loading" role="status">
      Loading…
    </div>
  )
}

/** What stands where rows will: that they are read, that they could not be, or else that there are none. */
export const NoRows = ({
  of: { loading, problem },
  children,
}: {
  of: Pick<Data<unknown>, 'loading' | 'problem'>
  children: ComponentChildren
}) =>
  problem ? (
    <p class="loading">It could not be read.</p>
  ) : loading ? (
    <output class="loading">Loading…</output>
  ) : (
    children
  )

export const Empty = ({
  title,
  children,
  action,
  api,
}: {
  title: string
  children?: ComponentChildren
  action?: ComponentChildren
  /** The command that does the same. */
  api?: string
}) => (
  <div class="empty">
    <h3>{title}</h3>
    {children && <p>{children}</p>}
    {action}
    {api && (
      <details>
        <summary>The same over the API or the command line</summary>
        <CodeBox text={api} what="the command" />
      </details>
    )}
  </div>
)

/** Stands in place of a part of a page whose address a member has, and whose scope the role has not. */
export const NotForRole = () => (
  <Card flush>
    <Empty title="Your role may not see this page">Ask an admin of your organization.</Empty>
  </Card>
)

export const Tabs = ({
  items,
  current,
}: {
  items: readonly { href: string; text: string; id: string }[]
  current: string
}) => (
  <nav class="tabs" aria-label="Parts of this page">
    {items.map(item => (
      <a key={item.id} href={item.href} aria-current={item.id === current ? 'page' : undefined}>
        {item.text}
      </a>
    ))}
  </nav>
)

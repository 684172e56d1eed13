import type { ComponentChildren } from 'preact'
import type { Alert } from '../lib/api-types.ts'
import { money, when, words } from '../lib/format.ts'
import { hrefOf } from '../lib/router.ts'
import { Card, Facts, Status, Time } from '../ui/basics.tsx'

/** Returns the console page for the link of a suggested action, or the link itself when there is no page. */
const actionHref = (href: string): string =>
  href.startsWith('/console') ? href : href.startsWith('/v1/trunks/') ? hrefOf(href.slice(3)) : href

/** The instants in a text of the API, as times are written everywhere. */
const timed = (text: string): string => text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, at => when(at))

function evidenceText({ text, amount_minor, currency, note }: Alert['evidence'][number]): string {
  const parts = [text, amount_minor === null ? null : money(amount_minor, currency ?? undefined), note]
  return timed(parts.filter(Boolean).join(', ')) || '–'
}

interface Props {
  readonly alert: Alert
  readonly actions: ComponentChildren
  /** Whose alert it is. The links of a customer's alert lead to pages of that customer, so it has none here. */
  readonly project?: ComponentChildren
}

/** An alert with its evidence and what to do. */
export const AlertCard = ({ alert, actions, project }: Props) => (
  <Card
    title={
      <>
        {words(alert.kind)}: {alert.subject.name}
      </>
    }
    actions={
      <>
        <Status of={alert.severity} />
        <Status of={alert.state} />
        {actions}
      </>
    }
  >
    <p>{alert.reason}</p>
    <Facts
      rows={[
        project ? (['Project', project] as const) : null,
        ...alert.evidence.map(item => [item.label, evidenceText(item)] as const),
        ['What to do', alert.remediation] as const,
        ['Fired', <Time key="f" at={alert.fired_at} />] as const,
        alert.acknowledged_at ? (['Acknowledged', `by ${alert.acknowledged_by}`] as const) : null,
        alert.resolved_at ? (['Resolved', <Time key="r" at={alert.resolved_at} />] as const) : null,
      ]}
    />
    {!project && (
      <div class="row">
        {alert.suggested_actions.map(suggested => (
          <a class="button small" key={suggested.href} href={actionHref(suggested.href)}>
            {suggested.label}
          </a>
        ))}
      </div>
    )}
  </Card>
)

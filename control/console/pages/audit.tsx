import type { PageProps } from '../app.tsx'
import { useData } from '../lib/data.ts'
import { count, when, words } from '../lib/format.ts'
import { hrefOf, query, setQuery } from '../lib/router.ts'
import { Badge, Button, Card, Empty, Facts, Id, Loaded, PageHead, Time } from '../ui/basics.tsx'
import { SelectField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'

interface AuditEventRow {
  readonly id: string
  readonly action: string
  readonly actor: { readonly detail: string | null; readonly name: string; readonly type: string }
  readonly applied: boolean
  readonly at: string
  readonly category: string
  readonly detail: string | null
  readonly effective_revision: number | null
  readonly from_revision: number | null
  readonly kind: string
  readonly request_id: string | null
  readonly resource: { readonly href: string | null; readonly id: string; readonly name: string; readonly type: string }
  readonly summary: string
  readonly to_revision: number | null
}

export interface AuditPage {
  readonly data: readonly AuditEventRow[]
  readonly next_cursor: string | null
  readonly previous_cursor: string | null
  readonly retention_days: number
  readonly total: number
  readonly total_all: number
}

const options = (values: readonly string[]) =>
  values.map(value => ({ value, text: value === 'any' ? 'Any' : words(value) }))

export function Audit() {
  const actor = query.value.get('actor') ?? 'any'
  const kind = query.value.get('kind') ?? 'any'
  const range = query.value.get('range') ?? '7d'
  const cursor = query.value.get('cursor') ?? ''
  const page = useData<AuditPage>(
    `/v1/audit?actor=${actor}&kind=${kind}&range=${range}&limit=50${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
  )
  return (
    <>
      <PageHead
        title="Audit trail"
        sub="Who changed what, and when it came into force. Each event is chained to the one before it."
      />
      <div class="filters">
        <SelectField
          label="By"
          value={actor}
          onInput={value => setQuery({ actor: value, cursor: '' })}
          options={options(['any', 'user', 'api_key', 'operator', 'system'])}
        />
        <SelectField
          label="About"
          value={kind}
          onInput={value => setQuery({ kind: value, cursor: '' })}
          options={options(['any', 'trunks', 'numbers', 'credentials', 'seats', 'alerts'])}
        />
        <SelectField
          label="When"
          value={range}
          onInput={value => setQuery({ range: value, cursor: '' })}
          options={[
            { value: '24h', text: 'Last 24 hours' },
            { value: '7d', text: 'Last 7 days' },
            { value: '30d', text: 'Last 30 days' },
            { value: 'all', text: 'All' },
          ]}
        />
      </div>
      <Loaded of={page}>
        {found => (
          <Card flush>
            {found.data.length === 0 ? (
              <Empty
                title="Nothing happened in this range"
                api={'curl "$STROWGER_URL/v1/audit?range=7d" -H "Authorization: Bearer $STROWGER_API_KEY"'}
              />
            ) : (
              <Table
                label="Audit trail"
                rows={found.data}
                keyOf={event => event.id}
                hrefOf={event => hrefOf(`/audit/${event.id}`)}
                columns={[
                  { title: 'What', cell: event => event.summary },
                  { title: 'By', cell: event => event.actor.name },
                  {
                    title: 'Revision',
                    cell: event => (event.to_revision === null ? '–' : event.to_revision),
                    right: true,
                    wide: true,
                  },
                  {
                    title: 'State',
                    cell: event =>
                      event.applied ? <Badge tone="good">Applied</Badge> : <Badge tone="warn">Applying</Badge>,
                    wide: true,
                  },
                  { title: 'When', cell: event => <Time at={event.at} /> },
                ]}
              />
            )}
            <div class="table-foot">
              <span>
                {count(found.total)} of {count(found.total_all)} events, kept {count(found.retention_days)} days
              </span>
              <span class="row">
                {found.previous_cursor !== null && (
                  <Button small onClick={() => setQuery({ cursor: found.previous_cursor ?? '' })}>
                    Newer
                  </Button>
                )}
                {found.next_cursor !== null && (
                  <Button small onClick={() => setQuery({ cursor: found.next_cursor ?? '' })}>
                    Older
                  </Button>
                )}
              </span>
            </div>
          </Card>
        )}
      </Loaded>
    </>
  )
}

interface AuditDetail {
  readonly changes: readonly {
    readonly after: string | null
    readonly before: string | null
    readonly label: string
    readonly redacted: boolean
    readonly unchanged: boolean
  }[]
  readonly event: AuditEventRow
  readonly notes: readonly string[]
  readonly timeline: readonly { readonly at: string; readonly text: string }[]
}

export function AuditEvent({ params }: PageProps) {
  const of = useData<AuditDetail>(`/v1/audit/${params['id']}`)
  return (
    <Loaded of={of}>
      {({ event, changes, notes, timeline }) => (
        <>
          <PageHead
            title={event.summary}
            back={{ href: hrefOf('/audit'), text: 'Audit trail' }}
            sub={<Id value={event.id} />}
          />
          <div class="columns">
            <Card title="Event">
              <Facts
                rows={[
                  [
                    'By',
                    `${event.actor.name} (${words(event.actor.type)}${event.actor.detail ? `, ${event.actor.detail}` : ''})`,
                  ],
                  ['At', when(event.at)],
                  ['Action', <code key="a">{event.action}</code>],
                  ['Resource', `${words(event.resource.type)} ${event.resource.name}`],
                  ['Revision', event.to_revision === null ? '–' : `${event.from_revision ?? 0} → ${event.to_revision}`],
                  ['Request', event.request_id ? <Id key="r" value={event.request_id} what="the request id" /> : '–'],
                  event.detail ? ['Reason', event.detail] : null,
                ]}
              />
              {notes.map(note => (
                <p key={note} class="muted">
                  {note}
                </p>
              ))}
            </Card>
            <Card title="Timeline">
              <ol class="timeline">
                {timeline.map(step => (
                  <li key={step.at + step.text}>
                    <time dateTime={step.at}>{when(step.at)}</time>
                    <div>{step.text}</div>
                  </li>
                ))}
              </ol>
            </Card>
          </div>
          <Card title="Fields" flush>
            {changes.length === 0 ? (
              <Empty title="No field changed" />
            ) : (
              <Table
                label="Fields"
                rows={changes.filter(change => !change.unchanged)}
                keyOf={change => change.label}
                columns={[
                  { title: 'Field', cell: change => <code>{change.label}</code> },
                  {
                    title: 'Before',
                    cell: change =>
                      change.redacted ? '(kept secret)' : <span class="mono">{change.before ?? '–'}</span>,
                  },
                  {
                    title: 'After',
                    cell: change =>
                      change.redacted ? '(kept secret)' : <span class="mono">{change.after ?? '–'}</span>,
                  },
                ]}
              />
            )}
          </Card>
        </>
      )}
    </Loaded>
  )
}

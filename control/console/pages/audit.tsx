import { counted } from '../../../core/domain/text/counted.ts'
import type { AuditEventDetail, AuditPage } from '../lib/api-types.ts'
import { useData } from '../lib/data.ts'
import { count, when, words } from '../lib/format.ts'
import { hrefOf, type PageProps, query, setQuery } from '../lib/router.ts'
import { Badge, Button, Card, Empty, Facts, Id, Loaded, PageHead, Time } from '../ui/basics.tsx'
import { SelectField } from '../ui/form.tsx'
import { type Column, Table } from '../ui/table.tsx'

/** What the API says of events that are never deleted. */
const FOR_EVER_DAYS = 36_500

const options = (values: readonly string[]) =>
  values.map(value => ({ value, text: value === 'any' ? 'Any' : words(value) }))

/** A trail: its address in the API, and that of its page. */
interface TrailProps {
  readonly api: '/v1' | '/operator/v1'
  readonly home: string
  readonly title: string
  readonly sub: string
}

export const Audit = () => (
  <Trail
    api="/v1"
    home="/audit"
    title="Audit trail"
    sub="Who changed what, and when it came into force. Each event is chained to the one before it."
  />
)

export const AuditEvent = ({ params }: PageProps) => (
  <TrailEvent api="/v1" id={params['id'] ?? ''} back={{ href: hrefOf('/audit'), text: 'Audit trail' }} />
)

const TRAIL_COLUMNS: readonly Column<AuditPage['data'][number]>[] = [
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
    cell: event => (event.applied ? <Badge tone="good">Applied</Badge> : <Badge tone="warn">Applying</Badge>),
    wide: true,
  },
  { title: 'When', cell: event => <Time at={event.at} /> },
]

export function Trail({ api, home, title, sub }: TrailProps) {
  const actor = query.value.get('actor') ?? 'any'
  const kind = query.value.get('kind') ?? 'any'
  const range = query.value.get('range') ?? '7d'
  const cursor = query.value.get('cursor') ?? ''
  const page = useData<AuditPage>(
    `${api}/audit?actor=${actor}&kind=${kind}&range=${range}&limit=50${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
  )
  return (
    <>
      <PageHead title={title} sub={sub} />
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
                api={`curl "$STROWGER_URL${api}/audit?range=7d" -H "Authorization: Bearer $STROWGER_API_KEY"`}
              />
            ) : (
              <Table
                label="Audit trail"
                rows={found.data}
                keyOf={event => event.id}
                hrefOf={event => hrefOf(`${home}/${event.id}`)}
                columns={TRAIL_COLUMNS}
              />
            )}
            <div class="table-foot">
              <span>
                {count(found.total)} of {counted(found.total_all, 'event')}, kept{' '}
                {found.retention_days < FOR_EVER_DAYS ? counted(found.retention_days, 'day') : 'for ever'}
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

interface TrailEventProps {
  readonly api: TrailProps['api']
  readonly id: string
  readonly back: { readonly href: string; readonly text: string }
}

export function TrailEvent({ api, id, back }: TrailEventProps) {
  const of = useData<AuditEventDetail>(`${api}/audit/${id}`)
  return (
    <Loaded of={of} page={{ title: 'Event', back }}>
      {({ event, changes, notes, timeline }) => (
        <>
          <PageHead title={event.summary} back={back} sub={<Id value={event.id} />} />
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

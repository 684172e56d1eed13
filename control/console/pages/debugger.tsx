import { useCallback, useEffect, useState } from 'preact/hooks'
import { ask, read } from '../lib/api.ts'
import type { CallFault, WebhookDelivery, WebhookEndpoint } from '../lib/api-types.ts'
import { useAction, usePages } from '../lib/data.ts'
import { when, words } from '../lib/format.ts'
import { hrefOf } from '../lib/router.ts'
import { may, projectId } from '../lib/session.ts'
import type { Tone } from '../lib/tone.ts'
import type { ListOf } from '../lib/types.ts'
import { Badge, Button, Card, CodeBox, Empty, Facts, NoRows, PageHead, ProblemBox, Time } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'

const POLL_MS = 5000
/** A look at the faults reads a thousand calls where few have one. */
const FAULTS_POLL_MS = 15_000
const DELIVERIES_SHOWN = 20

/** An endpoint with its newest deliveries. */
interface Watched {
  readonly endpoint: WebhookEndpoint
  readonly deliveries: readonly WebhookDelivery[]
}

/** One line of the page: a fault of a call, or an event that an endpoint has not taken. */
type Entry =
  | { readonly id: string; readonly at: string; readonly fault: CallFault }
  | {
      readonly id: string
      readonly at: string
      readonly delivery: WebhookDelivery
      readonly endpoint: WebhookEndpoint
    }

const faultKey = (fault: CallFault) => fault.id

/** Everything that went wrong: webhooks, scripts and refused calls, with what was sent and what came back. */
export function Debugger() {
  const faults = usePages<CallFault>('/v1/call-faults?limit=50', { poll_ms: FAULTS_POLL_MS, key: faultKey })
  const { watched, reload } = useEndpoints()
  const [shown, setShown] = useState<Entry | null>(null)
  const entries = entriesOf(faults.rows, watched)
  return (
    <>
      <PageHead
        title="Debugger"
        sub="Failures of webhooks, scripts and calls, with the request and the answer of each."
      />
      {watched.length > 0 && <Endpoints of={watched} />}
      <ProblemBox problem={faults.problem} />
      <Card title="Faults" flush>
        {entries.length === 0 ? (
          <NoRows of={faults}>
            <Empty
              title="Nothing went wrong"
              api={'curl "$STROWGER_URL/v1/call-faults" -H "Authorization: Bearer $STROWGER_API_KEY"'}
            />
          </NoRows>
        ) : (
          <FaultTable entries={entries} onShow={setShown} onRetried={reload} />
        )}
        {faults.more && (
          <div class="table-foot">
            <Button small onClick={faults.loadMore} disabled={faults.loading}>
              Look further back
            </Button>
          </div>
        )}
      </Card>
      {shown && <Details of={shown} onClose={() => setShown(null)} />}
    </>
  )
}

/** Reads the endpoints and their newest deliveries again and again. Nobody reads them without the scope. */
function useEndpoints(): { readonly watched: readonly Watched[]; reload(): void } {
  const [watched, setWatched] = useState<readonly Watched[]>([])
  const project = projectId.value
  const load = useCallback(async () => {
    const { data } = await read<ListOf<WebhookEndpoint>>('/v1/webhook-endpoints')
    setWatched(
      await Promise.all(
        data.map(async endpoint => {
          const path = `/v1/webhook-endpoints/${endpoint.id}/deliveries?limit=${DELIVERIES_SHOWN}`
          return { endpoint, deliveries: (await read<ListOf<WebhookDelivery>>(path)).data }
        }),
      ),
    )
  }, [])
  const reload = useCallback(() => void load().catch(() => undefined), [load])
  useEffect(() => {
    setWatched([])
    if (!may('developers:manage')) return
    reload()
    const timer = setInterval(() => document.visibilityState === 'visible' && reload(), POLL_MS)
    return () => clearInterval(timer)
  }, [project, reload])
  return { watched, reload }
}

const isFailing = ({ attempts, state }: WebhookDelivery) => attempts > 0 && state !== 'delivered'

function entriesOf(faults: readonly CallFault[], watched: readonly Watched[]): Entry[] {
  const oldest = faults.at(-1)?.at ?? ''
  const deliveries = watched.flatMap(({ endpoint, deliveries }) =>
    deliveries.filter(isFailing).map(delivery => ({
      id: delivery.id,
      at: delivery.last_attempt_at ?? delivery.created_at,
      delivery,
      endpoint,
    })),
  )
  const of_calls = faults.map(fault => ({ id: fault.id, at: fault.at, fault }))
  return [...of_calls, ...deliveries.filter(({ at, delivery }) => at >= oldest || delivery.state === 'pending')].sort(
    (a, b) => b.at.localeCompare(a.at),
  )
}

/** An endpoint is red as long as the newest event that it was sent is not taken. */
function healthOf({ endpoint, deliveries }: Watched): { readonly tone: Tone; readonly text: string } {
  if (!endpoint.enabled) return { tone: 'idle', text: 'Disabled' }
  const tried = deliveries.filter(({ attempts }) => attempts > 0)
  const newest = tried.reduce<WebhookDelivery | null>(
    (best, delivery) => ((best?.last_attempt_at ?? '') < (delivery.last_attempt_at ?? '') ? delivery : best),
    null,
  )
  if (newest === null) return { tone: 'idle', text: 'Nothing sent yet' }
  return isFailing(newest) ? { tone: 'bad', text: 'Failing' } : { tone: 'good', text: 'Healthy' }
}

const Endpoints = ({ of }: { of: readonly Watched[] }) => (
  <Card title="Webhook endpoints" flush>
    <Table
      label="Health of endpoints"
      rows={of}
      keyOf={row => row.endpoint.id}
      hrefOf={row => hrefOf(`/webhooks/${row.endpoint.id}`)}
      columns={[
        { title: 'Address', cell: row => <span class="mono">{row.endpoint.url}</span> },
        {
          title: 'Health',
          cell: row => {
            const { tone, text } = healthOf(row)
            return <Badge tone={tone}>{text}</Badge>
          },
        },
        { title: 'Waiting', cell: row => row.deliveries.filter(isFailing).length, right: true, wide: true },
        { title: 'Last event', cell: row => <Time at={row.deliveries[0]?.created_at} />, wide: true },
      ]}
    />
  </Card>
)

const KINDS: Readonly<Record<CallFault['kind'] | 'delivery', string>> = {
  document: 'Script',
  request: 'Request',
  refusal: 'Call',
  delivery: 'Webhook',
}

const kindOf = (entry: Entry) => ('fault' in entry ? entry.fault.kind : 'delivery')

const sentenceOf = (entry: Entry): string =>
  'fault' in entry
    ? entry.fault.sentence
    : `${entry.delivery.event_kind} was not taken: ${entry.delivery.last_error ?? 'no answer'} (try ${entry.delivery.attempts}).`

interface FaultTableProps {
  readonly entries: readonly Entry[]
  readonly onShow: (entry: Entry) => void
  readonly onRetried: () => void
}

function FaultTable({ entries, onShow, onRetried }: FaultTableProps) {
  const action = useAction()
  const retry = (endpoint: WebhookEndpoint, delivery: WebhookDelivery) =>
    action.run(async () => {
      await ask('POST', `/v1/webhook-endpoints/${endpoint.id}/deliveries/${delivery.id}/redeliver`)
      toast('The event is sent again')
      onRetried()
    })
  return (
    <>
      <ProblemBox problem={action.problem} />
      <Table
        label="Faults"
        rows={entries}
        keyOf={row => row.id}
        columns={[
          { title: 'What', cell: row => <Badge tone="bad">{KINDS[kindOf(row)]}</Badge> },
          { title: 'When', cell: row => <span class="nowrap">{when(row.at)}</span> },
          { title: 'Sentence', cell: sentenceOf },
          { title: 'Where', cell: row => <Where of={row} />, wide: true },
          {
            title: '',
            right: true,
            cell: row => (
              <span class="row">
                {'delivery' in row && (
                  <Button
                    small
                    disabled={action.busy}
                    label={`Send again ${row.delivery.event_kind} to ${row.endpoint.url}`}
                    onClick={() => void retry(row.endpoint, row.delivery)}
                  >
                    Send again
                  </Button>
                )}
                <Button small label={`Details: ${sentenceOf(row)}`} onClick={() => onShow(row)}>
                  Details
                </Button>
              </span>
            ),
          },
        ]}
      />
    </>
  )
}

const Where = ({ of }: { of: Entry }) =>
  'fault' in of ? (
    <a href={hrefOf(`/calls/${of.fault.call_id}`)}>
      {of.fault.from} → {of.fault.to}
    </a>
  ) : (
    <a class="mono" href={hrefOf(`/webhooks/${of.endpoint.id}`)}>
      {of.endpoint.url}
    </a>
  )

const json = (value: unknown): string => JSON.stringify(value, null, 2)

const Details = ({ of, onClose }: { of: Entry; onClose: () => void }) => (
  <Dialog title={KINDS[kindOf(of)]} onClose={onClose} wide>
    <p>{sentenceOf(of)}</p>
    <Facts
      rows={[
        ['When', when(of.at)],
        ['Where', <Where key="w" of={of} />],
        'fault' in of && of.fault.number !== null
          ? [
              'Error',
              <a key="e" href={`/docs/errors/${of.fault.number}`} target="_blank" rel="noreferrer">
                {of.fault.number}
              </a>,
            ]
          : null,
        'fault' in of && of.fault.sip_code !== null
          ? ['SIP', `${of.fault.sip_code}, ${words(of.fault.reason ?? '–')}`]
          : null,
        'delivery' in of ? ['Next try', <Time key="n" at={of.delivery.next_attempt_at} />] : null,
      ]}
    />
    {'fault' in of && of.fault.request && <CodeBox text={json(of.fault.request)} what="the request" language="json" />}
    {'fault' in of && of.fault.response && (
      <CodeBox text={json(of.fault.response)} what="the response" language="json" />
    )}
    {'delivery' in of && <CodeBox text={json(of.delivery.payload)} what="the event" language="json" />}
    {'delivery' in of && (
      <CodeBox
        text={json({ event: of.delivery.event_id, status: of.delivery.last_status, error: of.delivery.last_error })}
        what="the answer"
        language="json"
      />
    )}
    {'fault' in of && of.fault.kind === 'refusal' && (
      <div class="row">
        <a class="button small" href={hrefOf(`/calls/${of.fault.call_id}/decision`)}>
          Why it was refused
        </a>
        <a class="button small" href={hrefOf(`/calls/${of.fault.call_id}/ladder`)}>
          SIP messages
        </a>
      </div>
    )}
  </Dialog>
)

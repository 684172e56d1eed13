import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { WebhookDelivery, WebhookEndpoint, WebhookEndpointCreation, WebhookSecret } from '../lib/api-types.ts'
import { wrongUrl } from '../lib/checks.ts'
import { type Action, type Pages, useAction, useData, usePages } from '../lib/data.ts'
import { count } from '../lib/format.ts'
import { messagesAt } from '../lib/problem.ts'
import { go, hrefOf, type PageProps } from '../lib/router.ts'
import { hasRole } from '../lib/session.ts'
import type { ListOf } from '../lib/types.ts'
import { Badge, Button, Card, Empty, Id, Loaded, Notice, PageHead, ProblemBox, Status, Time } from '../ui/basics.tsx'
import { ConfirmByName, Dialog, SecretOnce } from '../ui/dialog.tsx'
import { CheckField, Chips, Form, NumberField, TextField } from '../ui/form.tsx'
import { Listed, Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'

interface EndpointForm {
  readonly url: string
  readonly description: string
  readonly event_kinds: readonly string[]
  readonly enabled: boolean
}

/** The kinds of events that can be subscribed to, as the API's own description lists them. */
function useEventKinds(): readonly string[] {
  const document = useOpenApi()
  return document ?? ['call.ended']
}

let kinds: Promise<readonly string[]> | null = null
function useOpenApi(): readonly string[] | null {
  const [found, setFound] = useState<readonly string[] | null>(null)
  kinds ??= fetch('/v1/openapi.json')
    .then(response => response.json())
    .then(findKinds, () => ['call.ended'])
  if (found === null) void kinds.then(setFound)
  return found
}

interface OpenApi {
  readonly components?: {
    readonly schemas?: Readonly<
      Record<string, { properties?: Record<string, { items?: { enum?: readonly string[] } }> }>
    >
  }
}

const findKinds = (document: OpenApi): readonly string[] =>
  Object.values(document.components?.schemas ?? {})
    .map(schema => schema.properties?.['event_kinds']?.items?.enum)
    .find(values => values !== undefined) ?? ['call.ended']

interface FieldsProps {
  /** The form was asked for, and takes the focus. */
  readonly asked?: boolean
  readonly form: EndpointForm
  readonly set: (changes: Partial<EndpointForm>) => void
  readonly action: Action
}

function Fields({ asked = false, form, set, action }: FieldsProps) {
  const all = useEventKinds()
  return (
    <>
      <TextField
        label="Address"
        mono
        inputMode="url"
        value={form.url}
        placeholder="https://app.example.com/events"
        onInput={url => set({ url })}
        wrong={wrongUrl(form.url)}
        problem={action.problem}
        at="/url"
        required
        autoFocus={asked}
      />
      <TextField
        label="Description"
        value={form.description}
        onInput={description => set({ description })}
        problem={action.problem}
        at="/description"
      />
      <Chips
        legend="Events"
        values={form.event_kinds}
        onInput={event_kinds => set({ event_kinds })}
        options={all.map(value => ({ value, text: value }))}
        wrong={messagesAt(action.problem, '/event_kinds')}
      />
      <CheckField label="Enabled" checked={form.enabled} onInput={enabled => set({ enabled })} />
    </>
  )
}

const FIELDS = ['/url', '/description', '/event_kinds']
const bodyOf = (form: EndpointForm) => ({
  ...form,
  url: form.url.trim(),
  description: form.description === '' ? null : form.description,
})

export function Webhooks() {
  const endpoints = useData<ListOf<WebhookEndpoint>>('/v1/webhook-endpoints', { poll_ms: 15_000 })
  const [adding, setAdding] = useState<EndpointForm | null>(null)
  const [secret, setSecret] = useState<{ id: string; signing_secret: string } | null>(null)
  const action = useAction()
  const add = () =>
    action.run(async () => {
      if (!adding) return
      const made = await ask<WebhookEndpointCreation>('POST', '/v1/webhook-endpoints', {
        body: bodyOf(adding),
      })
      setAdding(null)
      setSecret({ id: made.endpoint.id, signing_secret: made.signing_secret ?? '' })
    })
  const create = (
    <Button
      kind="main-one"
      icon="plus"
      onClick={() => setAdding({ url: '', description: '', event_kinds: ['call.ended'], enabled: true })}
    >
      Add an endpoint
    </Button>
  )
  return (
    <>
      <PageHead
        title="Webhooks"
        sub="The platform sends events to these addresses of yours. It signs each delivery and tries a failed one again."
        actions={create}
      />
      <Loaded of={endpoints}>
        {({ data }) => (
          <Card flush>
            {data.length === 0 ? (
              <Empty
                title="No endpoint yet"
                action={create}
                api={`curl -X POST "$STROWGER_URL/v1/webhook-endpoints" -H "Authorization: Bearer $STROWGER_API_KEY" \\\n  -H "Idempotency-Key: $(uuidgen)" -H "Content-Type: application/json" \\\n  -d '{"url": "https://app.example.com/events", "event_kinds": ["call.ended"]}'`}
              />
            ) : (
              <Table
                label="Webhook endpoints"
                rows={data}
                keyOf={row => row.id}
                hrefOf={row => hrefOf(`/webhooks/${row.id}`)}
                columns={[
                  { title: 'Address', cell: row => <span class="mono">{row.url}</span> },
                  { title: 'State', cell: row => <Health of={row} /> },
                  { title: 'Events', cell: row => row.event_kinds.join(', '), wide: true },
                  { title: 'Changed', cell: row => <Time at={row.updated_at} />, wide: true },
                ]}
              />
            )}
          </Card>
        )}
      </Loaded>
      {adding && (
        <Dialog title="Add an endpoint" onClose={() => setAdding(null)}>
          <Form onSubmit={() => void add()} submit="Add" busy={action.busy} problem={action.problem} fields={FIELDS}>
            <Fields asked form={adding} set={changes => setAdding({ ...adding, ...changes })} action={action} />
          </Form>
        </Dialog>
      )}
      {secret && (
        <Dialog title="Signing secret" onClose={() => go(`/webhooks/${secret.id}`)}>
          <SecretOnce value={secret.signing_secret} what="the signing secret" />
        </Dialog>
      )}
    </>
  )
}

/** How the newest deliveries of an endpoint went: an endpoint that is enabled may still answer nothing. */
function Health({ of: { id, enabled } }: { of: WebhookEndpoint }) {
  const path = enabled ? `/v1/webhook-endpoints/${id}/deliveries?limit=5` : null
  const deliveries = useData<ListOf<WebhookDelivery>>(path, { poll_ms: 15_000 })
  const tried = (deliveries.data?.data ?? []).filter(({ attempts }) => attempts > 0)
  const failing = tried.length > 0 && tried.every(({ state }) => state !== 'delivered')
  return failing ? <Badge tone="bad">Failing</Badge> : <Status of={enabled ? 'enabled' : 'disabled'} />
}

const keyOf = (delivery: WebhookDelivery): string => delivery.id

export function WebhookPage({ params }: PageProps) {
  const path = `/v1/webhook-endpoints/${params['id']}`
  const of = useData<WebhookEndpoint>(path)
  const deliveries = usePages<WebhookDelivery>(`${path}/deliveries?limit=50`, { poll_ms: 4000, key: keyOf })
  const [asking, setAsking] = useState<'secret' | 'delete' | null>(null)
  const [secret, setSecret] = useState<string | null>(null)
  const action = useAction()
  const again = (id: string) =>
    action.run(async () => {
      await ask('POST', `${path}/deliveries/${id}/redeliver`)
      deliveries.reload()
    })
  const test = () =>
    action.run(async () => {
      await ask('POST', `${path}/test`)
      deliveries.reload()
      toast('A test event is on its way')
    })
  const rotate = (overlap_hours: number | null) =>
    action.run(async () => {
      const answer = await ask<WebhookSecret>('POST', `/webhook-endpoints/${params['id']}/rotate-secret`, {
        body: { overlap_hours },
      })
      setAsking(null)
      setSecret(answer.signing_secret)
      of.reload()
    })
  const back = { href: hrefOf('/webhooks'), text: 'Webhooks' }
  return (
    <Loaded of={of} page={{ title: 'Webhook endpoint', back }}>
      {endpoint => (
        <>
          <PageHead
            title={endpoint.url}
            back={back}
            badges={<Health of={endpoint} />}
            sub={<Id value={endpoint.id} />}
            actions={
              <>
                <Button onClick={() => void test()}>Send a test event</Button>
                {hasRole('org:admin', 'org:engineer') && (
                  <Button onClick={() => setAsking('secret')}>Rotate the secret</Button>
                )}
                <Button kind="danger" onClick={() => setAsking('delete')}>
                  Delete
                </Button>
              </>
            }
          />
          <ProblemBox problem={asking === null ? action.problem : null} />
          {endpoint.previous_secret_retires_at && (
            <Notice tone="warn">
              The previous secret also signs until <Time at={endpoint.previous_secret_retires_at} />.
            </Notice>
          )}
          <Edit key={endpoint.revision} endpoint={endpoint} path={path} onSaved={of.set} />
          <Deliveries of={deliveries} sendAgain={id => void again(id)} />
          {asking === 'secret' && (
            <RotateSecret action={action} onSubmit={hours => void rotate(hours)} onClose={() => setAsking(null)} />
          )}
          {asking === 'delete' && (
            <ConfirmByName
              title="Delete the endpoint"
              name={new URL(endpoint.url).host}
              verb="Delete"
              onClose={() => setAsking(null)}
              onConfirm={async () => {
                await ask('DELETE', path, { on: endpoint })
                go('/webhooks')
              }}
            >
              <Notice tone="bad">Nothing more is sent to it.</Notice>
            </ConfirmByName>
          )}
          {secret && (
            <Dialog title="Signing secret" onClose={() => setSecret(null)}>
              <SecretOnce value={secret} what="the signing secret" />
            </Dialog>
          )}
        </>
      )}
    </Loaded>
  )
}

/** Only a pending delivery has a next try. One that is due runs as soon as the platform gets to it. */
const NextTry = ({ of: { state, next_attempt_at: at } }: { of: WebhookDelivery }) =>
  state !== 'pending' || at === null ? (
    <span class="muted">–</span>
  ) : Date.parse(at) <= Date.now() ? (
    <span>due now</span>
  ) : (
    <Time at={at} />
  )

interface DeliveriesProps {
  readonly of: Pages<WebhookDelivery>
  readonly sendAgain: (id: string) => void
}

const Deliveries = ({ of, sendAgain }: DeliveriesProps) => (
  <Card title="Deliveries" flush>
    <Listed of={of} more="Older" none={<Empty title="Nothing was sent yet" />}>
      <Table
        label="Deliveries"
        rows={of.rows}
        keyOf={keyOf}
        columns={[
          { title: 'Event', cell: row => row.event_kind },
          { title: 'State', cell: row => <Status of={row.state} /> },
          { title: 'Answer', cell: row => row.last_status ?? row.last_error ?? '–' },
          { title: 'Tries', cell: row => count(row.attempts), right: true, wide: true },
          { title: 'Next try', cell: row => <NextTry of={row} />, wide: true },
          { title: 'When', cell: row => <Time at={row.created_at} /> },
          {
            title: '',
            right: true,
            cell: row => (
              <Button small kind="quiet" onClick={() => sendAgain(row.id)}>
                Send again
              </Button>
            ),
          },
        ]}
      />
    </Listed>
  </Card>
)

interface RotateSecretProps {
  readonly action: Action
  readonly onSubmit: (overlap_hours: number | null) => void
  readonly onClose: () => void
}

function RotateSecret({ action, onSubmit, onClose }: RotateSecretProps) {
  const [hours, setHours] = useState<number | null>(24)
  return (
    <Dialog title="Rotate the secret" onClose={onClose}>
      <Form
        onSubmit={() => onSubmit(hours)}
        submit="Rotate"
        busy={action.busy}
        problem={action.problem}
        fields={['/overlap_hours']}
      >
        <NumberField
          label="Hours for which the old secret stays valid"
          value={hours}
          onInput={setHours}
          problem={action.problem}
          at="/overlap_hours"
          required
        />
      </Form>
    </Dialog>
  )
}

function Edit({
  endpoint,
  path,
  onSaved,
}: {
  endpoint: WebhookEndpoint
  path: string
  onSaved: (value: WebhookEndpoint) => void
}) {
  const [form, setForm] = useState<EndpointForm>({
    url: endpoint.url,
    description: endpoint.description ?? '',
    event_kinds: endpoint.event_kinds,
    enabled: endpoint.enabled,
  })
  const action = useAction()
  const save = () =>
    action.run(async () => {
      onSaved(await ask<WebhookEndpoint>('PATCH', path, { body: bodyOf(form), on: endpoint }))
      toast('Saved')
    })
  return (
    <Card title="Settings">
      <Form onSubmit={() => void save()} submit="Save" busy={action.busy} problem={action.problem} fields={FIELDS}>
        <Fields form={form} set={changes => setForm({ ...form, ...changes })} action={action} />
      </Form>
    </Card>
  )
}

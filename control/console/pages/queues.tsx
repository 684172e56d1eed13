import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { Queue, QueueMember } from '../lib/api-types.ts'
import { type Data, useAction, useData } from '../lib/data.ts'
import { count, duration } from '../lib/format.ts'
import { hrefOf, type PageProps } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { ListOf } from '../lib/types.ts'
import { Button, Card, Empty, Id, Loaded, PageHead, Stat, Stats, Tabs } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Form, TextField } from '../ui/form.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { CALL_TABS } from './call-tabs.ts'

const POLL_MS = 2000

const keyOf = ({ id }: Queue): string => id
const callOf = ({ call_id }: QueueMember): string => call_id

export function Queues() {
  const of = useData<ListOf<Queue>>('/v1/queues?limit=200', { poll_ms: POLL_MS })
  const columns: readonly Column<Queue>[] = [
    { title: 'Queue', cell: queue => <a href={hrefOf(`/queues/${queue.id}`)}>{queue.name}</a> },
    { title: 'Waiting', right: true, cell: queue => count(queue.waiting) },
    { title: 'Room for', right: true, cell: queue => count(queue.max_size), wide: true },
    { title: 'Average wait', right: true, cell: queue => duration(queue.average_wait_seconds) },
  ]
  return (
    <>
      <PageHead title="Queues" sub="Callers who wait, as documents and programs have queued them." />
      <Tabs items={CALL_TABS()} current="queues" />
      <Card flush>
        <Loaded of={of}>
          {({ data }) =>
            data.length > 0 ? (
              <Table label="Queues" rows={data} keyOf={keyOf} columns={columns} />
            ) : (
              <Empty
                title="No queue yet"
                api={'curl "$STROWGER_URL/v1/queues" -H "Authorization: Bearer $STROWGER_API_KEY"'}
              >
                A document makes one with &lt;Enqueue&gt;.
              </Empty>
            )
          }
        </Loaded>
      </Card>
    </>
  )
}

/** Who waits in a queue. A caller is taken out with a document, which the call then runs. */
export function QueuePage({ params }: PageProps) {
  const path = `/v1/queues/${params['id']}`
  const of = useData<Queue>(path, { poll_ms: POLL_MS })
  const members = useData<ListOf<QueueMember>>(`${path}/members`, { poll_ms: POLL_MS })
  const [asked, setAsked] = useState<QueueMember | null>(null)
  const back = { href: hrefOf('/queues'), text: 'Queues' }
  return (
    <Loaded of={of} page={{ title: 'Queue', back }}>
      {queue => (
        <>
          <PageHead title={queue.name} back={back} sub={<Id value={queue.id} />} />
          <Card>
            <Stats>
              <Stat name="Waiting" value={count(queue.waiting)} />
              <Stat name="Room for" value={count(queue.max_size)} />
              <Stat name="Average wait" value={duration(queue.average_wait_seconds)} />
            </Stats>
          </Card>
          <Members of={members} onTake={setAsked} />
          {asked && (
            <TakeOut
              path={`${path}/members/${asked.call_id}/dequeue`}
              onClose={() => setAsked(null)}
              onDone={() => {
                setAsked(null)
                members.reload()
              }}
            />
          )}
        </>
      )}
    </Loaded>
  )
}

function Members({ of, onTake }: { of: Data<ListOf<QueueMember>>; onTake: (one: QueueMember) => void }) {
  const columns: readonly Column<QueueMember>[] = [
    { title: 'Place', cell: one => one.position },
    {
      title: 'Call',
      cell: one => (
        <a class="mono" href={hrefOf(`/calls/${one.call_id}`)}>
          {one.call_id.slice(0, 12)}…
        </a>
      ),
    },
    { title: 'Waits', right: true, cell: one => duration(one.wait_seconds) },
    {
      title: '',
      right: true,
      cell: one =>
        may('service_configuration:write') && (
          <Button small label={`Take number ${one.position} out of the queue`} onClick={() => onTake(one)}>
            Take out
          </Button>
        ),
    },
  ]
  return (
    <Card flush title="Waiting">
      <Loaded of={of}>
        {({ data }) =>
          data.length > 0 ? (
            <Table label="Waiting" rows={data} keyOf={callOf} columns={columns} />
          ) : (
            <Empty title="Nobody waits" />
          )
        }
      </Loaded>
    </Card>
  )
}

function TakeOut({ path, onClose, onDone }: { path: string; onClose: () => void; onDone: () => void }) {
  const [url, setUrl] = useState('')
  const action = useAction()
  const take = async () => {
    if (await action.run(() => ask('POST', path, { body: { url } }))) onDone()
  }
  return (
    <Dialog title="Take the caller out of the queue" onClose={onClose}>
      <Form
        submit="Take out"
        busy={action.busy}
        problem={action.problem}
        fields={['/url']}
        disabled={url.trim() === ''}
        onSubmit={() => void take()}
        more={<Button onClick={onClose}>Cancel</Button>}
      >
        <TextField
          label="Document"
          hint="The address of the document that the call runs next."
          value={url}
          onInput={setUrl}
          inputMode="url"
          problem={action.problem}
          at="/url"
          autoFocus
          required
        />
      </Form>
    </Dialog>
  )
}

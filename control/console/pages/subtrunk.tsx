import { useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { ask } from '../lib/api.ts'
import { useAction, useData } from '../lib/data.ts'
import { count, money } from '../lib/format.ts'
import { go, hrefOf, type PageProps } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { ListOf, NumberBlock, Subtrunk } from '../lib/types.ts'
import {
  Button,
  Card,
  Empty,
  Id,
  Loaded,
  Notice,
  PageHead,
  ProblemBox,
  Stat,
  Stats,
  Status,
  Time,
} from '../ui/basics.tsx'
import { ConfirmByName } from '../ui/dialog.tsx'
import { Form, SelectField, TextField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import { CeilingFields, type Ceilings } from './ceilings.tsx'
import { PolicyChoice } from './policy-choice.tsx'
import { RefusedCalls } from './refused-calls.tsx'

type Asked = 'suspend' | 'delete'

export function SubtrunkPage({ params }: PageProps) {
  const home = `/trunks/${params['id']}/numbers`
  const path = `/v1/trunks/${params['id']}/subtrunks/${params['subtrunk']}`
  const of = useData<Subtrunk>(path, { poll_ms: 5000 })
  const [asking, setAsking] = useState<Asked | null>(null)
  const action = useAction()
  const back = { href: hrefOf(home), text: 'The trunk' }
  return (
    <Loaded of={of} page={{ title: 'Subtrunk', back }}>
      {subtrunk => {
        const change = async (verb: 'suspend' | 'resume') =>
          of.set(await ask<Subtrunk>('POST', `${path}/${verb}`, { on: subtrunk }))
        const remove = async (body: object) => {
          await ask('DELETE', path, { body, on: subtrunk })
          go(home)
        }
        const resume = () => void action.run(() => change('resume'))
        return (
          <>
            <PageHead
              title={subtrunk.name}
              back={back}
              badges={<Status of={subtrunk.status} />}
              sub={<Id value={subtrunk.id} />}
              actions={
                may('service_configuration:write') && <Actions of={subtrunk} onResume={resume} onAsk={setAsking} />
              }
            />
            <ProblemBox problem={action.problem} />
            <Usage of={subtrunk.usage} />
            <div class="columns">
              <Configuration key={subtrunk.revision} subtrunk={subtrunk} path={path} onSaved={of.set} />
              <RefusedCalls
                refusals={subtrunk.usage.refusals}
                hint={
                  <>
                    Since <Time at={subtrunk.usage.window_from} />
                  </>
                }
              />
            </div>
            <PolicyChoice<Subtrunk>
              path={path}
              of={subtrunk}
              on={subtrunk}
              hint="Holds in addition to the policy of its trunk."
              onSaved={of.set}
            />
            <Delegations subtrunk={subtrunk} path={path} onChanged={of.reload} />
            {asking && (
              <ConfirmByName
                title={QUESTIONS[asking].title}
                name={subtrunk.name}
                verb={QUESTIONS[asking].verb}
                onClose={() => setAsking(null)}
                onConfirm={({ confirm_name }) => (asking === 'suspend' ? change('suspend') : remove({ confirm_name }))}
              >
                <Notice tone="warn">{QUESTIONS[asking].text}</Notice>
              </ConfirmByName>
            )}
          </>
        )
      }}
    </Loaded>
  )
}

const QUESTIONS = {
  suspend: { title: 'Suspend the subtrunk', verb: 'Suspend', text: 'New calls are refused until it is resumed.' },
  delete: { title: 'Delete the subtrunk', verb: 'Delete', text: 'This cannot be taken back.' },
} as const

interface ActionsProps {
  readonly of: Subtrunk
  readonly onResume: () => void
  readonly onAsk: (asked: Asked) => void
}

const Actions = ({ of, onResume, onAsk }: ActionsProps) => (
  <>
    {of.status === 'disabled' ? (
      <Button onClick={onResume}>Resume</Button>
    ) : (
      <Button kind="danger" onClick={() => onAsk('suspend')}>
        Suspend
      </Button>
    )}
    <Button kind="danger" onClick={() => onAsk('delete')}>
      Delete
    </Button>
  </>
)

const Usage = ({ of }: { of: Subtrunk['usage'] }) => (
  <Stats>
    <Stat name="Calls now" value={count(of.live_calls)} />
    <Stat name="Calls" value={count(of.call_attempts)} hint={`${count(of.answered_calls)} answered`} />
    <Stat name="Spend" value={money(of.settled_spend_minor)} hint={`${money(of.pending_spend_minor)} reserved`} />
  </Stats>
)

function Configuration({
  subtrunk,
  path,
  onSaved,
}: {
  subtrunk: Subtrunk
  path: string
  onSaved: (value: Subtrunk) => void
}) {
  const [name, setName] = useState(subtrunk.name)
  const [configuration, setConfiguration] = useState<Ceilings>(subtrunk.configuration)
  const action = useAction()
  const save = () =>
    action.run(async () => {
      onSaved(await ask<Subtrunk>('PATCH', path, { body: { name, configuration }, on: subtrunk }))
      toast('Saved; applying')
    })
  const { parent_limits } = subtrunk.inheritance
  return (
    <Card
      title="Ceilings"
      hint={`The trunk above: ${counted(parent_limits.concurrency, 'call')} at once, ${parent_limits.cps} per second.`}
    >
      <Form
        onSubmit={() => void save()}
        submit="Save and apply"
        busy={action.busy}
        problem={action.problem}
        fields={['/name', '/configuration']}
      >
        <TextField label="Name" value={name} onInput={setName} problem={action.problem} at="/name" required />
        <CeilingFields
          value={configuration}
          onInput={setConfiguration}
          problem={action.problem}
          below="/configuration"
        />
      </Form>
    </Card>
  )
}

function Delegations({ subtrunk, path, onChanged }: { subtrunk: Subtrunk; path: string; onChanged: () => void }) {
  const blocks = useData<ListOf<NumberBlock>>('/v1/number-blocks')
  const [block_id, setBlock] = useState('')
  const action = useAction()
  const add = () =>
    action.run(async () => {
      await ask('POST', `${path}/delegations`, { body: { block_id }, on: subtrunk })
      setBlock('')
      onChanged()
    })
  const remove = (id: string) =>
    action.run(async () => {
      await ask('DELETE', `${path}/delegations/${id}`, { on: subtrunk })
      onChanged()
    })
  return (
    <Card title="Numbers delegated to it" flush>
      {subtrunk.delegations.length === 0 ? (
        <Empty title="No number block" />
      ) : (
        <Table
          label="Numbers delegated to it"
          rows={subtrunk.delegations}
          keyOf={row => row.id}
          columns={[
            { title: 'Range', cell: row => `${row.start} – ${row.end}` },
            { title: 'Numbers', cell: row => count(row.size), right: true },
            { title: 'Status', cell: row => <Status of={row.status} /> },
            { title: 'Assigned', cell: row => <Time at={row.assigned_at} />, wide: true },
            {
              title: '',
              right: true,
              cell: row =>
                may('numbers:manage') && (
                  <Button small kind="quiet" onClick={() => void remove(row.id)}>
                    Take back
                  </Button>
                ),
            },
          ]}
        />
      )}
      {may('numbers:manage') && (
        <div class="body">
          <Form
            onSubmit={() => void add()}
            submit="Delegate the block"
            busy={action.busy}
            problem={action.problem}
            disabled={block_id === ''}
          >
            <SelectField
              label="Number block"
              value={block_id}
              onInput={setBlock}
              options={[
                { value: '', text: 'Choose a block' },
                ...(blocks.data?.data ?? []).map(block => ({
                  value: block.id,
                  text: `${block.start} – ${block.end} (${block.size})`,
                })),
              ]}
            />
          </Form>
        </div>
      )}
    </Card>
  )
}

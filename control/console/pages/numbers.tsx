import { useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { ask } from '../lib/api.ts'
import type { NumberOrder } from '../lib/api-types.ts'
import { wrongNumber } from '../lib/checks.ts'
import { type Pages, useAction, useData, usePages } from '../lib/data.ts'
import { digitsAsked } from '../lib/digits-asked.ts'
import { count, words } from '../lib/format.ts'
import { hrefOf, type PageProps, query, setQuery } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { Application, ListOf, NumberBlock, PhoneNumber, TrunkSummary } from '../lib/types.ts'
import { Button, Card, Empty, Loaded, NoRows, Notice, PageHead, ProblemBox, Status, Tabs, Time } from '../ui/basics.tsx'
import { ConfirmByName, Dialog } from '../ui/dialog.tsx'
import { Form, PrefixField, SelectField, TextField } from '../ui/form.tsx'
import { type Column, LongTable, Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'

const keyOf = (number: PhoneNumber): string => number.id

export function Numbers({ params }: PageProps) {
  const tab = params['tab'] ?? ''
  return (
    <>
      <PageHead title="Numbers" sub="A number rings a voice application, a trunk or a subtrunk." />
      <Tabs
        items={[
          { id: '', text: 'Your numbers', href: hrefOf('/numbers') },
          { id: 'order', text: 'Order numbers', href: hrefOf('/numbers/order') },
          { id: 'blocks', text: 'Blocks', href: hrefOf('/numbers/blocks') },
        ]}
        current={tab}
      />
      {tab === '' && <Owned />}
      {tab === 'order' && <Order />}
      {tab === 'blocks' && <Blocks />}
    </>
  )
}

function Owned() {
  const prefix = query.value.get('prefix') ?? ''
  const numbers = usePages<PhoneNumber>(
    `/v1/numbers?limit=200${prefix ? `&prefix=${encodeURIComponent(prefix)}` : ''}`,
    {
      poll_ms: 10_000,
      key: keyOf,
    },
  )
  const [routed, setRouted] = useState<PhoneNumber | null>(null)
  const [released, setReleased] = useState<PhoneNumber | null>(null)
  return (
    <>
      <div class="filters">
        <TextField
          label="Begins with"
          type="search"
          value={prefix}
          placeholder="+234"
          onInput={value => setQuery({ prefix: value.trim() })}
        />
      </div>
      <ProblemBox problem={numbers.problem} />
      <Card flush>
        {numbers.rows.length === 0 ? (
          <NoRows of={numbers}>
            <Empty
              title={prefix ? 'No number begins so' : 'No number yet'}
              action={may('numbers:order') && <a href={hrefOf('/numbers/order')}>Order numbers</a>}
              api={'curl "$STROWGER_URL/v1/numbers" -H "Authorization: Bearer $STROWGER_API_KEY"'}
            />
          </NoRows>
        ) : (
          <>
            <NumberTable of={numbers} onRoute={setRouted} onRelease={setReleased} />
            <div class="table-foot">
              {counted(numbers.rows.length, 'number')}
              {numbers.more ? ' so far' : ''}
            </div>
          </>
        )}
      </Card>
      {routed && <RouteDialog number={routed} onClose={() => setRouted(null)} onDone={numbers.reload} />}
      {released && <Release number={released} onClose={() => setReleased(null)} onDone={numbers.reload} />}
    </>
  )
}

interface NumberTableProps {
  readonly of: Pages<PhoneNumber>
  readonly onRoute: (number: PhoneNumber) => void
  readonly onRelease: (number: PhoneNumber) => void
}

function NumberTable({ of, onRoute, onRelease }: NumberTableProps) {
  const manage = may('numbers:manage')
  return (
    <LongTable
      label="Numbers"
      rows={of.rows}
      keyOf={keyOf}
      more={of.more}
      onNearEnd={of.loadMore}
      columns={[
        { title: 'Number', cell: number => <span class="num">{number.e164}</span> },
        { title: 'Status', cell: number => <Status of={number.status} />, wide: true },
        { title: 'Rings', cell: ({ route }) => <Rings route={route} /> },
        { title: 'Changed', cell: number => <Time at={number.updated_at} />, wide: true },
        {
          title: '',
          right: true,
          width: manage ? '170px' : '20px',
          cell: number =>
            manage && (
              <>
                <Button small kind="quiet" label={`Route ${number.e164}`} onClick={() => onRoute(number)}>
                  Route
                </Button>
                <Button small kind="quiet" label={`Release ${number.e164}`} onClick={() => onRelease(number)}>
                  Release
                </Button>
              </>
            ),
        },
      ]}
    />
  )
}

const Rings = ({ route }: Pick<PhoneNumber, 'route'>) =>
  route ? (
    <>
      {route.name} ({words(route.kind).toLowerCase()})
    </>
  ) : (
    <span class="muted">nothing yet</span>
  )

interface OfNumber {
  readonly number: PhoneNumber
  readonly onClose: () => void
  readonly onDone: () => void
}

const Release = ({ number, onClose, onDone }: OfNumber) => (
  <ConfirmByName
    title="Release the number"
    name={number.e164}
    verb="Release"
    onClose={onClose}
    onConfirm={async () => {
      await ask('POST', `/v1/numbers/${number.id}/release`, { on: number })
      onDone()
    }}
  >
    <Notice tone="warn">It stops ringing at once and is kept in quarantine before anybody can order it again.</Notice>
  </ConfirmByName>
)

function RouteDialog({ number, onClose, onDone }: OfNumber) {
  const applications = useData<ListOf<Application>>('/v1/voice/applications')
  const trunks = useData<ListOf<TrunkSummary>>('/v1/trunks')
  const [target, setTarget] = useState(number.route ? `${number.route.kind} ${number.route.id}` : '')
  const [second, setSecond] = useState(number.fallback ? `${number.fallback.kind} ${number.fallback.id}` : '')
  const action = useAction()
  const to_trunk = /^(trunk|subtrunk) /.test(target)
  const save = async () => {
    const [kind = null, id = null] = target === '' ? [] : target.split(' ')
    const [second_kind, second_id] = second.split(' ')
    const fallback = to_trunk && second !== '' ? { kind: second_kind, id: second_id } : null
    const done = await action.run(() =>
      ask('PUT', `/v1/numbers/${number.id}/route`, { body: { kind, id, fallback }, on: number }),
    )
    if (!done) return
    toast('Saved; applying')
    onDone()
    onClose()
  }
  const options = [
    { value: '', text: 'Nothing' },
    ...(applications.data?.data ?? []).map(({ id, name }) => ({
      value: `voice_application ${id}`,
      text: `Application ${name}`,
    })),
    ...(trunks.data?.data ?? []).map(({ id, name }) => ({ value: `trunk ${id}`, text: `Trunk ${name}` })),
    ...[number.route, number.fallback].flatMap(route =>
      route?.kind === 'subtrunk' ? [{ value: `subtrunk ${route.id}`, text: `Subtrunk ${route.name}` }] : [],
    ),
  ]
  return (
    <Dialog title={`What ${number.e164} rings`} onClose={onClose}>
      <Form onSubmit={() => void save()} submit="Save" busy={action.busy} problem={action.problem}>
        <SelectField label="Rings" value={target} onInput={setTarget} options={options} />
        {to_trunk && (
          <SelectField
            label="When it cannot be reached"
            value={second}
            onInput={setSecond}
            options={options.filter(({ value }) => value === '' || value !== target)}
          />
        )}
      </Form>
    </Dialog>
  )
}

function Order() {
  const [prefix, setPrefix] = useState('')
  const asked = new URLSearchParams({ limit: '100', ...digitsAsked(prefix) })
  const available = useData<ListOf<PhoneNumber>>(`/v1/numbers/available?${asked}`)
  const orders = useData<ListOf<NumberOrder>>('/v1/number-orders')
  const [chosen, setChosen] = useState<readonly string[]>([])
  const action = useAction()
  const order = async () => {
    const done = await action.run(() => ask('POST', '/v1/number-orders', { body: { numbers: chosen }, once: true }))
    // After a refusal too: somebody else may have taken one of them.
    setChosen([])
    available.reload()
    if (!done) return
    orders.reload()
    toast('The numbers are yours')
  }
  return (
    <>
      <div class="filters">
        <PrefixField value={prefix} onInput={setPrefix} />
      </div>
      <Loaded of={available}>
        {({ data }) => (
          <Card
            title="Available numbers"
            flush
            actions={
              may('numbers:order') && (
                <Button kind="main-one" disabled={chosen.length === 0 || action.busy} onClick={() => void order()}>
                  Order {chosen.length === 0 ? '' : count(chosen.length)}
                </Button>
              )
            }
          >
            {data.length === 0 ? (
              <Empty title="No numbers are free at the moment">Ask your operator, who adds numbers to the stock.</Empty>
            ) : (
              <Table
                label="Available numbers"
                rows={data}
                keyOf={keyOf}
                columns={[
                  {
                    title: 'Number',
                    cell: number => (
                      <label class="check">
                        <input
                          type="checkbox"
                          checked={chosen.includes(number.e164)}
                          disabled={!may('numbers:order')}
                          onChange={event =>
                            setChosen(
                              event.currentTarget.checked
                                ? [...chosen, number.e164]
                                : chosen.filter(other => other !== number.e164),
                            )
                          }
                        />
                        {number.e164}
                      </label>
                    ),
                  },
                  { title: 'Status', cell: number => <Status of={number.status} /> },
                ]}
              />
            )}
            {action.problem && (
              <div class="body">
                <ProblemBox problem={action.problem} />
              </div>
            )}
          </Card>
        )}
      </Loaded>
      {(orders.data?.data.length ?? 0) > 0 && (
        <Card title="Earlier orders" flush>
          <Table
            label="Earlier orders"
            rows={orders.data?.data ?? []}
            keyOf={row => row.id}
            columns={[
              { title: 'Numbers', cell: row => row.numbers.map(number => number.e164).join(', ') },
              { title: 'Status', cell: row => <Status of={row.status} /> },
              { title: 'When', cell: row => <Time at={row.created_at} /> },
            ]}
          />
        </Card>
      )}
    </>
  )
}

const BLOCK_COLUMNS: readonly Column<NumberBlock>[] = [
  { title: 'Range', cell: block => `${block.start} – ${block.end}` },
  { title: 'Numbers', cell: block => count(block.size), right: true },
  {
    title: 'Delegated',
    cell: block => count(block.delegations.reduce((sum, delegation) => sum + delegation.size, 0)),
    right: true,
  },
  { title: 'Made', cell: block => <Time at={block.created_at} />, wide: true },
]

function Blocks() {
  const blocks = useData<ListOf<NumberBlock>>('/v1/number-blocks')
  const [start, setStart] = useState('')
  const [end, setEnd] = useState('')
  const action = useAction()
  const make = () =>
    action.run(async () => {
      await ask('POST', '/v1/number-blocks', { body: { start, end }, once: true })
      setStart('')
      setEnd('')
      blocks.reload()
    })
  return (
    <>
      {may('numbers:manage') && (
        <Card title="Make a block" hint="A range of your numbers that is routed or delegated as one.">
          <Form
            onSubmit={() => void make()}
            submit="Make the block"
            busy={action.busy}
            problem={action.problem}
            fields={['/start', '/end']}
          >
            <div class="grid-2">
              <TextField
                label="First number"
                value={start}
                onInput={value => setStart(value.trim())}
                wrong={wrongNumber(start)}
                problem={action.problem}
                at="/start"
                required
              />
              <TextField
                label="Last number"
                value={end}
                onInput={value => setEnd(value.trim())}
                wrong={wrongNumber(end)}
                problem={action.problem}
                at="/end"
                required
              />
            </div>
          </Form>
        </Card>
      )}
      <Loaded of={blocks}>
        {({ data }) => (
          <Card title="Blocks" flush>
            {data.length === 0 ? (
              <Empty title="No block yet" />
            ) : (
              <Table label="Blocks" rows={data} keyOf={block => block.id} columns={BLOCK_COLUMNS} />
            )}
          </Card>
        )}
      </Loaded>
    </>
  )
}

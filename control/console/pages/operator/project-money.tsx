import { useState } from 'preact/hooks'
import { ask } from '../../lib/api.ts'
import type { OperatorBalance, OperatorLedgerLine, OperatorProject } from '../../lib/api-types.ts'
import { useAction, useData, usePages } from '../../lib/data.ts'
import { money, when, words } from '../../lib/format.ts'
import { Button, Card, Empty, Loaded, ProblemBox, Stat, Stats } from '../../ui/basics.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Form, MoneyField, SelectField, TextField } from '../../ui/form.tsx'
import { More, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'

interface Props {
  readonly project: OperatorProject
  readonly path: string
  readonly set: (project: OperatorProject) => void
  readonly onBooked: () => void
}

type Asked = 'top-ups' | 'corrections' | 'terms'

const keyOf = (line: OperatorLedgerLine) => String(line.position)

/** The balance of a project, what moved it, and how the project pays. */
export function ProjectMoney({ project, path, set, onBooked }: Props) {
  const balance = useData<OperatorBalance>(`${path}/balance`)
  const ledger = usePages<OperatorLedgerLine>(`${path}/ledger?limit=20`, { key: keyOf })
  const [asked, setAsked] = useState<Asked | null>(null)
  const changed = () => {
    setAsked(null)
    balance.reload()
    ledger.reload()
    onBooked()
  }
  return (
    <div id="project-money" tabIndex={-1}>
      <Card
        title="Money"
        flush
        actions={
          <>
            <Button small kind="main-one" onClick={() => setAsked('top-ups')}>
              Top up
            </Button>
            <Button small onClick={() => setAsked('corrections')}>
              Correct
            </Button>
            <Button small onClick={() => setAsked('terms')}>
              Terms
            </Button>
          </>
        }
      >
        <Loaded of={balance}>{found => <Balance of={found} />}</Loaded>
        <ProblemBox problem={ledger.problem} />
        <Ledger rows={ledger.rows} />
        <More of={ledger}>Earlier lines</More>
      </Card>
      {asked === 'terms' && (
        <Terms
          project={project}
          path={path}
          onClose={() => setAsked(null)}
          onSaved={saved => {
            set(saved)
            changed()
          }}
        />
      )}
      {asked !== null && asked !== 'terms' && (
        <Booking kind={asked} path={path} onClose={() => setAsked(null)} onDone={changed} />
      )}
    </div>
  )
}

const Balance = ({ of }: { of: OperatorBalance }) => (
  <Stats>
    <Stat name="Balance" value={money(of.balance_minor)} hint={of.payment} />
    <Stat name="Held by calls" value={money(of.held_minor)} />
    <Stat name="Credit" value={money(of.credit_limit_minor)} />
    <Stat name="Available" value={of.available_minor === null ? 'pays later' : money(of.available_minor)} />
  </Stats>
)

const Ledger = ({ rows }: { rows: readonly OperatorLedgerLine[] }) =>
  rows.length === 0 ? (
    <Empty title="Nothing was booked yet" />
  ) : (
    <Table
      label="Ledger"
      rows={rows}
      keyOf={keyOf}
      columns={[
        { title: 'When', cell: row => when(row.at) },
        { title: 'What', cell: row => words(row.kind) },
        { title: 'About', cell: row => row.reason ?? row.call_sid ?? '–', wide: true },
        { title: 'Reference', cell: row => row.reference ?? '–', wide: true },
        { title: 'Amount', cell: row => money(row.amount_minor), right: true },
        { title: 'Balance', cell: row => money(row.balance_after_minor), right: true },
      ]}
    />
  )

interface BookingProps {
  readonly kind: 'top-ups' | 'corrections'
  readonly path: string
  readonly onClose: () => void
  readonly onDone: () => void
}

function Booking({ kind, path, onClose, onDone }: BookingProps) {
  const [amount, setAmount] = useState<number | null>(null)
  const [takes, setTakes] = useState('add')
  const [reason, setReason] = useState('')
  const [reference, setReference] = useState('')
  const action = useAction()
  const book = async () => {
    const amount_minor = (amount ?? 0) * (takes === 'take' ? -1 : 1)
    const body = { amount_minor, reason, ...(reference === '' ? {} : { reference }) }
    if (!(await action.run(() => ask('POST', `${path}/${kind}`, { body, once: true })))) return
    toast('Booked')
    onDone()
  }
  return (
    <Dialog title={kind === 'top-ups' ? 'Top up' : 'Correct the balance'} onClose={onClose}>
      <Form
        onSubmit={() => void book()}
        submit="Book"
        busy={action.busy}
        problem={action.problem}
        fields={['/amount_minor', '/reason', '/reference']}
        disabled={amount === null || reason.trim() === ''}
      >
        {kind === 'corrections' && (
          <SelectField
            label="Direction"
            value={takes}
            onInput={setTakes}
            options={[
              { value: 'add', text: 'Put money on the account' },
              { value: 'take', text: 'Take money off the account' },
            ]}
          />
        )}
        <MoneyField
          label="Amount, ₦"
          placeholder="0.00"
          value={amount}
          onInput={setAmount}
          problem={action.problem}
          at="/amount_minor"
        />
        <TextField label="Reason" value={reason} onInput={setReason} problem={action.problem} at="/reason" required />
        <TextField
          label="Reference"
          hint="Such as the number of the payment."
          value={reference}
          onInput={setReference}
          problem={action.problem}
          at="/reference"
        />
      </Form>
    </Dialog>
  )
}

interface TermsProps {
  readonly project: OperatorProject
  readonly path: string
  readonly onClose: () => void
  readonly onSaved: (project: OperatorProject) => void
}

function Terms({ project, path, onClose, onSaved }: TermsProps) {
  const [payment, setPayment] = useState<string>(project.payment)
  const [credit, setCredit] = useState<number | null>(project.credit_limit_minor)
  const action = useAction()
  const save = () =>
    action.run(async () =>
      onSaved(
        await ask<OperatorProject>('PATCH', path, {
          body: { payment, credit_limit_minor: credit ?? 0 },
          on: project,
        }),
      ),
    )
  return (
    <Dialog title="Terms of payment" onClose={onClose}>
      <Form
        onSubmit={() => void save()}
        submit="Save"
        busy={action.busy}
        problem={action.problem}
        fields={['/payment', '/credit_limit_minor']}
      >
        <SelectField
          label="Pays"
          value={payment}
          onInput={setPayment}
          problem={action.problem}
          at="/payment"
          options={[
            { value: 'prepaid', text: 'Before calls (prepaid)' },
            { value: 'postpaid', text: 'After calls (postpaid)' },
          ]}
        />
        <MoneyField
          label="Credit, ₦"
          hint="How far a prepaid balance may fall below zero. It does not bind who pays after calls."
          placeholder="0.00"
          value={credit}
          onInput={setCredit}
          problem={action.problem}
          at="/credit_limit_minor"
        />
      </Form>
    </Dialog>
  )
}

import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { Containment, OperatorProject } from '../lib/api-types.ts'
import { useAction, useData } from '../lib/data.ts'
import { count, words } from '../lib/format.ts'
import type { Problem } from '../lib/problem.ts'
import { may, projectId, session } from '../lib/session.ts'
import type { ListOf } from '../lib/types.ts'
import { Button, Card, Empty, Loaded, ProblemBox, Status, Time } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { AreaField, Form, NumberField, SelectField, TextField } from '../ui/form.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'

interface ContainmentActions {
  readonly operator: boolean
  readonly decide: (containment: Containment, decision: 'approved' | 'rejected') => unknown
  /** Opens the form that asks the operator for a release. */
  readonly ask: (containment: Containment) => void
}

const containmentColumns = ({
  operator,
  decide,
  ask: askRelease,
}: ContainmentActions): readonly Column<Containment>[] => [
  { title: 'Prefix', cell: row => <span class="mono">{row.prefix}</span> },
  { title: 'Trunk', cell: row => row.trunk_name ?? 'all trunks', wide: true },
  { title: 'Why', cell: row => `${words(row.reason_category)}: ${row.reason_detail}` },
  { title: 'Refused calls', cell: row => count(row.rejection_count), right: true },
  {
    title: 'Ends',
    cell: row =>
      row.released_at ? (
        <>
          released <Time at={row.released_at} />
        </>
      ) : (
        <Time at={row.expires_at} />
      ),
    wide: true,
  },
  {
    title: '',
    right: true,
    cell: row => {
      if (row.released_at !== null) return <span class="muted">{row.case_ref}</span>
      if (row.release_request?.state === 'pending')
        return operator ? (
          <span class="row">
            <Button small onClick={() => void decide(row, 'approved')}>
              Release
            </Button>
            <Button small kind="quiet" onClick={() => void decide(row, 'rejected')}>
              Refuse
            </Button>
          </span>
        ) : (
          <Status of="pending" />
        )
      return (
        may('service_configuration:write') && (
          <Button small onClick={() => askRelease(row)}>
            Ask for release
          </Button>
        )
      )
    },
  },
]

export function Containments() {
  const of = useData<ListOf<Containment>>('/v1/containments', { poll_ms: 8000 })
  const [asked, setAsked] = useState<Containment | null>(null)
  const [note, setNote] = useState('')
  const [making, setMaking] = useState(false)
  const action = useAction()
  const operator = session.value?.member.operator ?? false
  const request = async () => {
    if (!asked) return
    const done = await action.run(() =>
      ask('POST', `/v1/containments/${asked.id}/release-requests`, { body: { note } }),
    )
    if (!done) return
    setAsked(null)
    of.reload()
    toast('The operator has been asked')
  }
  const decide = (containment: Containment, decision: 'approved' | 'rejected') =>
    action.run(async () => {
      const reason = decision === 'approved' ? 'Released in the console' : 'Refused in the console'
      await ask('POST', `/operator/v1/release-requests/${containment.release_request?.id}/decide`, {
        body: { decision, reason },
      })
      of.reload()
    })
  return (
    <Card
      title="Containments"
      hint="Destinations that are closed for a while, because calls to them looked like fraud."
      flush
      actions={
        operator && (
          <Button small icon="plus" onClick={() => setMaking(true)}>
            Contain a prefix
          </Button>
        )
      }
    >
      <Loaded of={of}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="Nothing is contained" />
          ) : (
            <Table
              label="Containments"
              rows={data}
              keyOf={row => row.id}
              columns={containmentColumns({ operator, decide, ask: setAsked })}
            />
          )
        }
      </Loaded>
      {action.problem && !asked && (
        <div class="body">
          <ProblemBox problem={action.problem} />
        </div>
      )}
      {asked && (
        <Dialog title={`Release of ${asked.prefix}`} onClose={() => setAsked(null)}>
          <Form
            onSubmit={() => void request()}
            submit="Ask the operator"
            busy={action.busy}
            problem={action.problem}
            fields={['/note']}
          >
            <AreaField
              label="Why these calls are yours"
              value={note}
              onInput={setNote}
              problem={action.problem}
              at="/note"
            />
          </Form>
        </Dialog>
      )}
      {making && <Contain onClose={() => setMaking(false)} onDone={of.reload} />}
    </Card>
  )
}

interface ContainProps {
  readonly onClose: () => void
  readonly onDone: () => void
  /** The prefix of any project of the installation is closed, not only of the chosen one. */
  readonly anyProject?: boolean
}

/** An operator closes a prefix. */
export function Contain({ onClose, onDone, anyProject = false }: ContainProps) {
  const [project, setProject] = useState(anyProject ? '' : projectId.value)
  const [prefix, setPrefix] = useState('')
  const [reason_category, setCategory] = useState('destination_risk')
  const [reason_detail, setDetail] = useState('')
  const [hours, setHours] = useState<number | null>(24)
  const action = useAction()
  const make = async () => {
    const of = { project_id: project, expires_in_seconds: (hours ?? 1) * 3600 }
    const body = { prefix, reason_category, reason_detail, ...of }
    if (!(await action.run(() => ask('POST', '/operator/v1/containments', { body, once: true })))) return
    onDone()
    onClose()
  }
  return (
    <Dialog title="Contain a prefix" onClose={onClose}>
      <Form
        onSubmit={() => void make()}
        submit="Contain"
        danger
        busy={action.busy}
        problem={action.problem}
        fields={['/prefix', '/reason_category', '/reason_detail', '/expires_in_seconds', '/project_id']}
        disabled={project === ''}
      >
        {anyProject && <AnyProject value={project} onInput={setProject} problem={action.problem} />}
        <TextField
          label="Prefix"
          value={prefix}
          placeholder="+88213"
          onInput={value => setPrefix(value.trim())}
          problem={action.problem}
          at="/prefix"
          required
          autoFocus
        />
        <SelectField
          label="Kind"
          value={reason_category}
          onInput={setCategory}
          options={['destination_risk', 'spend_velocity', 'account_compromise'].map(value => ({
            value,
            text: words(value),
          }))}
        />
        <TextField
          label="Why"
          value={reason_detail}
          onInput={setDetail}
          problem={action.problem}
          at="/reason_detail"
          required
        />
        <NumberField
          label="For how many hours"
          min={1}
          value={hours}
          onInput={setHours}
          problem={action.problem}
          at="/expires_in_seconds"
          required
        />
      </Form>
    </Dialog>
  )
}

function AnyProject({
  value,
  onInput,
  problem,
}: {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly problem: Problem | null
}) {
  const projects = useData<ListOf<OperatorProject>>('/operator/v1/projects?limit=200')
  return (
    <SelectField
      label="Project"
      value={value}
      onInput={onInput}
      problem={problem}
      at="/project_id"
      options={[
        { value: '', text: 'Choose a project' },
        ...(projects.data?.data ?? []).map(({ id, name }) => ({ value: id, text: name })),
      ]}
    />
  )
}

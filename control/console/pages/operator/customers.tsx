import { useState } from 'preact/hooks'
import { ask } from '../../lib/api.ts'
import type { CreatedOrganization, OperatorOrganization } from '../../lib/api-types.ts'
import { useAction, usePages } from '../../lib/data.ts'
import { hrefOf } from '../../lib/router.ts'
import { Button, Card, Empty, LinkButton, PageHead, ProblemBox, Status, Time } from '../../ui/basics.tsx'
import { Dialog, SecretOnce } from '../../ui/dialog.tsx'
import { Form, TextField } from '../../ui/form.tsx'
import { Listed, Table } from '../../ui/table.tsx'

const keyOf = (row: OperatorOrganization) => row.id

/** Every customer of the installation. */
export function Customers() {
  const of = usePages<OperatorOrganization>('/operator/v1/organizations', { key: keyOf })
  const [adding, setAdding] = useState(false)
  const create = (
    <Button kind="main-one" icon="plus" onClick={() => setAdding(true)}>
      Add a customer
    </Button>
  )
  return (
    <>
      <PageHead
        title="Customers"
        sub="Organizations on this installation, each with its projects, people and money."
        actions={create}
      />
      <ProblemBox problem={of.problem} />
      <Card flush>
        <Listed
          of={of}
          more="More customers"
          none={<Empty title="No customer yet" action={create} api="bin/strowger org create --help" />}
        >
          <Table
            label="Customers"
            rows={of.rows}
            keyOf={keyOf}
            hrefOf={row => hrefOf(`/operator/customers/${row.id}`)}
            columns={[
              { title: 'Name', cell: row => row.name },
              { title: 'Status', cell: row => <Status of={row.status} /> },
              { title: 'Contact', cell: row => row.contact_email ?? '–', wide: true },
              { title: 'Time zone', cell: row => row.time_zone, wide: true },
              { title: 'Since', cell: row => <Time at={row.created_at} /> },
            ]}
          />
        </Listed>
      </Card>
      {adding && (
        <Create
          onClose={() => {
            setAdding(false)
            of.reload()
          }}
        />
      )}
    </>
  )
}

function Create({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const [contact_email, setContact] = useState('')
  const [time_zone, setZone] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone)
  const [made, setMade] = useState<CreatedOrganization | null>(null)
  const action = useAction()
  const add = () =>
    action.run(async () =>
      setMade(
        await ask<CreatedOrganization>('POST', '/operator/v1/organizations', {
          body: { name: name.trim(), contact_email, time_zone },
        }),
      ),
    )
  if (made)
    return (
      <Dialog title={`${made.organization.name} is a customer`} onClose={onClose}>
        <SecretOnce
          value={made.invitation.url ?? ''}
          what="the invitation"
          hint={`Send this link to ${made.invitation.invitation.email}, who chooses a password there. It is shown only now and ends in 7 days.`}
        />
        <LinkButton kind="main-one" href={hrefOf(`/operator/projects/${made.project.id}`)}>
          Open the project
        </LinkButton>
      </Dialog>
    )
  return (
    <Dialog title="Add a customer" onClose={onClose}>
      <Form
        onSubmit={() => void add()}
        submit="Add"
        busy={action.busy}
        problem={action.problem}
        fields={['/name', '/contact_email', '/time_zone']}
      >
        <TextField label="Name" value={name} onInput={setName} problem={action.problem} at="/name" required autoFocus />
        <TextField
          label="Contact"
          hint="This person is invited as the first admin."
          type="email"
          value={contact_email}
          onInput={setContact}
          problem={action.problem}
          at="/contact_email"
          required
        />
        <TextField
          label="Time zone"
          hint="Of bills and of the days in them."
          value={time_zone}
          onInput={setZone}
          problem={action.problem}
          at="/time_zone"
          required
        />
      </Form>
    </Dialog>
  )
}

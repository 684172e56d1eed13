import { useState } from 'preact/hooks'
import { ask } from '../../lib/api.ts'
import type {
  OperatorInvitation,
  OperatorInvitationCreation,
  OperatorMember,
  OperatorOrganization,
  OperatorPasswordReset,
  OperatorProject,
} from '../../lib/api-types.ts'
import { useAction, useData, usePages } from '../../lib/data.ts'
import { money, words } from '../../lib/format.ts'
import { hrefOf, type PageProps } from '../../lib/router.ts'
import { ROLE_NAMES, type Role } from '../../lib/session.ts'
import type { ListOf } from '../../lib/types.ts'
import { Badge, Button, Card, Empty, Id, Loaded, Notice, PageHead, ProblemBox, Status, Time } from '../../ui/basics.tsx'
import { ConfirmWithReason, Dialog, SecretOnce } from '../../ui/dialog.tsx'
import { Form, SelectField, TextField } from '../../ui/form.tsx'
import { type Column, Listed, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'

const PAGING = { key: ({ id }: { readonly id: string }) => id } as const

export function CustomerPage({ params }: PageProps) {
  const id = params['id'] ?? ''
  const path = `/operator/v1/organizations/${id}`
  const of = useData<OperatorOrganization>(path)
  const [asking, setAsking] = useState(false)
  const back = { href: hrefOf('/operator/customers'), text: 'Customers' }
  return (
    <Loaded of={of} page={{ title: 'Customer', back }}>
      {customer => {
        const verb = customer.status === 'active' ? 'suspend' : 'resume'
        return (
          <>
            <PageHead
              title={customer.name}
              back={back}
              badges={<Status of={customer.status} />}
              sub={
                <>
                  <Id value={customer.id} /> · {customer.contact_email ?? 'no contact'} · {customer.time_zone}
                </>
              }
              actions={
                <Button kind={verb === 'suspend' ? 'danger' : undefined} onClick={() => setAsking(true)}>
                  {words(verb)}
                </Button>
              }
            />
            <Projects organization_id={id} />
            <People organization_id={id} />
            <Invitations path={path} />
            {asking && (
              <ConfirmWithReason
                title={`${words(verb)} ${customer.name}`}
                verb={words(verb)}
                onClose={() => setAsking(false)}
                onConfirm={async reason =>
                  of.set(
                    await ask<OperatorOrganization>('POST', `${path}/${verb}`, {
                      body: { reason },
                      on: customer,
                    }),
                  )
                }
              >
                <Notice tone="warn">
                  {verb === 'suspend'
                    ? 'Its projects take no new calls and no changes. Calls that run go on.'
                    : 'The projects that the suspension disabled take calls again.'}
                </Notice>
              </ConfirmWithReason>
            )}
          </>
        )
      }}
    </Loaded>
  )
}

const PROJECT_COLUMNS: readonly Column<OperatorProject>[] = [
  { title: 'Name', cell: row => row.name },
  {
    title: 'State',
    cell: row => (
      <span class="row">
        <Badge tone={row.sandbox ? 'note' : 'good'}>{row.sandbox ? 'Sandbox' : 'Live'}</Badge>
        {row.status !== 'active' && <Status of={row.status} />}
      </span>
    ),
  },
  { title: 'Pays', cell: row => words(row.payment), wide: true },
  { title: 'Credit', cell: row => money(row.credit_limit_minor), right: true, wide: true },
  { title: 'Since', cell: row => <Time at={row.created_at} />, wide: true },
]

function Projects({ organization_id }: { organization_id: string }) {
  const of = usePages<OperatorProject>(`/operator/v1/projects?organization_id=${organization_id}`, PAGING)
  const [adding, setAdding] = useState(false)
  const [name, setName] = useState('')
  const action = useAction()
  const add = async () => {
    const done = await action.run(() =>
      ask('POST', '/operator/v1/projects', { body: { organization_id, name: name.trim() }, once: true }),
    )
    if (!done) return
    setAdding(false)
    of.reload()
  }
  return (
    <Card
      title="Projects"
      flush
      actions={
        <Button small icon="plus" onClick={() => setAdding(true)}>
          Add a project
        </Button>
      }
    >
      <ProblemBox problem={of.problem} />
      <Listed of={of} more="More projects" none={<Empty title="No project" />}>
        <Table
          label="Projects"
          rows={of.rows}
          keyOf={PAGING.key}
          hrefOf={row => hrefOf(`/operator/projects/${row.id}`)}
          columns={PROJECT_COLUMNS}
        />
      </Listed>
      {adding && (
        <Dialog title="Add a project" onClose={() => setAdding(false)}>
          <Form onSubmit={() => void add()} submit="Add" busy={action.busy} problem={action.problem} fields={['/name']}>
            <TextField
              label="Name"
              value={name}
              onInput={setName}
              problem={action.problem}
              at="/name"
              required
              autoFocus
            />
          </Form>
        </Dialog>
      )}
    </Card>
  )
}

/** What an operator does with a member, each with its reason. */
const DEEDS = {
  lock: { text: 'Lock', tells: 'Every session of the member ends at once, and no sign-in is taken.' },
  unlock: { text: 'Unlock', tells: 'The member may sign in again.' },
  'reset-second-factor': {
    text: 'Reset the second factor',
    tells: 'From now on the password alone opens the account. Make sure that the person is who they say.',
  },
  'appoint-operator': {
    text: 'Make an operator',
    tells: 'The member may do everything in this menu, for every customer. Every session of the member ends.',
  },
  'dismiss-operator': {
    text: 'Take the operator role away',
    tells: 'The member keeps the role in the organization. Every session of the member ends.',
  },
  password: {
    text: 'Make a link to a new password',
    tells: 'The link works once, within a day. An earlier link ends.',
  },
} as const
type Deed = keyof typeof DEEDS

const deedsFor = (member: OperatorMember): readonly Deed[] => [
  member.locked_at === null ? 'lock' : 'unlock',
  'password',
  ...(member.second_factor ? (['reset-second-factor'] as const) : []),
  member.operator ? 'dismiss-operator' : 'appoint-operator',
]

const memberColumns = (choose: (member: OperatorMember, deed: Deed) => void): readonly Column<OperatorMember>[] => [
  {
    title: 'Email',
    cell: row => (
      <span class="row">
        {row.email}
        {row.operator && <Badge tone="note">Operator</Badge>}
        {row.locked_at !== null && <Badge tone="bad">Locked</Badge>}
      </span>
    ),
  },
  { title: 'Role', cell: row => ROLE_NAMES[row.role] },
  {
    title: 'Second factor',
    cell: row => (row.second_factor ? 'On' : <span class="muted">Off</span>),
    wide: true,
  },
  { title: 'Since', cell: row => <Time at={row.created_at} />, wide: true },
  {
    title: '',
    right: true,
    cell: row => (
      <select
        aria-label={`Do something with ${row.email}`}
        value=""
        onChange={event => {
          const deed = event.currentTarget.value as Deed | ''
          event.currentTarget.value = ''
          if (deed !== '') choose(row, deed)
        }}
      >
        <option value="">More…</option>
        {deedsFor(row).map(deed => (
          <option key={deed} value={deed}>
            {DEEDS[deed].text}
          </option>
        ))}
      </select>
    ),
  },
]

function People({ organization_id }: { organization_id: string }) {
  const of = usePages<OperatorMember>(`/operator/v1/members?organization_id=${organization_id}`, PAGING)
  const [asked, setAsked] = useState<{ readonly member: OperatorMember; readonly deed: Deed } | null>(null)
  const [link, setLink] = useState<OperatorPasswordReset | null>(null)
  const carryOut = async (member: OperatorMember, deed: Deed, reason: string) => {
    if (deed === 'password') {
      const body = { member_id: member.id, reason }
      setLink(await ask<OperatorPasswordReset>('POST', '/operator/v1/password-resets', { body }))
    } else await ask('POST', `/operator/v1/members/${member.id}/${deed}`, { body: { reason } })
    of.reload()
    toast('Done')
  }
  return (
    <Card title="People" flush>
      <ProblemBox problem={of.problem} />
      <Listed of={of} more="More people" none={<Empty title="Nobody has accepted an invitation yet" />}>
        <Table
          label="People"
          rows={of.rows}
          keyOf={PAGING.key}
          columns={memberColumns((member, deed) => setAsked({ member, deed }))}
        />
      </Listed>
      {asked && (
        <ConfirmWithReason
          title={`${DEEDS[asked.deed].text}: ${asked.member.email}`}
          verb={DEEDS[asked.deed].text}
          onClose={() => setAsked(null)}
          onConfirm={reason => carryOut(asked.member, asked.deed, reason)}
        >
          <Notice tone="warn">{DEEDS[asked.deed].tells}</Notice>
        </ConfirmWithReason>
      )}
      {link && (
        <Dialog title={`A new password for ${link.email}`} onClose={() => setLink(null)}>
          <SecretOnce value={link.url ?? ''} what="the link" />
        </Dialog>
      )}
    </Card>
  )
}

const invitationColumns = (withdraw: (id: string) => unknown): readonly Column<OperatorInvitation>[] => [
  { title: 'Email', cell: row => row.email },
  { title: 'Role', cell: row => ROLE_NAMES[row.role], wide: true },
  {
    title: 'Ends',
    cell: row => (
      <>
        ends <Time at={row.expires_at} />
      </>
    ),
    wide: true,
  },
  {
    title: '',
    right: true,
    cell: row => (
      <Button
        small
        kind="quiet"
        label={`Withdraw the invitation of ${row.email}`}
        onClick={() => void withdraw(row.id)}
      >
        Withdraw
      </Button>
    ),
  },
]

function Invitations({ path }: { path: string }) {
  const of = useData<ListOf<OperatorInvitation>>(`${path}/invitations`)
  const [adding, setAdding] = useState(false)
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('org:admin')
  const [made, setMade] = useState<OperatorInvitationCreation | null>(null)
  const action = useAction()
  const invite = () =>
    action.run(async () => {
      setMade(await ask<OperatorInvitationCreation>('POST', `${path}/invitations`, { body: { email, role } }))
      of.reload()
    })
  const withdraw = (id: string) =>
    action.run(async () => {
      await ask('DELETE', `${path}/invitations/${id}`)
      of.reload()
    })
  const close = () => {
    setAdding(false)
    setMade(null)
    setEmail('')
  }
  return (
    <Card
      title="Invitations"
      hint="Links that nobody has used yet."
      flush
      actions={
        <Button small icon="plus" onClick={() => setAdding(true)}>
          Invite a person
        </Button>
      }
    >
      <Loaded of={of}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No open invitation" />
          ) : (
            <Table label="Invitations" rows={data} keyOf={row => row.id} columns={invitationColumns(withdraw)} />
          )
        }
      </Loaded>
      {adding && (
        <Dialog title={made ? `${made.invitation.email} is invited` : 'Invite a person'} onClose={close}>
          {made ? (
            <SecretOnce value={made.url ?? ''} what="the invitation" />
          ) : (
            <Form
              onSubmit={() => void invite()}
              submit="Invite"
              busy={action.busy}
              problem={action.problem}
              fields={['/email', '/role']}
            >
              <TextField
                label="Email"
                type="email"
                value={email}
                onInput={setEmail}
                problem={action.problem}
                at="/email"
                required
                autoFocus
              />
              <SelectField
                label="Role"
                value={role}
                onInput={value => setRole(value as Role)}
                options={(Object.keys(ROLE_NAMES) as Role[]).map(value => ({ value, text: ROLE_NAMES[value] }))}
              />
            </Form>
          )}
        </Dialog>
      )}
    </Card>
  )
}

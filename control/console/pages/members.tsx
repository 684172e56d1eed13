import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { Member, Organization } from '../lib/api-types.ts'
import { type Action, useAction, useData } from '../lib/data.ts'
import { ROLE_NAMES, type Role, session } from '../lib/session.ts'
import type { ListOf } from '../lib/types.ts'
import { Badge, Button, Card, Loaded, Notice, PageHead, ProblemBox, Time } from '../ui/basics.tsx'
import { ConfirmByName, Dialog } from '../ui/dialog.tsx'
import { Form, SelectField, TextField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'

const ROLES = (Object.keys(ROLE_NAMES) as Role[]).map(value => ({ value, text: ROLE_NAMES[value] }))

interface NewMember {
  readonly email: string
  readonly password: string
  readonly role: Role
}

/** What the parties of a call hear while a member listens to it. */
function ListeningNotice() {
  const of = useData<Organization>('/v1/organization')
  const action = useAction()
  const choose = (listening_notice: Organization['listening_notice']) =>
    action.run(async () => {
      of.set(await ask<Organization>('PUT', '/v1/organization/listening-notice', { body: { listening_notice } }))
      toast('Saved')
    })
  return (
    <Card title="Listening to live calls" hint="Admins and engineers may listen. Each time is in the audit trail.">
      <ProblemBox problem={action.problem} />
      <Loaded of={of}>
        {data => (
          <SelectField
            label="The parties of the call hear"
            value={data.listening_notice}
            onInput={notice => void choose(notice === 'spoken' ? 'spoken' : 'tone')}
            options={[
              { value: 'tone', text: 'A tone, every 15 seconds' },
              { value: 'spoken', text: 'A sentence, at the beginning' },
            ]}
          />
        )}
      </Loaded>
    </Card>
  )
}

export function Members() {
  const members = useData<ListOf<Member>>('/members')
  const [adding, setAdding] = useState<NewMember | null>(null)
  const [removed, setRemoved] = useState<Member | null>(null)
  const action = useAction()
  const change = (member: Member, role: Role) =>
    action.run(async () => {
      await ask('PATCH', `/members/${member.id}`, { body: { role } })
      members.reload()
      toast(`${member.email} is ${ROLE_NAMES[role]} now`)
    })
  const add = async () => {
    if (!(await action.run(() => ask('POST', '/members', { body: adding })))) return
    setAdding(null)
    members.reload()
  }
  return (
    <>
      <PageHead
        title="Members"
        sub="Who may sign in. A changed role ends the member's sessions."
        actions={
          <Button
            kind="main-one"
            icon="plus"
            onClick={() => setAdding({ email: '', password: '', role: 'org:viewer' })}
          >
            Add a member
          </Button>
        }
      />
      <ProblemBox problem={adding === null ? action.problem : null} />
      <Loaded of={members}>
        {({ data }) => (
          <Card flush>
            <MemberTable rows={data} change={(member, role) => void change(member, role)} remove={setRemoved} />
          </Card>
        )}
      </Loaded>
      <ListeningNotice />
      {adding && (
        <Dialog title="Add a member" onClose={() => setAdding(null)}>
          <MemberForm
            member={adding}
            set={changes => setAdding({ ...adding, ...changes })}
            action={action}
            onSave={() => void add()}
          />
        </Dialog>
      )}
      {removed && (
        <ConfirmByName
          title="Remove the member"
          name={removed.email}
          verb="Remove"
          onClose={() => setRemoved(null)}
          onConfirm={async () => {
            await ask('DELETE', `/members/${removed.id}`)
            members.reload()
          }}
        >
          <Notice tone="warn">Every session of the member ends at once. Keys that the member made stay.</Notice>
        </ConfirmByName>
      )}
    </>
  )
}

interface MemberTableProps {
  readonly rows: readonly Member[]
  readonly change: (member: Member, role: Role) => void
  readonly remove: (member: Member) => void
}

const MemberTable = ({ rows, change, remove }: MemberTableProps) => (
  <Table
    label="Members"
    rows={rows}
    keyOf={member => member.id}
    columns={[
      {
        title: 'Email',
        cell: member => (
          <>
            {member.email} {member.operator && <Badge tone="note">Operator</Badge>}{' '}
            {member.id === session.value?.member.id && <span class="muted">you</span>}
          </>
        ),
      },
      {
        title: 'Role',
        cell: member => (
          <select
            aria-label={`Role of ${member.email}`}
            value={member.role}
            onChange={event => change(member, event.currentTarget.value as Role)}
          >
            {ROLES.map(role => (
              <option key={role.value} value={role.value}>
                {role.text}
              </option>
            ))}
          </select>
        ),
      },
      { title: 'Since', cell: member => <Time at={member.created_at} />, wide: true },
      {
        title: '',
        right: true,
        cell: member => (
          <Button small kind="quiet" label={`Remove ${member.email}`} onClick={() => remove(member)}>
            Remove
          </Button>
        ),
      },
    ]}
  />
)

interface MemberFormProps {
  readonly member: NewMember
  readonly set: (changes: Partial<NewMember>) => void
  readonly action: Action
  readonly onSave: () => void
}

const MemberForm = ({ member, set, action, onSave }: MemberFormProps) => (
  <Form
    onSubmit={onSave}
    submit="Add"
    busy={action.busy}
    problem={action.problem}
    fields={['/email', '/password', '/role']}
  >
    <TextField
      label="Email"
      type="email"
      value={member.email}
      onInput={email => set({ email })}
      problem={action.problem}
      at="/email"
      required
      autoFocus
    />
    <TextField
      label="First password"
      type="password"
      autoComplete="new-password"
      value={member.password}
      onInput={password => set({ password })}
      hint="At least 12 characters; the member changes it after signing in."
      problem={action.problem}
      at="/password"
      required
    />
    <SelectField
      label="Role"
      value={member.role}
      onInput={role => set({ role: role as Role })}
      options={ROLES}
      problem={action.problem}
      at="/role"
    />
  </Form>
)

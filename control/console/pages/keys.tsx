import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { ApiKey, ApiKeyCreation, AuthToken } from '../lib/api-types.ts'
import { useAction, useData } from '../lib/data.ts'
import { instantOf } from '../lib/format.ts'
import { messagesAt } from '../lib/problem.ts'
import { hasRole, may, ROLE_NAMES, type Role, session } from '../lib/session.ts'
import type { ListOf, VoiceAccount } from '../lib/types.ts'
import { RevisionBadge } from '../ui/apply.tsx'
import {
  Badge,
  Button,
  Card,
  Empty,
  Facts,
  Id,
  Loaded,
  Notice,
  PageHead,
  ProblemBox,
  Status,
  Time,
} from '../ui/basics.tsx'
import { ConfirmByName, Dialog, SecretOnce } from '../ui/dialog.tsx'
import { Chips, Form, NumberField, SelectField, TextField, TimeField } from '../ui/form.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { PolicyChoice } from './policy-choice.tsx'

const GRANTABLE: Readonly<Record<Role, readonly Role[]>> = {
  'org:admin': ['org:admin', 'org:engineer', 'org:billing', 'org:viewer'],
  'org:engineer': ['org:engineer', 'org:viewer'],
  'org:billing': [],
  'org:viewer': [],
}

export function Keys() {
  return (
    <>
      <PageHead
        title="Keys and credentials"
        sub="API keys are for the management API; the account and its token are for the voice API."
      />
      <ApiKeys />
      <VoiceAccountCard />
      <AutomationPolicy />
    </>
  )
}

const keyColumns = (rotate: (key: ApiKey) => void, revoke: (key: ApiKey) => void): readonly Column<ApiKey>[] => [
  { title: 'Name', cell: key => key.name },
  { title: 'State', cell: key => <Status of={key.state} /> },
  { title: 'Key', cell: key => <span class="mono">sk_live_{key.public_id}_…</span>, wide: true },
  { title: 'Role', cell: key => ROLE_NAMES[key.role] },
  {
    title: 'Scopes',
    cell: key => <span title={key.scopes.join('\n')}>{key.scopes.length}</span>,
    right: true,
    wide: true,
  },
  { title: 'Last used', cell: key => <Time at={key.last_used_at} />, wide: true },
  { title: 'Ends', cell: key => <Time at={key.retires_at ?? key.expires_at} />, wide: true },
  {
    title: '',
    right: true,
    cell: key => (
      <span class="row">
        {key.state === 'active' && (
          <Button small kind="quiet" label={`Rotate ${key.name}`} onClick={() => rotate(key)}>
            Rotate
          </Button>
        )}
        {(key.state === 'active' || key.state === 'retiring') && (
          <Button small kind="quiet" label={`Revoke ${key.name}`} onClick={() => revoke(key)}>
            Revoke
          </Button>
        )}
      </span>
    ),
  },
]

function ApiKeys() {
  const keys = useData<ListOf<ApiKey>>('/api-keys')
  const [creating, setCreating] = useState(false)
  const [rotated, setRotated] = useState<ApiKey | null>(null)
  const [revoked, setRevoked] = useState<ApiKey | null>(null)
  const [secret, setSecret] = useState<string | null>(null)
  const shown = (api_key: string | null) => {
    setCreating(false)
    setRotated(null)
    setSecret(api_key)
    keys.reload()
  }
  return (
    <Card
      title="API keys"
      flush
      actions={
        <Button small icon="plus" kind="main-one" onClick={() => setCreating(true)}>
          Create a key
        </Button>
      }
    >
      <Loaded of={keys}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No key yet" api="bin/strowger bootstrap --json">
              A key has a role and scopes, and is shown once when it is made.
            </Empty>
          ) : (
            <Table label="API keys" rows={data} keyOf={key => key.id} columns={keyColumns(setRotated, setRevoked)} />
          )
        }
      </Loaded>
      {creating && <CreateKey onClose={() => setCreating(false)} onMade={shown} />}
      {rotated && <RotateKey of={rotated} onClose={() => setRotated(null)} onMade={shown} />}
      {revoked && (
        <ConfirmByName
          title="Revoke the key"
          name={revoked.name}
          verb="Revoke"
          withReason
          onClose={() => setRevoked(null)}
          onConfirm={async body => {
            await ask('POST', `/api-keys/${revoked.id}/revoke`, { body })
            keys.reload()
          }}
        >
          <Notice tone="bad">Programs that use it are refused at once. This cannot be taken back.</Notice>
        </ConfirmByName>
      )}
      {secret && (
        <Dialog title="The key" onClose={() => setSecret(null)}>
          <SecretOnce value={secret} what="the key" />
        </Dialog>
      )}
    </Card>
  )
}

function CreateKey({ onClose, onMade }: { onClose: () => void; onMade: (api_key: string | null) => void }) {
  const mine = session.value?.member
  const roles = mine ? GRANTABLE[mine.role] : []
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>(roles[0] ?? 'org:viewer')
  const [scopes, setScopes] = useState<readonly string[]>(['service_configuration:read'])
  const [expires, setExpires] = useState('')
  const action = useAction()
  const create = () =>
    action.run(async () => {
      const body = {
        name: name.trim(),
        role,
        scopes,
        ...(expires === '' ? {} : { expires_at: instantOf(expires) }),
      }
      onMade((await ask<ApiKeyCreation>('POST', '/api-keys', { body })).api_key)
    })
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <Form
        onSubmit={() => void create()}
        submit="Create"
        busy={action.busy}
        problem={action.problem}
        fields={['/name', '/role', '/scopes', '/expires_at']}
      >
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          hint="What uses it, such as “billing export”."
          problem={action.problem}
          at="/name"
          required
          autoFocus
        />
        <SelectField
          label="Role"
          value={role}
          onInput={value => setRole(value as Role)}
          options={roles.map(value => ({ value, text: ROLE_NAMES[value] }))}
          problem={action.problem}
          at="/role"
        />
        <Chips
          legend="Scopes"
          values={scopes}
          onInput={setScopes}
          options={(mine?.scopes ?? []).map(value => ({ value, text: value }))}
          wrong={messagesAt(action.problem, '/scopes')}
        />
        <TimeField
          label="Ends"
          value={expires}
          onInput={setExpires}
          hint="Empty: it does not end by itself."
          problem={action.problem}
          at="/expires_at"
        />
      </Form>
    </Dialog>
  )
}

function RotateKey({
  of,
  onClose,
  onMade,
}: {
  of: ApiKey
  onClose: () => void
  onMade: (api_key: string | null) => void
}) {
  const [overlap_hours, setHours] = useState<number | null>(24)
  const action = useAction()
  const rotate = () =>
    action.run(async () => {
      onMade((await ask<ApiKeyCreation>('POST', `/api-keys/${of.id}/rotate`, { body: { overlap_hours } })).api_key)
    })
  return (
    <Dialog title={`Rotate ${of.name}`} onClose={onClose}>
      <Form
        onSubmit={() => void rotate()}
        submit="Rotate"
        busy={action.busy}
        problem={action.problem}
        fields={['/overlap_hours']}
      >
        <NumberField
          label="Hours for which the old key still works"
          value={overlap_hours}
          onInput={setHours}
          hint="0 ends it at once; at most 24."
          problem={action.problem}
          at="/overlap_hours"
          required
        />
      </Form>
    </Dialog>
  )
}

function VoiceAccountCard() {
  const account = useData<VoiceAccount>('/v1/voice-account', { poll_ms: 5000 })
  const [token, setToken] = useState<string | null>(null)
  const [rotating, setRotating] = useState(false)
  const action = useAction()
  const reveal = () =>
    action.run(async () => {
      setToken((await ask<AuthToken>('POST', '/voice-account/auth-token/reveal')).auth_token)
    })
  const rotate = async () => {
    const done = await action.run(async () => {
      setToken((await ask<AuthToken>('POST', '/voice-account/auth-token/rotate')).auth_token)
      account.reload()
    })
    if (done) setRotating(false)
  }
  if (!may('service_configuration:read')) return null
  return (
    <Loaded of={account}>
      {data => (
        <Card
          title="Voice account"
          hint="User and password of the voice API; the token also signs webhooks."
          actions={<RevisionBadge desired={data.desired_revision} effective={data.effective_revision} />}
        >
          <Facts
            rows={[
              ['Account', <Id key="a" value={data.account_sid} what="the account's id" />],
              ['Status', <Status key="s" of={data.status} />],
              ['Paths', data.voice_api === 'extended' ? 'The wider API' : 'Those of the specification'],
              [
                'Auth token',
                token ? (
                  <code key="t" data-token>
                    {token}
                  </code>
                ) : (
                  <span key="t" class="mono">
                    {data.auth_token_masked}
                  </span>
                ),
              ],
            ]}
          />
          {hasRole('org:admin', 'org:engineer') ? (
            <div class="row">
              {token ? (
                <Button onClick={() => setToken(null)}>Hide the token</Button>
              ) : (
                <Button onClick={() => void reveal()}>Show the token</Button>
              )}
              <Button kind="danger" onClick={() => setRotating(true)}>
                Rotate the token
              </Button>
              {token && <Badge>Shown to you only; the audit trail says so</Badge>}
            </div>
          ) : (
            <p class="muted">Admins and engineers may see it.</p>
          )}
          <ProblemBox problem={action.problem} />
          {rotating && (
            <Dialog title="Rotate the token" onClose={() => setRotating(false)}>
              <Notice tone="warn">
                The old token stops working within seconds: programs that use it are refused and webhooks are signed
                with the new one.
              </Notice>
              <div class="row">
                <Button kind="danger" onClick={() => void rotate()} disabled={action.busy}>
                  Rotate now
                </Button>
                <Button onClick={() => setRotating(false)}>Cancel</Button>
              </div>
            </Dialog>
          )}
        </Card>
      )}
    </Loaded>
  )
}

function AutomationPolicy() {
  const account = useData<VoiceAccount>('/v1/voice-account', { poll_ms: 5000 })
  if (!may('service_configuration:read')) return null
  return (
    <Loaded of={account}>
      {data => (
        <PolicyChoice<VoiceAccount>
          path="/v1/voice-account"
          of={data}
          on={{ id: data.account_sid, revision: data.desired_revision }}
          hint="Rules the calls that the voice account makes without an application."
          onSaved={account.set}
        />
      )}
    </Loaded>
  )
}

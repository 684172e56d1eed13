import { useState } from 'preact/hooks'
import { wrongSipUri } from '../lib/checks.ts'
import type { Action } from '../lib/data.ts'
import type { Target, TargetInput } from '../lib/types.ts'
import { Badge, Button, Card, Empty, Status } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { CheckField, Form, NumberField, SelectField, TextField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import type { TrunkTab } from './trunk-tab.ts'
import { canWrite, Failure, useTrunkWrite } from './trunk-write.tsx'

/** The state of a target's form. A new target has no id. */
type TargetForm = Required<TargetInput> & { readonly id?: string }

const NEW_TARGET: TargetForm = {
  sip_uri: '',
  transport: 'udp',
  priority: 10,
  weight: 100,
  enabled: true,
  tls_verification: 'required',
  tls_fingerprint: null,
  redirects: 'off',
  digest_username: null,
  digest_password: '',
}
const VERIFICATIONS = [
  { value: 'required', text: 'Must be valid and name the target' },
  { value: 'pinned', text: 'Must be the one with this fingerprint' },
  { value: 'off', text: 'Is not verified' },
]
const FIELDS = [
  '/sip_uri',
  '/transport',
  '/priority',
  '/weight',
  '/tls_verification',
  '/tls_fingerprint',
  '/digest_username',
  '/digest_password',
]
const REDIRECTS = [
  { value: 'off', text: 'Are not followed' },
  { value: 'same_host', text: 'Are followed within this address' },
  { value: 'listed', text: 'Are followed to any target of this trunk' },
]
const isUnverified = ({ transport, tls_verification }: Pick<Target, 'transport' | 'tls_verification'>): boolean =>
  transport === 'tls' && tls_verification === 'off'

export function TrunkTargets(props: TrunkTab) {
  const { trunk } = props
  const { action, write } = useTrunkWrite(props, () => undefined)
  const [edited, setEdited] = useState<TargetForm | null>(null)
  const save = async () => {
    if (!edited) return
    const { id, sip_uri, transport, priority, weight, enabled, tls_verification, redirects } = edited
    const tls_fingerprint = tls_verification === 'pinned' ? edited.tls_fingerprint : null
    const { digest_username, digest_password } = edited
    const digest = { digest_username, ...(digest_password === '' ? {} : { digest_password }) }
    const body = {
      sip_uri,
      transport,
      priority,
      weight,
      enabled,
      tls_verification,
      tls_fingerprint,
      redirects,
      ...digest,
    }
    const done = await action.run(() =>
      id === undefined ? write('POST', '/termination-uris', body) : write('PATCH', `/termination-uris/${id}`, body),
    )
    if (done) setEdited(null)
  }
  return (
    <Card
      title="Targets"
      hint="Where calls are delivered: the lowest priority first, equal ones shared by weight."
      flush
      actions={
        canWrite() && (
          <Button small icon="plus" onClick={() => setEdited(NEW_TARGET)}>
            Add a target
          </Button>
        )
      }
    >
      {trunk.routes.length === 0 ? (
        <Empty title="No target">A PBX that registers is reached without one.</Empty>
      ) : (
        <TargetTable
          rows={trunk.routes}
          edit={target => setEdited({ ...target, digest_password: '' })}
          remove={({ id }) => void action.run(() => write('DELETE', `/termination-uris/${id}`))}
        />
      )}
      <Failure of={action.problem} shown={edited === null} />
      {edited && (
        <Dialog title={edited.id === undefined ? 'Add a target' : 'Edit the target'} onClose={() => setEdited(null)}>
          <TargetFields
            target={edited}
            set={changes => setEdited({ ...edited, ...changes })}
            action={action}
            onSave={() => void save()}
          />
        </Dialog>
      )}
    </Card>
  )
}

interface TargetTableProps {
  readonly rows: readonly Target[]
  readonly edit: (target: Target) => void
  readonly remove: (target: Target) => void
}

const TargetTable = ({ rows, edit, remove }: TargetTableProps) => (
  <Table
    label="Targets"
    rows={rows}
    keyOf={target => target.id}
    columns={[
      { title: 'Address', cell: target => <span class="mono">{target.sip_uri}</span> },
      {
        title: 'Transport',
        cell: target => (
          <span class="row">
            {target.transport.toUpperCase()}
            {isUnverified(target) && <Badge tone="warn">certificate not verified</Badge>}
          </span>
        ),
      },
      { title: 'State', cell: target => <Status of={target.enabled ? 'enabled' : 'disabled'} /> },
      { title: 'Priority', cell: target => target.priority, right: true, wide: true },
      { title: 'Weight', cell: target => target.weight, right: true, wide: true },
      {
        title: '',
        right: true,
        cell: target =>
          canWrite() && (
            <span class="row">
              <Button small kind="quiet" onClick={() => edit(target)}>
                Edit
              </Button>
              <Button small kind="quiet" onClick={() => remove(target)}>
                Remove
              </Button>
            </span>
          ),
      },
    ]}
  />
)

interface TargetFieldsProps {
  readonly target: TargetForm
  readonly set: (changes: Partial<TargetForm>) => void
  readonly action: Action
}

const TargetFields = ({ target, set, action, onSave }: TargetFieldsProps & { readonly onSave: () => void }) => (
  <Form onSubmit={onSave} submit="Save" busy={action.busy} problem={action.problem} fields={FIELDS}>
    <TextField
      label="Address"
      mono
      value={target.sip_uri}
      placeholder="sip:pbx.example.com:5060"
      onInput={sip_uri => set({ sip_uri })}
      wrong={wrongSipUri(target.sip_uri, target.transport)}
      problem={action.problem}
      at="/sip_uri"
      required
      autoFocus
    />
    <div class="grid-2">
      <SelectField
        label="Transport"
        value={target.transport}
        onInput={transport => set({ transport: transport as Target['transport'] })}
        options={['udp', 'tcp', 'tls'].map(value => ({ value, text: value.toUpperCase() }))}
        problem={action.problem}
        at="/transport"
      />
      <NumberField
        label="Priority"
        value={target.priority}
        onInput={value => set({ priority: value ?? 0 })}
        problem={action.problem}
        at="/priority"
      />
      <NumberField
        label="Weight"
        value={target.weight}
        onInput={value => set({ weight: value ?? 0 })}
        problem={action.problem}
        at="/weight"
      />
    </div>
    <CertificateFields target={target} set={set} action={action} />
    <ChallengeFields target={target} set={set} action={action} />
    <CheckField label="Enabled" checked={target.enabled} onInput={enabled => set({ enabled })} />
  </Form>
)

/** What answers the target's challenges, and where its 3xx may send a call. */
const ChallengeFields = ({ target, set, action }: TargetFieldsProps) => (
  <>
    <div class="grid-2">
      <TextField
        label="User name for its challenges"
        value={target.digest_username ?? ''}
        onInput={name => set({ digest_username: name === '' ? null : name })}
        problem={action.problem}
        at="/digest_username"
      />
      <TextField
        label="Password"
        type="password"
        value={target.digest_password}
        placeholder={target.id === undefined ? '' : 'unchanged'}
        onInput={digest_password => set({ digest_password })}
        problem={action.problem}
        at="/digest_password"
      />
    </div>
    <SelectField
      label="Redirects (3xx)"
      value={target.redirects}
      onInput={value => set({ redirects: value as Target['redirects'] })}
      options={REDIRECTS}
      problem={action.problem}
      at="/redirects"
    />
  </>
)

/** How the certificate of a TLS target is verified. */
const CertificateFields = ({ target, set, action }: TargetFieldsProps) => (
  <>
    {target.transport === 'tls' && (
      <SelectField
        label="Certificate"
        value={target.tls_verification}
        onInput={value => set({ tls_verification: value as Target['tls_verification'] })}
        options={VERIFICATIONS}
        problem={action.problem}
        at="/tls_verification"
      />
    )}
    {target.transport === 'tls' && target.tls_verification === 'pinned' && (
      <TextField
        label="SHA-256 fingerprint"
        mono
        value={target.tls_fingerprint ?? ''}
        onInput={tls_fingerprint => set({ tls_fingerprint })}
        problem={action.problem}
        at="/tls_fingerprint"
        required
      />
    )}
    {isUnverified(target) && (
      <div class="notice warn" role="alert">
        Anybody between us and this target can pretend to be it, hear its calls and read their keys. Pin its certificate
        instead.
      </div>
    )}
  </>
)

import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import { wrongSipUri, wrongSource } from '../lib/checks.ts'
import { useAction, useData } from '../lib/data.ts'
import { may } from '../lib/session.ts'
import type { DigestCredential, DigestCredentialSecret, ListOf, Target, TargetInput } from '../lib/types.ts'
import { Badge, Button, Card, Empty, Loaded, Status, Time } from '../ui/basics.tsx'
import { Dialog, SecretOnce } from '../ui/dialog.tsx'
import { CheckField, Form, NumberField, SelectField, TextField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { TrunkTab } from './trunk.tsx'

interface Source {
  readonly id: string
  readonly cidr: string
  readonly enabled: boolean
  readonly selector_precedence: number
  readonly standing: 'full' | 'name_only' | 'pending_approval'
  readonly created_at: string
}

export const TrunkAccess = (props: TrunkTab) => (
  <>
    <Sources {...props} />
    {props.trunk.authentication.mode === 'digest' && <Credentials {...props} />}
    <Targets {...props} />
  </>
)

const canWrite = () => may('service_configuration:write')

/** Runs a write below the trunk with its current revision, and reads both anew. */
function useWrite({ trunk, of }: TrunkTab, reload: () => void) {
  const action = useAction()
  const write = async <T,>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> => {
    const answer = await ask<T>(method, `/v1/trunks/${trunk.id}${path}`, {
      revision: trunk.revision,
      ...(body === undefined ? {} : { body }),
    })
    of.reload()
    reload()
    return answer
  }
  return { action, write }
}

const COUNTS: Readonly<Record<Source['standing'], string>> = {
  full: 'for every call',
  name_only: "for calls to the trunk's name: the address is somebody else's too",
  pending_approval: 'once an operator approves of it',
}

function Sources(props: TrunkTab) {
  const sources = useData<ListOf<Source>>(`/v1/trunks/${props.trunk.id}/ip-credentials`)
  const { action, write } = useWrite(props, sources.reload)
  const [adding, setAdding] = useState<{ cidr: string; selector_precedence: number } | null>(null)
  const add = async () => {
    if (await action.run(() => write('POST', '/ip-credentials', { ...adding, enabled: true }))) setAdding(null)
  }
  const flip = (source: Source) =>
    action.run(() =>
      write('PATCH', `/ip-credentials/${source.id}`, {
        cidr: source.cidr,
        enabled: !source.enabled,
        selector_precedence: source.selector_precedence,
      }),
    )
  return (
    <Card
      title="Addresses it comes from"
      flush
      actions={
        canWrite() && (
          <Button small icon="plus" onClick={() => setAdding({ cidr: '', selector_precedence: 0 })}>
            Add an address
          </Button>
        )
      }
    >
      <Loaded of={sources}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No address">Calls are then known by user and password alone.</Empty>
          ) : (
            <Table
              label="Addresses"
              rows={data}
              keyOf={source => source.id}
              columns={[
                { title: 'Network', cell: source => <span class="mono">{source.cidr}</span> },
                { title: 'State', cell: source => <Status of={source.enabled ? 'enabled' : 'disabled'} /> },
                { title: 'Counts', cell: source => COUNTS[source.standing], wide: true },
                { title: 'Precedence', cell: source => source.selector_precedence, right: true, wide: true },
                { title: 'Added', cell: source => <Time at={source.created_at} />, wide: true },
                {
                  title: '',
                  right: true,
                  cell: source =>
                    canWrite() && (
                      <span class="row">
                        <Button small kind="quiet" onClick={() => void flip(source)}>
                          {source.enabled ? 'Disable' : 'Enable'}
                        </Button>
                        <Button
                          small
                          kind="quiet"
                          label={`Remove ${source.cidr}`}
                          onClick={() => void action.run(() => write('DELETE', `/ip-credentials/${source.id}`))}
                        >
                          Remove
                        </Button>
                      </span>
                    ),
                },
              ]}
            />
          )
        }
      </Loaded>
      <Failure of={action.problem} shown={adding === null} />
      {adding && (
        <Dialog title="Add an address" onClose={() => setAdding(null)}>
          <Form
            onSubmit={() => void add()}
            submit="Add"
            busy={action.busy}
            problem={action.problem}
            fields={['/cidr', '/selector_precedence']}
          >
            <TextField
              label="Address or network"
              mono
              value={adding.cidr}
              placeholder="203.0.113.0/24"
              onInput={cidr => setAdding({ ...adding, cidr: cidr.trim() })}
              wrong={adding.cidr === '' ? null : wrongSource(adding.cidr)}
              problem={action.problem}
              at="/cidr"
              required
              autoFocus
            />
            <NumberField
              label="Precedence"
              hint="Tells two trunks with the same network apart: the lower one is asked first."
              value={adding.selector_precedence}
              onInput={value => setAdding({ ...adding, selector_precedence: value ?? 0 })}
              problem={action.problem}
              at="/selector_precedence"
            />
          </Form>
        </Dialog>
      )}
    </Card>
  )
}

function Credentials(props: TrunkTab) {
  const { trunk } = props
  const credentials = useData<ListOf<DigestCredential>>(`/v1/trunks/${trunk.id}/digest-credentials`)
  const { action, write } = useWrite(props, credentials.reload)
  const [secret, setSecret] = useState<DigestCredentialSecret | null>(null)
  const realm = trunk.authentication.digest_identities[0]?.realm ?? trunk.signaling_fqdn ?? 'localhost'
  const made = (path: string, body?: unknown) =>
    action.run(async () => {
      setSecret(await write<DigestCredentialSecret>('POST', path, body))
    })
  return (
    <Card
      title="Users and passwords"
      hint="Rotate makes a new password; the old one works until the overlap is over."
      flush
      actions={
        canWrite() && (
          <Button small icon="plus" onClick={() => void made('/digest-credentials', { realm })}>
            Add a user
          </Button>
        )
      }
    >
      <Loaded of={credentials}>
        {({ data }) => (
          <Table
            label="Users and passwords"
            rows={data}
            keyOf={credential => credential.id}
            columns={[
              { title: 'User', cell: credential => <span class="mono">{credential.username}</span> },
              { title: 'Realm', cell: credential => <span class="mono">{credential.realm}</span>, wide: true },
              {
                title: 'State',
                cell: credential =>
                  credential.revoked_at ? (
                    <Badge tone="bad">Revoked</Badge>
                  ) : credential.valid_until ? (
                    <Badge tone="warn">Works until {credential.valid_until.slice(0, 16).replace('T', ' ')}</Badge>
                  ) : credential.new_applied_at ? (
                    <Badge tone="good">In force</Badge>
                  ) : (
                    <Badge tone="warn" busy>
                      Applying
                    </Badge>
                  ),
              },
              { title: 'Made', cell: credential => <Time at={credential.created_at} />, wide: true },
              {
                title: '',
                right: true,
                cell: credential =>
                  canWrite() &&
                  !credential.revoked_at && (
                    <span class="row">
                      <Button
                        small
                        kind="quiet"
                        onClick={() => void made(`/digest-credentials/${credential.id}/rotate`)}
                      >
                        Rotate
                      </Button>
                      <Button
                        small
                        kind="quiet"
                        onClick={() =>
                          void action.run(async () => {
                            await write('DELETE', `/digest-credentials/${credential.id}`)
                            toast('Revoked')
                          })
                        }
                      >
                        Revoke
                      </Button>
                    </span>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
      <Failure of={action.problem} shown={secret === null} />
      {secret && (
        <Dialog title={`Password of ${secret.username}`} onClose={() => setSecret(null)}>
          <SecretOnce value={secret.password ?? ''} what="the password" />
        </Dialog>
      )}
    </Card>
  )
}

const NEW_TARGET: TargetForm = {
  sip_uri: '',
  transport: 'udp',
  priority: 10,
  weight: 100,
  enabled: true,
  tls_verification: 'required',
  tls_fingerprint: null,
}
const VERIFICATIONS = [
  { value: 'required', text: 'Must be valid and name the target' },
  { value: 'pinned', text: 'Must be the one with this fingerprint' },
  { value: 'off', text: 'Is not verified' },
]
const isUnverified = ({ transport, tls_verification }: Pick<Target, 'transport' | 'tls_verification'>): boolean =>
  transport === 'tls' && tls_verification === 'off'
type TargetForm = Required<TargetInput> & { readonly id?: string }

function Targets(props: TrunkTab) {
  const { trunk } = props
  const { action, write } = useWrite(props, () => undefined)
  const [edited, setEdited] = useState<TargetForm | null>(null)
  const save = async () => {
    if (!edited) return
    const { id, sip_uri, transport, priority, weight, enabled, tls_verification } = edited
    const tls_fingerprint = tls_verification === 'pinned' ? edited.tls_fingerprint : null
    const body = { sip_uri, transport, priority, weight, enabled, tls_verification, tls_fingerprint }
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
        <Table
          label="Targets"
          rows={trunk.routes}
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
                    <Button small kind="quiet" onClick={() => setEdited(target)}>
                      Edit
                    </Button>
                    <Button
                      small
                      kind="quiet"
                      onClick={() => void action.run(() => write('DELETE', `/termination-uris/${target.id}`))}
                    >
                      Remove
                    </Button>
                  </span>
                ),
            },
          ]}
        />
      )}
      <Failure of={action.problem} shown={edited === null} />
      {edited && (
        <Dialog title={edited.id === undefined ? 'Add a target' : 'Edit the target'} onClose={() => setEdited(null)}>
          <Form
            onSubmit={() => void save()}
            submit="Save"
            busy={action.busy}
            problem={action.problem}
            fields={['/sip_uri', '/transport', '/priority', '/weight', '/tls_verification', '/tls_fingerprint']}
          >
            <TextField
              label="Address"
              mono
              value={edited.sip_uri}
              placeholder="sip:pbx.example.com:5060"
              onInput={sip_uri => setEdited({ ...edited, sip_uri })}
              wrong={wrongSipUri(edited.sip_uri, edited.transport)}
              problem={action.problem}
              at="/sip_uri"
              required
              autoFocus
            />
            <div class="grid-2">
              <SelectField
                label="Transport"
                value={edited.transport}
                onInput={transport => setEdited({ ...edited, transport: transport as Target['transport'] })}
                options={['udp', 'tcp', 'tls'].map(value => ({ value, text: value.toUpperCase() }))}
                problem={action.problem}
                at="/transport"
              />
              <NumberField
                label="Priority"
                value={edited.priority}
                onInput={value => setEdited({ ...edited, priority: value ?? 0 })}
                problem={action.problem}
                at="/priority"
              />
              <NumberField
                label="Weight"
                value={edited.weight}
                onInput={value => setEdited({ ...edited, weight: value ?? 0 })}
                problem={action.problem}
                at="/weight"
              />
            </div>
            {edited.transport === 'tls' && (
              <SelectField
                label="Certificate"
                value={edited.tls_verification}
                onInput={value => setEdited({ ...edited, tls_verification: value as Target['tls_verification'] })}
                options={VERIFICATIONS}
                problem={action.problem}
                at="/tls_verification"
              />
            )}
            {edited.transport === 'tls' && edited.tls_verification === 'pinned' && (
              <TextField
                label="SHA-256 fingerprint"
                mono
                value={edited.tls_fingerprint ?? ''}
                onInput={tls_fingerprint => setEdited({ ...edited, tls_fingerprint })}
                problem={action.problem}
                at="/tls_fingerprint"
                required
              />
            )}
            {isUnverified(edited) && (
              <div class="notice warn" role="alert">
                Anybody between us and this target can pretend to be it, hear its calls and read their keys. Pin its
                certificate instead.
              </div>
            )}
            <CheckField
              label="Enabled"
              checked={edited.enabled}
              onInput={enabled => setEdited({ ...edited, enabled })}
            />
          </Form>
        </Dialog>
      )}
    </Card>
  )
}

/** A refused write of a table's button, where no dialog shows it. */
const Failure = ({ of, shown }: { of: import('../lib/problem.ts').Problem | null; shown: boolean }) =>
  of && shown ? (
    <div class="body">
      <div class="notice bad" role="alert">
        <strong>{of.title}</strong>
        <span>{of.detail}</span>
      </div>
    </div>
  ) : null

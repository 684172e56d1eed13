import { useState } from 'preact/hooks'
import { useData } from '../lib/data.ts'
import type { DigestCredential, DigestCredentialSecret, ListOf } from '../lib/types.ts'
import { Badge, Button, Card, Loaded, Time } from '../ui/basics.tsx'
import { Dialog, SecretOnce } from '../ui/dialog.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { TrunkTab } from './trunk-tab.ts'
import { canWrite, Failure, useTrunkWrite } from './trunk-write.tsx'

export function TrunkCredentials(props: TrunkTab) {
  const { trunk } = props
  const credentials = useData<ListOf<DigestCredential>>(`/v1/trunks/${trunk.id}/digest-credentials`)
  const { action, write } = useTrunkWrite(props, credentials.reload)
  const [secret, setSecret] = useState<DigestCredentialSecret | null>(null)
  const realm = trunk.authentication.digest_identities[0]?.realm ?? trunk.signaling_fqdn ?? 'localhost'
  const made = (path: string, body?: unknown) =>
    action.run(async () => {
      setSecret(await write<DigestCredentialSecret>('POST', path, body))
    })
  const revoke = (id: string) =>
    action.run(async () => {
      await write('DELETE', `/digest-credentials/${id}`)
      toast('Revoked')
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
          <CredentialTable
            rows={data}
            rotate={({ id }) => void made(`/digest-credentials/${id}/rotate`)}
            revoke={({ id }) => void revoke(id)}
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

interface CredentialTableProps {
  readonly rows: readonly DigestCredential[]
  readonly rotate: (credential: DigestCredential) => void
  readonly revoke: (credential: DigestCredential) => void
}

const CredentialTable = ({ rows, rotate, revoke }: CredentialTableProps) => (
  <Table
    label="Users and passwords"
    rows={rows}
    keyOf={credential => credential.id}
    columns={[
      { title: 'User', cell: credential => <span class="mono">{credential.username}</span> },
      { title: 'Realm', cell: credential => <span class="mono">{credential.realm}</span>, wide: true },
      {
        title: 'State',
        cell: credential => <CredentialState of={credential} />,
      },
      { title: 'Made', cell: credential => <Time at={credential.created_at} />, wide: true },
      {
        title: '',
        right: true,
        cell: credential =>
          canWrite() &&
          !credential.revoked_at && (
            <span class="row">
              <Button small kind="quiet" onClick={() => rotate(credential)}>
                Rotate
              </Button>
              <Button small kind="quiet" onClick={() => revoke(credential)}>
                Revoke
              </Button>
            </span>
          ),
      },
    ]}
  />
)

const CredentialState = ({ of }: { of: DigestCredential }) =>
  of.revoked_at ? (
    <Badge tone="bad">Revoked</Badge>
  ) : of.valid_until ? (
    <Badge tone="warn">Works until {of.valid_until.slice(0, 16).replace('T', ' ')}</Badge>
  ) : of.new_applied_at ? (
    <Badge tone="good">In force</Badge>
  ) : (
    <Badge tone="warn" busy>
      Applying
    </Badge>
  )

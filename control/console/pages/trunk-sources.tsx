import { useState } from 'preact/hooks'
import { wrongSource } from '../lib/checks.ts'
import { type Action, useData } from '../lib/data.ts'
import type { ListOf, IpCredential as Source } from '../lib/types.ts'
import { Button, Card, Empty, Loaded, Status, Time } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Form, NumberField, TextField } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import type { TrunkTab } from './trunk-tab.ts'
import { canWrite, Failure, useTrunkWrite } from './trunk-write.tsx'

interface NewSource {
  readonly cidr: string
  readonly selector_precedence: number
}

const COUNTS: Readonly<Record<Source['standing'], string>> = {
  full: 'for every call',
  name_only: "for calls to the trunk's name: the address is somebody else's too",
  pending_approval: 'once an operator approves of it',
}

export function TrunkSources(props: TrunkTab) {
  const sources = useData<ListOf<Source>>(`/v1/trunks/${props.trunk.id}/ip-credentials`)
  const { action, write } = useTrunkWrite(props, sources.reload)
  const [adding, setAdding] = useState<NewSource | null>(null)
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
            <SourceTable
              rows={data}
              flip={source => void flip(source)}
              remove={source => void action.run(() => write('DELETE', `/ip-credentials/${source.id}`))}
            />
          )
        }
      </Loaded>
      <Failure of={action.problem} shown={adding === null} />
      {adding && (
        <SourceForm
          source={adding}
          set={changes => setAdding({ ...adding, ...changes })}
          action={action}
          onSave={() => void add()}
          onClose={() => setAdding(null)}
        />
      )}
    </Card>
  )
}

interface SourceTableProps {
  readonly rows: readonly Source[]
  readonly flip: (source: Source) => void
  readonly remove: (source: Source) => void
}

const SourceTable = ({ rows, flip, remove }: SourceTableProps) => (
  <Table
    label="Addresses"
    rows={rows}
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
              <Button small kind="quiet" onClick={() => flip(source)}>
                {source.enabled ? 'Disable' : 'Enable'}
              </Button>
              <Button small kind="quiet" label={`Remove ${source.cidr}`} onClick={() => remove(source)}>
                Remove
              </Button>
            </span>
          ),
      },
    ]}
  />
)

interface SourceFormProps {
  readonly source: NewSource
  readonly set: (changes: Partial<NewSource>) => void
  readonly action: Action
  readonly onSave: () => void
  readonly onClose: () => void
}

const SourceForm = ({ source, set, action, onSave, onClose }: SourceFormProps) => (
  <Dialog title="Add an address" onClose={onClose}>
    <Form
      onSubmit={onSave}
      submit="Add"
      busy={action.busy}
      problem={action.problem}
      fields={['/cidr', '/selector_precedence']}
    >
      <TextField
        label="Address or network"
        mono
        value={source.cidr}
        placeholder="203.0.113.0/24"
        onInput={cidr => set({ cidr: cidr.trim() })}
        wrong={source.cidr === '' ? null : wrongSource(source.cidr)}
        problem={action.problem}
        at="/cidr"
        required
        autoFocus
      />
      <NumberField
        label="Precedence"
        hint="Tells two trunks with the same network apart: the lower one is asked first."
        value={source.selector_precedence}
        onInput={value => set({ selector_precedence: value ?? 0 })}
        problem={action.problem}
        at="/selector_precedence"
      />
    </Form>
  </Dialog>
)

import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { useData } from '../lib/data.ts'
import { words } from '../lib/format.ts'
import { query, setQuery } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { ListOf, TrunkSummary } from '../lib/types.ts'
import { Button } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Form, SelectField, TextField, TimeField } from '../ui/form.tsx'

export const FILTERS = [
  ...(['number', 'status', 'direction', 'trunk_id', 'application_id', 'reason', 'call_id'] as const),
  ...(['since', 'before', 'ended_since', 'ended_before'] as const),
] as const
/** Filters with a local date and time. */
export const TIMES: readonly string[] = ['since', 'before', 'ended_since', 'ended_before']

const STATUSES = ['queued', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'canceled', 'failed']
const DIRECTIONS = ['inbound', 'outbound', 'outbound-api', 'outbound-dial']

const value = (name: string): string => query.value.get(name) ?? ''
const anyOf = (names: readonly string[]) => [
  { value: '', text: 'Any' },
  ...names.map(name => ({ value: name, text: words(name) })),
]
const clear = () => setQuery(Object.fromEntries(FILTERS.map(name => [name, ''])))

/** The filters of the call list: in a row, or in a sheet on narrow screens. */
export function CallFilters() {
  const [open, setOpen] = useState(false)
  const used = FILTERS.filter(name => value(name) !== '').length
  return (
    <>
      <div class="filters wide-filters">
        <Fields />
        <Saved used={used} />
      </div>
      <div class="narrow-filters row">
        <Button onClick={() => setOpen(true)}>{used === 0 ? 'Filters' : `Filters (${used})`}</Button>
        {used > 0 && (
          <Button kind="quiet" onClick={clear}>
            Clear
          </Button>
        )}
      </div>
      {open && (
        <Dialog title="Filters" onClose={() => setOpen(false)}>
          <Fields />
          <Saved used={used} />
          <Button kind="main-one" onClick={() => setOpen(false)}>
            Show the calls
          </Button>
        </Dialog>
      )}
    </>
  )
}

function Fields() {
  const trunks = useData<ListOf<TrunkSummary>>(may('service_configuration:read') ? '/v1/trunks' : null)
  return (
    <>
      <TextField
        label="Number"
        type="search"
        value={value('number')}
        onInput={number => setQuery({ number: number.trim() })}
        placeholder="+234…"
      />
      <SelectField
        label="Status"
        value={value('status')}
        onInput={status => setQuery({ status })}
        options={anyOf(STATUSES)}
      />
      <SelectField
        label="Direction"
        value={value('direction')}
        onInput={direction => setQuery({ direction })}
        options={anyOf(DIRECTIONS)}
      />
      <SelectField
        label="Trunk"
        value={value('trunk_id')}
        onInput={trunk_id => setQuery({ trunk_id })}
        options={[
          { value: '', text: 'Any' },
          ...(trunks.data?.data ?? []).map(({ id, name }) => ({ value: id, text: name })),
        ]}
      />
      <TextField
        label="Reason"
        type="search"
        value={value('reason')}
        onInput={reason => setQuery({ reason: reason.trim().toLowerCase().replaceAll(/[ -]/g, '_') })}
        placeholder="no_route"
      />
      <TextField
        label="SID"
        type="search"
        value={value('call_id')}
        onInput={call_id => setQuery({ call_id: /^CA[0-9a-f]{0,32}$/.test(call_id.trim()) ? call_id.trim() : '' })}
        placeholder="CA…"
      />
      <TimeField label="Since" value={value('since')} onInput={since => setQuery({ since })} />
      <TimeField label="Before" value={value('before')} onInput={before => setQuery({ before })} />
    </>
  )
}

interface SavedFilter {
  readonly name: string
  readonly values: Readonly<Record<string, string>>
}

const KEY = 'strowger-call-filters'
const MOST = 30

function stored(): readonly SavedFilter[] {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '[]') as SavedFilter[]
  } catch {
    return []
  }
}

/** What this browser's person has saved. */
const saved = signal<readonly SavedFilter[]>(stored())

function save(filters: readonly SavedFilter[]): void {
  saved.value = filters.slice(0, MOST)
  localStorage.setItem(KEY, JSON.stringify(saved.value))
}

/** Filters under a name. Another choice of them replaces the present one. */
function Saved({ used }: { used: number }) {
  const [naming, setNaming] = useState(false)
  const [name, setName] = useState('')
  const keep = () => {
    const values = Object.fromEntries(FILTERS.map(filter => [filter, value(filter)]))
    save([{ name: name.trim(), values }, ...saved.value.filter(other => other.name !== name.trim())])
    setNaming(false)
  }
  const current = saved.value.find(({ values }) => FILTERS.every(filter => (values[filter] ?? '') === value(filter)))
  return (
    <>
      {saved.value.length > 0 && (
        <SelectField
          label="Saved filters"
          value={current?.name ?? ''}
          onInput={chosen => {
            const found = saved.value.find(other => other.name === chosen)
            if (found) setQuery({ ...found.values })
          }}
          options={[
            { value: '', text: '–' },
            ...saved.value.map(filter => ({ value: filter.name, text: filter.name })),
          ]}
        />
      )}
      {used > 0 && !current && <Button onClick={() => setNaming(true)}>Save these filters</Button>}
      {current && used > 0 && (
        <Button kind="quiet" onClick={() => save(saved.value.filter(other => other !== current))}>
          Forget “{current.name}”
        </Button>
      )}
      {used > 0 && (
        <Button kind="quiet" onClick={clear}>
          Clear
        </Button>
      )}
      {naming && (
        <Dialog title="Save these filters" onClose={() => setNaming(false)}>
          <Form onSubmit={keep} submit="Save" disabled={name.trim() === ''}>
            <TextField label="Name" value={name} onInput={setName} required autoFocus />
          </Form>
        </Dialog>
      )}
    </>
  )
}

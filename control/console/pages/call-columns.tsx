import { signal } from '@preact/signals'
import type { ListedCall } from '../lib/api-types.ts'
import { duration, money, when, words } from '../lib/format.ts'
import { CallStatus } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Chips } from '../ui/form.tsx'
import type { Column } from '../ui/table.tsx'

/** Columns of the call list that everybody sees. */
const FIXED: readonly Column<ListedCall>[] = [
  { title: 'From', cell: call => <span class="num">{call.from}</span>, width: '158px' },
  { title: 'To', cell: call => <span class="num">{call.to}</span>, width: '156px' },
  { title: 'Status', cell: call => <CallStatus call={call} />, width: '166px' },
  { title: 'When', cell: call => <span class="num">{when(call.queued_at)}</span>, width: '186px' },
]

const why = ({ reason, ended_by }: ListedCall): string =>
  reason ? words(reason) : ended_by ? `by the ${ended_by}` : ''

/** Columns that a person chooses, in their order. */
const OPTIONAL = {
  trunk: { title: 'Trunk', cell: call => call.trunk_name ?? '–', width: '96px' },
  direction: { title: 'Direction', cell: call => words(call.direction) },
  duration: { title: 'Duration', cell: call => duration(call.duration_seconds), right: true, width: '84px' },
  mos: { title: 'MOS', cell: call => call.mos?.toFixed(1) ?? '–', right: true, width: '60px' },
  codec: { title: 'Codec', cell: call => call.codec ?? '–', width: '80px' },
  price: { title: 'Price', cell: call => money(call.price_minor), right: true, width: '96px' },
  why: { title: 'Why it ended', cell: call => <span class="muted">{why(call)}</span> },
  code: { title: 'SIP', cell: call => call.sip_code ?? '–', right: true, width: '56px' },
  id: { title: 'SID', cell: call => <span class="mono">{call.id}</span> },
} as const satisfies Readonly<Record<string, Column<ListedCall>>>

type Name = keyof typeof OPTIONAL

const NAMES = Object.keys(OPTIONAL) as Name[]
const KEY = 'strowger-call-columns'
const DEFAULT: readonly Name[] = ['trunk', 'duration', 'mos', 'price', 'why']

const stored = (): readonly Name[] => {
  const text = localStorage.getItem(KEY)
  return text === null ? DEFAULT : NAMES.filter(name => text.split(',').includes(name))
}

/** What this browser's person chose. */
export const chosenColumns = signal<readonly Name[]>(stored())

function choose(names: readonly Name[]): void {
  chosenColumns.value = NAMES.filter(name => names.includes(name))
  localStorage.setItem(KEY, chosenColumns.value.join(','))
}

export const columnsOf = (names: readonly Name[]): readonly Column<ListedCall>[] => [
  ...FIXED,
  ...names.map(name => ({ ...OPTIONAL[name], wide: true })),
]

export const ColumnChoice = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Columns" onClose={onClose}>
    <Chips
      legend="Shown beside caller, called, status and time"
      values={chosenColumns.value}
      onInput={choose}
      options={NAMES.map(value => ({ value, text: OPTIONAL[value].title }))}
    />
  </Dialog>
)

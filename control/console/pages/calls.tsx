import { useCallback } from 'preact/hooks'
import { usePages } from '../lib/data.ts'
import { count, duration, instantOf, words } from '../lib/format.ts'
import { hrefOf, query, setQuery } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { CallSummary } from '../lib/types.ts'
import { Button, Card, Empty, LinkButton, PageHead, ProblemBox, Status, Tabs, Time } from '../ui/basics.tsx'
import { SelectField, TextField } from '../ui/form.tsx'
import { type Column, LongTable } from '../ui/table.tsx'

export const CALL_TABS = () => [
  { id: 'history', text: 'History', href: hrefOf('/calls') },
  ...(may('live_calls:read') ? [{ id: 'live', text: 'Live', href: hrefOf('/calls/live') }] : []),
  ...(may('recordings:manage') ? [{ id: 'recordings', text: 'Recordings', href: hrefOf('/recordings') }] : []),
]

const CALL_COLUMNS: readonly Column<CallSummary>[] = [
  { title: 'From', cell: call => <span class="num">{call.from}</span>, width: '22%' },
  { title: 'To', cell: call => <span class="num">{call.to}</span>, width: '22%' },
  { title: 'Status', cell: call => <Status of={call.status} />, width: '130px' },
  { title: 'Direction', cell: call => words(call.direction), wide: true },
  { title: 'Duration', cell: call => duration(call.duration_seconds), right: true, wide: true },
  {
    title: 'Why it ended',
    cell: call => (
      <span class="muted">{call.reason ? words(call.reason) : call.ended_by ? `by the ${call.ended_by}` : ''}</span>
    ),
    wide: true,
  },
  { title: 'When', cell: call => <Time at={call.queued_at} />, width: '110px' },
]

const STATUSES = ['queued', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'canceled', 'failed']
const DIRECTIONS = ['inbound', 'outbound', 'outbound-api', 'outbound-dial']
const FILTERS = ['status', 'direction', 'number', 'trunk_id', 'since', 'before'] as const
const PAGE = 200
const keyOf = (call: CallSummary): string => call.id

/** Returns the path of the API's call list with the filters from the page's address. */
function pathOf(given: URLSearchParams): string {
  const asked = new URLSearchParams({ limit: String(PAGE) })
  for (const name of FILTERS) {
    const value = given.get(name)
    if (!value) continue
    asked.set(name, name === 'since' || name === 'before' ? instantOf(value) : value)
  }
  return `/v1/calls?${asked}`
}

export function Calls() {
  const given = query.value
  const value = (name: string) => given.get(name) ?? ''
  const calls = usePages<CallSummary>(pathOf(given), { poll_ms: 5000, key: keyOf })
  const more = useCallback(calls.loadMore, [calls.loadMore])
  const filtered = FILTERS.some(name => given.get(name))
  return (
    <>
      <PageHead
        title="Calls"
        sub="Every call with why it went as it did. A number finds it as caller and as called."
        actions={
          <Button icon="download" onClick={() => download(calls.rows)} disabled={calls.rows.length === 0}>
            CSV of what is shown
          </Button>
        }
      />
      <Tabs items={CALL_TABS()} current="history" />
      <div class="filters">
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
          options={[{ value: '', text: 'Any' }, ...STATUSES.map(name => ({ value: name, text: words(name) }))]}
        />
        <SelectField
          label="Direction"
          value={value('direction')}
          onInput={direction => setQuery({ direction })}
          options={[{ value: '', text: 'Any' }, ...DIRECTIONS.map(name => ({ value: name, text: words(name) }))]}
        />
        <TextField label="Since" type="datetime-local" value={value('since')} onInput={since => setQuery({ since })} />
        <TextField
          label="Before"
          type="datetime-local"
          value={value('before')}
          onInput={before => setQuery({ before })}
        />
        {filtered && (
          <Button kind="quiet" onClick={() => setQuery(Object.fromEntries(FILTERS.map(name => [name, ''])))}>
            Clear
          </Button>
        )}
      </div>
      <ProblemBox problem={calls.problem} />
      <Card flush>
        {calls.rows.length === 0 ? (
          calls.loading ? (
            <output class="loading">Loading…</output>
          ) : (
            <Empty
              title={filtered ? 'No call fits these filters' : 'No call yet'}
              action={!filtered && <LinkButton href={hrefOf('/welcome')}>Make the first call</LinkButton>}
              api={
                'bin/strowger call +2348030000001\n\ncurl "$STROWGER_URL/v1/calls?limit=50" -H "Authorization: Bearer $STROWGER_API_KEY"'
              }
            >
              {filtered ? 'Take one away to see more.' : 'Calls appear here while they are being made.'}
            </Empty>
          )
        ) : (
          <>
            <LongTable
              label="Calls"
              columns={CALL_COLUMNS}
              rows={calls.rows}
              keyOf={keyOf}
              hrefOf={call => hrefOf(`/calls/${call.id}`)}
              more={calls.more}
              onNearEnd={more}
            />
            <div class="table-foot">
              <span>
                {count(calls.rows.length)} {calls.more ? 'calls so far; scroll for more' : 'calls'}
              </span>
              <span role="status">{calls.loading ? 'Loading…' : ''}</span>
            </div>
          </>
        )}
      </Card>
    </>
  )
}

const CSV_FIELDS = [
  'id',
  'from',
  'to',
  'status',
  'direction',
  'queued_at',
  'start_time',
  'ended_at',
  'duration_seconds',
  'ended_by',
  'reason',
  'sip_code',
  'trunk_id',
] as const

/** Escapes a CSV cell, so that spreadsheets read it as text, never as a formula. */
const csvCell = (value: unknown): string => {
  const text = value == null ? '' : String(value)
  const safe = /^[=@\t\r-]|^\+(?!\d+$)/.test(text) ? `'${text}` : text
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

function download(rows: readonly CallSummary[]): void {
  const lines = [CSV_FIELDS.join(','), ...rows.map(row => CSV_FIELDS.map(name => csvCell(row[name])).join(','))]
  saveAs(new Blob([`${lines.join('\n')}\n`], { type: 'text/csv' }), 'calls.csv')
}

export function saveAs(blob: Blob, name: string): void {
  const href = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = href
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(href), 10_000)
}

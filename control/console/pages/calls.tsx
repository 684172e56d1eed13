import { useCallback, useState } from 'preact/hooks'
import type { ListedCall } from '../lib/api-types.ts'
import { type Pages, usePages } from '../lib/data.ts'
import { count, instantOf } from '../lib/format.ts'
import { hrefOf, query } from '../lib/router.ts'
import { saveAs } from '../lib/save-as.ts'
import { may } from '../lib/session.ts'
import { Button, Card, Empty, LinkButton, PageHead, ProblemBox, Tabs } from '../ui/basics.tsx'
import { LongTable } from '../ui/table.tsx'
import { ColumnChoice, chosenColumns, columnsOf } from './call-columns.tsx'
import { CallFilters, FILTERS } from './call-filters.tsx'

export const CALL_TABS = () => [
  { id: 'history', text: 'History', href: hrefOf('/calls') },
  ...(may('live_calls:read') ? [{ id: 'live', text: 'Live', href: hrefOf('/calls/live') }] : []),
  ...(may('recordings:manage') ? [{ id: 'recordings', text: 'Recordings', href: hrefOf('/recordings') }] : []),
]

const PAGE = 200
const keyOf = (call: ListedCall): string => call.id

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
  const calls = usePages<ListedCall>(pathOf(query.value), { poll_ms: 5000, key: keyOf })
  const filtered = FILTERS.some(name => query.value.get(name))
  const [choosing, setChoosing] = useState(false)
  return (
    <>
      <PageHead
        title="Calls"
        sub="Every call with why it went as it did. A number finds it as caller and as called."
        actions={
          <>
            <Button onClick={() => setChoosing(true)}>Columns</Button>
            <Button icon="download" onClick={() => download(calls.rows)} disabled={calls.rows.length === 0}>
              CSV of what is shown
            </Button>
          </>
        }
      />
      <Tabs items={CALL_TABS()} current="history" />
      <CallFilters />
      <ProblemBox problem={calls.problem} />
      <Card flush>
        {calls.rows.length > 0 ? (
          <List calls={calls} />
        ) : calls.loading ? (
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
        )}
      </Card>
      {choosing && <ColumnChoice onClose={() => setChoosing(false)} />}
    </>
  )
}

function List({ calls }: { calls: Pages<ListedCall> }) {
  const more = useCallback(calls.loadMore, [calls.loadMore])
  return (
    <>
      <LongTable
        label="Calls"
        columns={columnsOf(chosenColumns.value)}
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
  'trunk_name',
  'codec',
  'mos',
  'price_minor',
] as const

/** Escapes a CSV cell, so that spreadsheets read it as text, never as a formula. */
const csvCell = (value: unknown): string => {
  const text = value == null ? '' : String(value)
  const safe = /^[=@\t\r-]|^\+(?!\d+$)/.test(text) ? `'${text}` : text
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

function download(rows: readonly ListedCall[]): void {
  const lines = [CSV_FIELDS.join(','), ...rows.map(row => CSV_FIELDS.map(name => csvCell(row[name])).join(','))]
  saveAs(new Blob([`${lines.join('\n')}\n`], { type: 'text/csv' }), 'calls.csv')
}

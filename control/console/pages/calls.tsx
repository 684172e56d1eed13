import { useCallback, useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import type { ListedCall } from '../lib/api-types.ts'
import { type Pages, usePages, withLimit } from '../lib/data.ts'
import { FIRST_CALLS } from '../lib/first-reads.ts'
import { instantOf } from '../lib/format.ts'
import { hrefOf, query } from '../lib/router.ts'
import { Button, Card, Empty, LinkButton, NoRows, PageHead, ProblemBox, Tabs } from '../ui/basics.tsx'
import { LongTable } from '../ui/table.tsx'
import { ColumnChoice, chosenColumns, columnsOf } from './call-columns.tsx'
import { ExportCalls } from './call-export.tsx'
import { CallFilters, FILTERS, TIMES } from './call-filters.tsx'
import { CALL_TABS } from './call-tabs.ts'

const LATER_PAGE = 200
const keyOf = (call: ListedCall): string => call.id

/** Returns the filters in the page's address as the API takes them. */
function filterOf(given: URLSearchParams): Readonly<Record<string, string>> {
  const used = FILTERS.flatMap(name => {
    const value = given.get(name)
    if (!value) return []
    return [[name, TIMES.includes(name) ? instantOf(value) : value] as const]
  })
  return Object.fromEntries(used)
}

function pathOf(filter: Readonly<Record<string, string>>): string {
  const asked = String(new URLSearchParams(filter))
  return asked === '' ? '/v1/calls' : `/v1/calls?${asked}`
}

export function Calls() {
  const [choosing, setChoosing] = useState(false)
  return (
    <>
      <PageHead
        title="Calls"
        sub="Every call, with the reason for its outcome. Search by a number finds it as caller and as called number."
        actions={
          <>
            <Button onClick={() => setChoosing(true)}>Columns</Button>
            <ExportCalls filter={filterOf(query.value)} />
          </>
        }
      />
      <Tabs items={CALL_TABS()} current="history" />
      <CallFilters />
      <CallList />
      {choosing && <ColumnChoice onClose={() => setChoosing(false)} />}
    </>
  )
}

/** What changes when calls arrive, and nothing else of the page. */
function CallList() {
  const calls = usePages<ListedCall>(pathOf(filterOf(query.value)), {
    poll_ms: 5000,
    key: keyOf,
    first: FIRST_CALLS,
    later: LATER_PAGE,
  })
  const filtered = FILTERS.some(name => query.value.get(name))
  return (
    <>
      <ProblemBox problem={calls.problem} />
      <Card flush>
        {calls.rows.length > 0 ? (
          <List calls={calls} />
        ) : (
          <NoRows of={calls}>
            <Empty
              title={filtered ? 'No call fits these filters' : 'No call yet'}
              action={!filtered && <LinkButton href={hrefOf('/welcome')}>Make the first call</LinkButton>}
              api={
                'bin/strowger call +2348030000001\n\ncurl "$STROWGER_URL/v1/calls?limit=50" -H "Authorization: Bearer $STROWGER_API_KEY"'
              }
            >
              {filtered ? 'Take one away to see more.' : 'Calls appear here while they are being made.'}
            </Empty>
          </NoRows>
        )}
      </Card>
    </>
  )
}

/** The first page of the list that the address asks for. */
Calls.ahead = () => [withLimit(pathOf(filterOf(query.peek())), FIRST_CALLS)]

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
          {counted(calls.rows.length, 'call')}
          {calls.more && ' so far; scroll for more'}
        </span>
        <span role="status">{calls.loading ? 'Loading…' : ''}</span>
      </div>
    </>
  )
}

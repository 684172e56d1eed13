import { useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { ask } from '../lib/api.ts'
import { usePages } from '../lib/data.ts'
import { bytes, duration, when } from '../lib/format.ts'
import { hrefOf } from '../lib/router.ts'
import type { Recording } from '../lib/types.ts'
import { Button, Card, Empty, NoRows, Notice, PageHead, ProblemBox, Status, Tabs, Time } from '../ui/basics.tsx'
import { ConfirmByName, Dialog } from '../ui/dialog.tsx'
import { Player } from '../ui/player.tsx'
import { type Column, LongTable } from '../ui/table.tsx'
import { CALL_TABS } from './call-tabs.ts'

const keyOf = (recording: Recording): string => recording.id

type Choose = (recording: Recording) => void

const columnsOf = (hear: Choose, remove: Choose): readonly Column<Recording>[] => [
  {
    title: 'From',
    cell: row => (
      <a class="num" href={hrefOf(`/calls/${row.call_id}/recordings`)}>
        {row.from ?? 'its call'}
      </a>
    ),
    width: '164px',
  },
  { title: 'To', cell: row => <span class="num">{row.to ?? '–'}</span>, width: '152px' },
  { title: 'Status', cell: row => <Status of={row.status} />, width: '130px' },
  {
    title: 'Length',
    cell: row => duration(row.duration_ms === null ? null : row.duration_ms / 1000),
    right: true,
  },
  { title: 'Size', cell: row => bytes(row.bytes), right: true, wide: true },
  {
    title: 'Made',
    cell: row => <span class="num">{when(row.created_at)}</span>,
    wide: true,
    width: '196px',
  },
  { title: 'Kept until', cell: row => <Time at={row.expires_at} />, wide: true },
  {
    title: '',
    right: true,
    width: '180px',
    cell: row => (
      <>
        {row.status === 'completed' && (
          <Button small kind="quiet" icon="play" onClick={() => hear(row)}>
            Play
          </Button>
        )}
        <Button small kind="quiet" label={`Delete the recording ${row.id}`} onClick={() => remove(row)}>
          Delete
        </Button>
      </>
    ),
  },
]

export function Recordings() {
  const recordings = usePages<Recording>('/v1/recordings?limit=100', { poll_ms: 8000, key: keyOf })
  const [heard, setHeard] = useState<Recording | null>(null)
  const [deleted, setDeleted] = useState<Recording | null>(null)
  return (
    <>
      <PageHead title="Recordings" sub="Encrypted at rest, and deleted when their retention period ends." />
      <Tabs items={CALL_TABS()} current="recordings" />
      <ProblemBox problem={recordings.problem} />
      <Card flush>
        {recordings.rows.length === 0 ? (
          <NoRows of={recordings}>
            <Empty
              title="No recording yet"
              api={'curl "$STROWGER_URL/v1/recordings" -H "Authorization: Bearer $STROWGER_API_KEY"'}
            >
              Record all calls of an outbound policy, or with a verb of a script.
            </Empty>
          </NoRows>
        ) : (
          <>
            <LongTable
              label="Recordings"
              rows={recordings.rows}
              keyOf={keyOf}
              more={recordings.more}
              onNearEnd={recordings.loadMore}
              columns={columnsOf(setHeard, setDeleted)}
            />
            <div class="table-foot">{counted(recordings.rows.length, 'recording')}</div>
          </>
        )}
      </Card>
      {heard && (
        <Dialog title="Recording" wide onClose={() => setHeard(null)}>
          <Player recording={heard} />
        </Dialog>
      )}
      {deleted && (
        <ConfirmByName
          title="Delete the recording"
          name={deleted.id.slice(-6)}
          verb="Delete"
          onClose={() => setDeleted(null)}
          onConfirm={async () => {
            await ask('DELETE', `/v1/recordings/${deleted.id}`)
            recordings.reload()
          }}
        >
          <Notice tone="bad">The audio is gone for good.</Notice>
        </ConfirmByName>
      )}
    </>
  )
}

import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { Conference, ConferenceParticipant } from '../lib/api-types.ts'
import { useAction, useData, usePages, withRow } from '../lib/data.ts'
import { words } from '../lib/format.ts'
import { hrefOf, type PageProps } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { ListOf } from '../lib/types.ts'
import {
  Badge,
  Button,
  Card,
  Empty,
  Id,
  Loaded,
  NoRows,
  PageHead,
  ProblemBox,
  Status,
  Tabs,
  Time,
} from '../ui/basics.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { type Column, LongTable, Table } from '../ui/table.tsx'
import { CALL_TABS } from './call-tabs.ts'

/** A room is read this often: who speaks is known up to half a second late. */
const ROOM_MS = 1000
const LIST_MS = 3000

const keyOf = ({ id }: { readonly id: string }): string => id
const mayChange = (): boolean => may('service_configuration:write')

/** The conferences that run, and those of the last days. */
export function Rooms() {
  const rooms = usePages<Conference>('/v1/conferences?limit=100', { poll_ms: LIST_MS, key: keyOf })
  const columns: readonly Column<Conference>[] = [
    { title: 'Room', cell: room => <a href={hrefOf(`/rooms/${room.id}`)}>{room.name}</a> },
    { title: 'Status', cell: room => <Status of={room.status} /> },
    { title: 'Began', cell: room => <Time at={room.created_at} /> },
    { title: 'Ended', cell: room => <Time at={room.ended_at} />, wide: true },
    { title: 'Why', cell: room => room.reason_ended ?? '–', wide: true },
  ]
  return (
    <>
      <PageHead title="Rooms" sub="Conferences that run, and those of the last 30 days." />
      <Tabs items={CALL_TABS()} current="rooms" />
      <ProblemBox problem={rooms.problem} />
      <Card flush>
        {rooms.rows.length > 0 ? (
          <LongTable
            label="Rooms"
            rows={rooms.rows}
            keyOf={keyOf}
            more={rooms.more}
            onNearEnd={rooms.loadMore}
            columns={columns}
          />
        ) : (
          <NoRows of={rooms}>
            <Empty
              title="No room yet"
              api={'curl "$STROWGER_URL/v1/conferences" -H "Authorization: Bearer $STROWGER_API_KEY"'}
            >
              A document makes one with &lt;Dial&gt;&lt;Conference&gt;.
            </Empty>
          </NoRows>
        )}
      </Card>
    </>
  )
}

/** Who is in a room and who talks; mute, hold and take out. */
export function RoomPage({ params }: PageProps) {
  const path = `/v1/conferences/${params['id']}`
  const of = useData<Conference>(path, { poll_ms: LIST_MS })
  const [ending, setEnding] = useState(false)
  const back = { href: hrefOf('/rooms'), text: 'Rooms' }
  return (
    <Loaded of={of} page={{ title: 'Room', back }}>
      {room => (
        <>
          <PageHead
            title={room.name}
            back={back}
            badges={<Status of={room.status} />}
            sub={<Id value={room.id} />}
            actions={
              room.status !== 'completed' &&
              mayChange() && (
                <Button kind="danger" onClick={() => setEnding(true)}>
                  End the room
                </Button>
              )
            }
          />
          <Participants path={`${path}/participants`} over={room.status === 'completed'} />
          {ending && (
            <Confirm
              title={`End ${room.name}`}
              verb="End it now"
              onClose={() => setEnding(false)}
              onConfirm={async () => of.set(await ask<Conference>('POST', `${path}/end`))}
            >
              <p>Everybody leaves the room. Their documents go on; a call without further verbs ends.</p>
            </Confirm>
          )}
        </>
      )}
    </Loaded>
  )
}

function Participants({ path, over }: { readonly path: string; readonly over: boolean }) {
  const of = useData<ListOf<ConferenceParticipant>>(path, over ? {} : { poll_ms: ROOM_MS })
  const action = useAction()
  const change = (one: ConferenceParticipant, body: Partial<ConferenceParticipant>) =>
    void action.run(async () => {
      of.change(withRow(await ask<ConferenceParticipant>('PATCH', `${path}/${one.id}`, { body, on: one })))
    })
  const kick = (one: ConferenceParticipant) =>
    void action.run(async () => {
      await ask('DELETE', `${path}/${one.id}`)
      of.reload()
    })
  const nameOf = (one: ConferenceParticipant): string => one.label ?? one.to
  const columns: readonly Column<ConferenceParticipant>[] = [
    {
      title: 'Who',
      cell: one => (
        <>
          <a class="num" href={hrefOf(`/calls/${one.id}`)}>
            {nameOf(one)}
          </a>{' '}
          {one.coached_call_id !== null && <Badge tone="note">coaches</Badge>}
        </>
      ),
    },
    { title: 'Status', cell: one => words(one.status) },
    {
      title: 'Sound',
      cell: one =>
        one.hold ? (
          <Badge tone="warn">On hold</Badge>
        ) : one.muted ? (
          <Badge tone="warn">Muted</Badge>
        ) : one.speaking ? (
          <Badge tone="good">Talks</Badge>
        ) : (
          'Listens'
        ),
    },
    { title: 'Came', cell: one => <Time at={one.joined_at} />, wide: true },
    {
      title: '',
      right: true,
      cell: one =>
        !over &&
        mayChange() && (
          <span class="row">
            {one.status === 'connected' && (
              <>
                <Button
                  small
                  label={`${one.muted ? 'Let' : 'Mute'} ${nameOf(one)}${one.muted ? ' talk' : ''}`}
                  onClick={() => change(one, { muted: !one.muted })}
                >
                  {one.muted ? 'Unmute' : 'Mute'}
                </Button>
                <Button
                  small
                  label={one.hold ? `Take ${nameOf(one)} off hold` : `Put ${nameOf(one)} on hold`}
                  onClick={() => change(one, { hold: !one.hold })}
                >
                  {one.hold ? 'Off hold' : 'Hold'}
                </Button>
              </>
            )}
            <Button small kind="danger" label={`Take ${nameOf(one)} out of the room`} onClick={() => kick(one)}>
              Take out
            </Button>
          </span>
        ),
    },
  ]
  return (
    <Card flush title="In the room">
      <ProblemBox problem={action.problem} />
      <Loaded of={of}>
        {({ data }) =>
          data.length > 0 ? (
            <Table label="In the room" rows={data} keyOf={keyOf} columns={columns} />
          ) : (
            <Empty title="Nobody is in the room" />
          )
        }
      </Loaded>
    </Card>
  )
}

import type { AuditPage } from '../lib/api-types.ts'
import { useData } from '../lib/data.ts'
import { hrefOf } from '../lib/router.ts'
import { Badge, Card, Empty, Loaded, Time } from '../ui/basics.tsx'
import { Table } from '../ui/table.tsx'

/** Shows the revisions of a trunk: who changed it, and when. */
export function Revisions({ trunk_id }: { trunk_id: string }) {
  const events = useData<AuditPage>(`/v1/audit?trunk_id=${trunk_id}&range=all&limit=50`, { poll_ms: 10_000 })
  return (
    <Loaded of={events}>
      {page => (
        <Card title="Revisions" flush>
          {page.data.length === 0 ? (
            <Empty title="Nothing has changed yet" />
          ) : (
            <Table
              label="Revisions"
              rows={page.data}
              keyOf={event => event.id}
              hrefOf={event => hrefOf(`/audit/${event.id}`)}
              columns={[
                { title: 'What', cell: event => event.summary },
                {
                  title: 'Revision',
                  cell: event =>
                    event.to_revision === null ? '–' : `${event.from_revision ?? 0} → ${event.to_revision}`,
                  right: true,
                },
                {
                  title: 'State',
                  cell: event =>
                    event.applied ? <Badge tone="good">Applied</Badge> : <Badge tone="warn">Applying</Badge>,
                },
                { title: 'By', cell: event => event.actor.name, wide: true },
                { title: 'When', cell: event => <Time at={event.at} /> },
              ]}
            />
          )}
        </Card>
      )}
    </Loaded>
  )
}

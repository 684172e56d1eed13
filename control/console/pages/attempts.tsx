import { words } from '../lib/format.ts'
import type { Attempt } from '../lib/types.ts'
import { Card, Empty } from '../ui/basics.tsx'
import { Table } from '../ui/table.tsx'

export const Attempts = ({ attempts }: { attempts: readonly Attempt[] }) => (
  <Card title="Attempts at targets" flush>
    {attempts.length === 0 ? (
      <Empty title="No target was tried" />
    ) : (
      <Table
        label="Attempts at targets"
        rows={attempts}
        keyOf={attempt => String(attempt.sequence)}
        columns={[
          { title: 'Target', cell: attempt => <span class="mono">{attempt.target}</span> },
          {
            title: 'Address',
            cell: attempt => `${attempt.address ?? '–'} ${attempt.transport.toUpperCase()}`,
            wide: true,
          },
          {
            title: 'Result',
            cell: attempt =>
              attempt.result ? `${words(attempt.result)}${attempt.sip_code ? ` ${attempt.sip_code}` : ''}` : 'trying',
          },
          { title: 'Why', cell: attempt => (attempt.reason ? words(attempt.reason) : '–'), wide: true },
          {
            title: 'First answer',
            right: true,
            cell: attempt =>
              attempt.provisional_at
                ? `${Date.parse(attempt.provisional_at) - Date.parse(attempt.started_at)} ms`
                : '–',
          },
        ]}
      />
    )}
  </Card>
)

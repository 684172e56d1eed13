import type { ComponentChildren } from 'preact'
import { count, words } from '../lib/format.ts'
import { Card, Empty } from '../ui/basics.tsx'
import { Table } from '../ui/table.tsx'

/** Shows how many calls were refused, by reason. */
export const RefusedCalls = ({
  refusals,
  hint,
}: {
  refusals: readonly { readonly reason: string; readonly count: number }[]
  hint?: ComponentChildren
}) => (
  <Card title="Refused calls" hint={hint} flush>
    {refusals.length === 0 ? (
      <Empty title="No call was refused" />
    ) : (
      <Table
        label="Refused calls"
        rows={refusals}
        keyOf={row => row.reason}
        columns={[
          { title: 'Reason', cell: row => words(row.reason) },
          { title: 'Calls', cell: row => count(row.count), right: true },
        ]}
      />
    )}
  </Card>
)

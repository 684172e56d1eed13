import { useState } from 'preact/hooks'
import { ask } from '../../lib/api.ts'
import type { OperatorNumber, OperatorProject } from '../../lib/api-types.ts'
import { useAction, useData, usePages } from '../../lib/data.ts'
import { digitsAsked } from '../../lib/digits-asked.ts'
import { money } from '../../lib/format.ts'
import { hrefOf } from '../../lib/router.ts'
import type { ListOf } from '../../lib/types.ts'
import { Button, Card, Empty, Loaded, Notice, ProblemBox } from '../../ui/basics.tsx'
import { ConfirmWithReason, Dialog } from '../../ui/dialog.tsx'
import { Form, PrefixField, SelectField } from '../../ui/form.tsx'
import { type Column, Listed, Table } from '../../ui/table.tsx'

const keyOf = (row: OperatorNumber) => row.id

interface FreeNumbers extends ListOf<OperatorNumber> {
  readonly next_cursor?: string | null
}

const numberColumns = (takeBack: (number: OperatorNumber) => void): readonly Column<OperatorNumber>[] => [
  { title: 'Number', cell: row => <span class="num">{row.e164}</span> },
  { title: 'A month', cell: row => money(row.monthly_minor), right: true, wide: true },
  {
    title: '',
    right: true,
    cell: row => (
      <Button small kind="quiet" label={`Take back ${row.e164}`} onClick={() => takeBack(row)}>
        Take back
      </Button>
    ),
  },
]

/** The numbers that a project holds. */
export function ProjectNumbers({ project, onChanged }: { project: OperatorProject; onChanged: () => void }) {
  const of = usePages<OperatorNumber>(`/operator/v1/numbers?project_id=${project.id}&limit=50`, { key: keyOf })
  const [giving, setGiving] = useState(false)
  const [taken, setTaken] = useState<OperatorNumber | null>(null)
  const changed = () => {
    setGiving(false)
    of.reload()
    onChanged()
  }
  return (
    <div id="project-numbers" tabIndex={-1}>
      <Card
        title="Numbers"
        flush
        actions={
          <Button small icon="plus" onClick={() => setGiving(true)}>
            Give a number
          </Button>
        }
      >
        <ProblemBox problem={of.problem} />
        <Listed of={of} more="More numbers" none={<Empty title="The project holds no numbers" />}>
          <Table label="Numbers" rows={of.rows} keyOf={keyOf} columns={numberColumns(setTaken)} />
        </Listed>
      </Card>
      {giving && <Give project={project} onClose={() => setGiving(false)} onDone={changed} />}
      {taken && (
        <ConfirmWithReason
          title={`Take ${taken.e164} back`}
          verb="Take back"
          onClose={() => setTaken(null)}
          onConfirm={async reason => {
            await ask('POST', `/operator/v1/numbers/${taken.id}/take-back`, {
              body: { reason },
              on: taken,
            })
            changed()
          }}
        >
          <Notice tone="warn">It stops ringing at once, and is quarantined for 30 days.</Notice>
        </ConfirmWithReason>
      )}
    </div>
  )
}

function Give({ project, onClose, onDone }: { project: OperatorProject; onClose: () => void; onDone: () => void }) {
  const [prefix, setPrefix] = useState('')
  const asked = new URLSearchParams({ status: 'available', limit: '200', ...digitsAsked(prefix) })
  const of = useData<FreeNumbers>(`/operator/v1/numbers?${asked}`)
  const [chosen, setChosen] = useState('')
  const action = useAction()
  const give = async () => {
    const number = of.data?.data.find(({ id }) => id === chosen) ?? of.data?.data[0]
    if (!number) return
    const body = { project_id: project.id }
    const path = `/operator/v1/numbers/${number.id}/assign`
    if (await action.run(() => ask('POST', path, { body, on: number }))) onDone()
  }
  return (
    <Dialog title={`Give ${project.name} a number`} onClose={onClose}>
      <PrefixField
        value={prefix}
        onInput={setPrefix}
        hint={of.data?.next_cursor == null ? undefined : 'There are more free numbers than the list has.'}
      />
      <Loaded of={of}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty
              title={prefix === '' ? 'No number is free' : 'No free number begins so'}
              action={<a href={hrefOf('/operator/numbers')}>Add numbers to the stock</a>}
            />
          ) : (
            <Form onSubmit={() => void give()} submit="Give" busy={action.busy} problem={action.problem}>
              <SelectField
                label="Number"
                value={chosen}
                onInput={setChosen}
                options={data.map(row => ({
                  value: row.id,
                  text: row.monthly_minor === 0 ? row.e164 : `${row.e164} · ${money(row.monthly_minor)} a month`,
                }))}
              />
            </Form>
          )
        }
      </Loaded>
    </Dialog>
  )
}

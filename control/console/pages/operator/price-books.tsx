import { useState } from 'preact/hooks'
import { counted } from '../../../../core/domain/text/counted.ts'
import { readBytes } from '../../lib/api.ts'
import type { OperatorPriceBook, OperatorProject, OperatorRate } from '../../lib/api-types.ts'
import { useAction, useAll, useData, usePages } from '../../lib/data.ts'
import { count, when, words } from '../../lib/format.ts'
import { hrefOf, type PageProps } from '../../lib/router.ts'
import { saveAs } from '../../lib/save-as.ts'
import { Badge, Button, Card, Empty, Id, Loaded, PageHead, ProblemBox } from '../../ui/basics.tsx'
import { Listed, LongTable, Table } from '../../ui/table.tsx'
import { ImportRates } from './price-import.tsx'

const keyOf = (row: OperatorPriceBook) => row.id

/** What customers pay: the price books, newest first of each kind. */
export function PriceBooks() {
  const of = usePages<OperatorPriceBook>('/operator/v1/price-books?limit=100', { key: keyOf })
  const projects = useAll<OperatorProject>('/operator/v1/projects?limit=200')
  const [importing, setImporting] = useState(false)
  const names = new Map(projects.map(({ id, name }) => [id, name]))
  const forWhom = (row: OperatorPriceBook) =>
    row.project_id === null ? 'every project' : (names.get(row.project_id) ?? row.project_id)
  const create = (
    <Button kind="main-one" icon="plus" onClick={() => setImporting(true)}>
      Import a rate list
    </Button>
  )
  return (
    <>
      <PageHead
        title="Price books"
        sub="What customers pay. A book is never changed: a newer one takes over."
        actions={create}
      />
      <ProblemBox problem={of.problem} />
      <Card flush>
        <Listed
          of={of}
          more="More price books"
          none={<Empty title="No price book yet" action={create} api="bin/strowger rates import --help" />}
        >
          <Table
            label="Price books"
            rows={of.rows}
            keyOf={keyOf}
            hrefOf={row => hrefOf(`/operator/rates/${row.id}`)}
            columns={[
              { title: 'Name', cell: row => row.name },
              { title: 'For', cell: forWhom },
              { title: 'Direction', cell: row => words(row.direction), wide: true },
              { title: 'Prices', cell: row => count(row.rates), right: true },
              { title: 'From', cell: row => <From at={row.effective_from} /> },
            ]}
          />
        </Listed>
      </Card>
      {importing && (
        <ImportRates
          projects={projects}
          onClose={() => setImporting(false)}
          onImported={() => {
            setImporting(false)
            of.reload()
          }}
        />
      )}
    </>
  )
}

const From = ({ at }: { at: string }) =>
  Date.parse(at) > Date.now() ? (
    <span class="row">
      <Badge tone="note">Later</Badge> {when(at)}
    </span>
  ) : (
    <span>{when(at)}</span>
  )

const rateKey = (row: OperatorRate) => row.prefix
const MICRO = 1_000_000
const rate = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 })

export function PriceBookPage({ params }: PageProps) {
  const path = `/operator/v1/price-books/${params['id']}`
  const of = useData<OperatorPriceBook>(path)
  const rates = usePages<OperatorRate>(`${path}/rates?limit=500`, { key: rateKey })
  const action = useAction()
  const download = (name: string) =>
    action.run(async () =>
      saveAs(
        new Blob([await readBytes(`${path}/export`)], { type: 'text/csv' }),
        `${name.replaceAll(/\W+/g, '-')}.csv`,
      ),
    )
  const back = { href: hrefOf('/operator/rates'), text: 'Price books' }
  return (
    <Loaded of={of} page={{ title: 'Price book', back }}>
      {book => (
        <>
          <PageHead
            title={book.name}
            back={back}
            badges={<Badge>{words(book.direction)}</Badge>}
            sub={
              <>
                <Id value={book.id} /> · {book.currency} · from {when(book.effective_from)}
              </>
            }
            actions={
              <Button icon="download" disabled={action.busy} onClick={() => void download(book.name)}>
                CSV
              </Button>
            }
          />
          <ProblemBox problem={action.problem ?? rates.problem} />
          <Card flush>
            <LongTable
              label="Prices"
              rows={rates.rows}
              keyOf={rateKey}
              more={rates.more}
              onNearEnd={rates.loadMore}
              columns={[
                {
                  title: 'Prefix',
                  cell: row => <span class="mono">{row.prefix === '' ? 'any' : `+${row.prefix}`}</span>,
                },
                { title: 'Destination', cell: row => row.label },
                {
                  title: 'Price',
                  cell: row => `₦${rate.format(row.rate_micro / MICRO / 100)} a ${row.rate_unit}`,
                  right: true,
                },
                {
                  title: 'Counted',
                  cell: row => `${row.increment_initial_seconds}/${row.increment_additional_seconds} s`,
                  right: true,
                  wide: true,
                },
              ]}
            />
            <div class="table-foot">{counted(book.rates, 'price')}</div>
          </Card>
        </>
      )}
    </Loaded>
  )
}

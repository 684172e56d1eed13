import { useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { ask } from '../lib/api.ts'
import type { AdmissionDryRun, Containment, DestinationCountry, Rate, RateLookup } from '../lib/api-types.ts'
import { minuteRateOf, type RatedCountry } from '../lib/country-rates.ts'
import { useAction, useData } from '../lib/data.ts'
import { count, duration, money, words } from '../lib/format.ts'
import { hrefOf, type PageProps, query, setQuery } from '../lib/router.ts'
import { inSandbox, may, projectId } from '../lib/session.ts'
import type { ListOf, PhoneNumber, TrunkSummary } from '../lib/types.ts'
import { Badge, Card, Empty, Facts, Loaded, Notice, PageHead, ProblemBox, Tabs } from '../ui/basics.tsx'
import { Form, SelectField, TextField } from '../ui/form.tsx'
import { Lazy, lazy } from '../ui/lazy.tsx'
import { LongTable, Table } from '../ui/table.tsx'
import { Trace } from './decision.tsx'

const TABS = [
  ['', 'Where calls may go', () => may('service_configuration:read')],
  ['tester', 'Rule tester', () => may('call_diagnostics:read')],
  ['rates', 'Rates', () => may('billing:read')],
] as const

export function Destinations({ params }: PageProps) {
  const shown = TABS.filter(([, , show]) => show())
  const tab = params['tab'] ?? shown[0]?.[0] ?? ''
  return (
    <>
      <PageHead
        title="Destinations and rates"
        sub="Which destinations can be called, what they cost, and what would happen to a call."
      />
      <Tabs
        items={shown.map(([id, text]) => ({ id, text, href: hrefOf(`/destinations${id === '' ? '' : `/${id}`}`) }))}
        current={tab}
      />
      {inSandbox.value && (
        <Notice title="This project is in the sandbox">
          Its calls reach the sandbox carrier whatever they cost, and nothing is billed. What this page says holds once
          the project is live.
        </Notice>
      )}
      {tab === '' && <Countries />}
      {tab === 'tester' && <Tester />}
      {tab === 'rates' && <Rates />}
    </>
  )
}

const CONTINENTS = ['africa', 'americas', 'asia', 'europe', 'oceania']
/** The shapes of the countries are loaded with the map alone. */
const MAP = lazy(async () => (await import('./world-map.tsx')).WorldMap)

/** The price of a minute as the map and the list write it. */
function minuteText(rate: RatedCountry['rate']): string {
  if (rate === null) return 'not covered'
  const { low_minor, high_minor } = rate
  return low_minor === high_minor ? money(low_minor) : `${money(low_minor)} – ${money(high_minor)}`
}

const perUnit = (rate: Rate) => `${money(rate.rate_minor)} a ${rate.rate_unit}`

function Countries() {
  const countries = useData<ListOf<DestinationCountry>>('/v1/destination-countries')
  const coverage = useData<ListOf<Rate>>(may('billing:read') ? '/v1/rates/coverage?direction=outbound' : null)
  const [filter, setFilter] = useState('')
  const rates = coverage.data?.data ?? null
  return (
    <Loaded of={countries}>
      {({ data }) => {
        const isWanted = ({ name, iso_code, calling_code }: DestinationCountry): boolean =>
          `${name} ${iso_code} +${calling_code}`.toLowerCase().includes(filter.toLowerCase())
        const rated = data.map(country => ({ country, rate: rates && minuteRateOf(country, rates) }))
        const wanted = rated.filter(({ country }) => isWanted(country))
        return (
          <>
            {rates && (
              <Card title="What a minute costs" hint="Choose a country to find it in the list.">
                <Lazy
                  of={MAP}
                  countries={rated}
                  wanted={isWanted}
                  textOf={minuteText}
                  onPick={({ name }) => setFilter(name)}
                />
              </Card>
            )}
            <div class="filters">
              <TextField label="Country or code" type="search" value={filter} onInput={setFilter} />
            </div>
            <ProblemBox problem={coverage.problem} />
            {wanted.length === 0 && <Empty title="No country fits">Take letters away to see more.</Empty>}
            <div class="columns">
              {CONTINENTS.map(continent => {
                const rows = wanted.filter(({ country }) => country.continent === continent)
                return rows.length === 0 ? null : (
                  <Card
                    key={continent}
                    title={words(continent)}
                    hint={counted(rows.length, 'country', 'countries')}
                    flush
                  >
                    <LongTable
                      label={words(continent)}
                      rows={rows}
                      keyOf={({ country }) => country.iso_code}
                      more={false}
                      onNearEnd={() => undefined}
                      columns={[
                        { title: 'Country', cell: ({ country }) => country.name, width: '46%' },
                        {
                          title: 'Code',
                          cell: ({ country }) => `+${country.calling_code}${country.shared_code ? ' (shared)' : ''}`,
                        },
                        ...(rates === null
                          ? []
                          : [
                              {
                                title: 'A minute',
                                cell: ({ rate }: RatedCountry) => minuteText(rate),
                                right: true,
                              },
                            ]),
                      ]}
                    />
                  </Card>
                )
              })}
            </div>
          </>
        )
      }}
    </Loaded>
  )
}

function Tester() {
  const trunks = useData<ListOf<TrunkSummary>>('/v1/trunks')
  const numbers = useData<ListOf<PhoneNumber>>('/v1/numbers?limit=200')
  const [called, setCalled] = useState('+2348030000001')
  const [caller, setCaller] = useState('')
  const [service, setService] = useState('automation')
  const [verdict, setVerdict] = useState<AdmissionDryRun | null>(null)
  const action = useAction()
  const from = caller || (numbers.data?.data[0]?.e164 ?? '')
  const test = () =>
    action.run(async () => {
      const body = {
        service_type: service === 'automation' ? 'automation' : 'trunk',
        service_id: service === 'automation' ? projectId.value : service,
        called,
        caller: from,
      }
      setVerdict(await ask<AdmissionDryRun>('POST', '/v1/admission/dry-run', { body }))
    })
  return (
    <div class="columns">
      <Card title="A call that is not made" hint="Decided by the same rules as a real one; nothing is taken.">
        <ProblemBox problem={trunks.problem ?? numbers.problem} />
        <Form
          onSubmit={() => void test()}
          submit="What would happen?"
          busy={action.busy}
          problem={action.problem}
          fields={['/called', '/caller', '/service_id']}
        >
          <TextField
            label="Called number"
            type="tel"
            value={called}
            onInput={setCalled}
            problem={action.problem}
            at="/called"
            required
          />
          <TextField
            label="Calling number"
            type="tel"
            value={from}
            onInput={setCaller}
            problem={action.problem}
            at="/caller"
            required
          />
          <SelectField
            label="Made by"
            value={service}
            onInput={setService}
            options={[
              { value: 'automation', text: 'The API' },
              ...(trunks.data?.data ?? []).map(({ id, name }) => ({ value: id, text: `Trunk ${name}` })),
            ]}
            problem={action.problem}
            at="/service_id"
          />
        </Form>
      </Card>
      {verdict && <Verdict of={verdict} />}
    </div>
  )
}

const Verdict = ({ of: verdict }: { of: AdmissionDryRun }) => (
  <Card
    title="Verdict"
    actions={<Badge tone={verdict.admitted ? 'good' : 'bad'}>{verdict.admitted ? 'Admitted' : 'Refused'}</Badge>}
  >
    {verdict.sentence && <Notice tone="bad">{verdict.sentence}</Notice>}
    <Facts
      rows={[
        ['Called', verdict.called ?? '–'],
        ...priceFacts(verdict.price),
        verdict.admitted ? ['Longest', duration(verdict.max_duration_seconds)] : null,
        verdict.admitted ? ['Reserved at first', money(verdict.reserve_minor)] : null,
      ]}
    />
    <Trace findings={verdict.trace} />
  </Card>
)

const priceFacts = (price: Rate | null): readonly (readonly [string, string])[] =>
  price === null
    ? []
    : [
        ['Rate', `${perUnit(price)} (${price.label} ${price.match})`],
        ['Counted in', `${price.increment_initial_seconds} s, then ${price.increment_additional_seconds} s`],
      ]

function Rates() {
  const direction = query.value.get('direction') ?? 'outbound'
  const coverage = useData<ListOf<Rate> & { effective_from: string | null }>(
    `/v1/rates/coverage?direction=${direction}`,
  )
  const [number, setNumber] = useState('')
  const [asked, setAsked] = useState('')
  const found = useData<RateLookup>(
    asked === '' ? null : `/v1/rates/lookup?destination=${encodeURIComponent(asked)}&direction=${direction}`,
  )
  return (
    <>
      <Card title="What a number costs">
        <Form onSubmit={() => setAsked(number)} submit="Look up" problem={found.problem}>
          <div class="grid-2">
            <TextField
              label="Number"
              type="tel"
              value={number}
              placeholder="+2348012345678"
              onInput={value => setNumber(value.trim())}
              required
            />
            <SelectField
              label="Direction"
              value={direction}
              onInput={value => setQuery({ direction: value })}
              options={[
                { value: 'outbound', text: 'Outbound' },
                { value: 'inbound', text: 'Inbound' },
              ]}
            />
          </div>
        </Form>
        {found.data && (
          <Notice tone={found.data.covered ? 'good' : 'bad'} title={found.data.destination_number}>
            {found.data.rate
              ? `${perUnit(found.data.rate)}: ${found.data.rate.label} ${found.data.rate.match}, counted in ${found.data.rate.increment_initial_seconds} s, then ${found.data.rate.increment_additional_seconds} s. Price book ${found.data.price_book?.name ?? ''}.`
              : `Not covered: ${words(found.data.gap ?? 'no rate')}.`}
            {found.data.containment &&
              ` Contained: ${found.data.containment.prefix} (${found.data.containment.case_ref}).`}
          </Notice>
        )}
      </Card>
      <Loaded of={coverage}>
        {({ data }) => (
          <Card title="Rates in force" flush>
            {data.length === 0 ? (
              <Empty title="No destination is covered" api="bin/strowger rates import rates.csv">
                The operator imports a price book.
              </Empty>
            ) : (
              <>
                <LongTable
                  label="Rates in force"
                  rows={data}
                  keyOf={rate => rate.match}
                  more={false}
                  onNearEnd={() => undefined}
                  columns={[
                    { title: 'Destination', cell: rate => rate.label },
                    { title: 'Prefix', cell: rate => <span class="mono">{rate.match}</span> },
                    { title: 'Rate', cell: perUnit, right: true },
                    { title: 'First', cell: rate => `${rate.increment_initial_seconds} s`, right: true, wide: true },
                    { title: 'Then', cell: rate => `${rate.increment_additional_seconds} s`, right: true, wide: true },
                  ]}
                />
                <div class="table-foot">{counted(data.length, 'destination')}</div>
              </>
            )}
          </Card>
        )}
      </Loaded>
      <ContainedNow />
    </>
  )
}

function ContainedNow() {
  const of = useData<ListOf<Containment>>(may('service_configuration:read') ? '/v1/containments?open=true' : null)
  const rows = of.data?.data ?? []
  if (rows.length === 0) return null
  return (
    <Card title="Contained at the moment" flush>
      <Table
        label="Contained at the moment"
        rows={rows}
        keyOf={row => row.id}
        hrefOf={() => hrefOf('/alerts/containments')}
        columns={[
          { title: 'Prefix', cell: row => row.prefix },
          { title: 'Trunk', cell: row => row.trunk_name ?? 'all' },
          { title: 'Refused calls', cell: row => count(row.rejection_count), right: true },
          { title: 'Case', cell: row => row.case_ref, wide: true },
        ]}
      />
    </Card>
  )
}

import { useEffect } from 'preact/hooks'
import { type Data, useData } from '../lib/data.ts'
import { duration, money, words } from '../lib/format.ts'
import { onLive } from '../lib/live.ts'
import { hrefOf, type PageProps } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import { noTargetAnswers } from '../lib/targets.ts'
import type { Trunk } from '../lib/types.ts'
import { ApplyBadge } from '../ui/apply.tsx'
import {
  Badge,
  Card,
  Empty,
  Facts,
  Id,
  Loaded,
  Meter,
  NotForRole,
  Notice,
  PageHead,
  Status,
  Tabs,
  Time,
} from '../ui/basics.tsx'
import { Table } from '../ui/table.tsx'
import { Board } from './board.tsx'
import { PbxConfigurations } from './pbx.tsx'
import { Revisions } from './revisions.tsx'
import { TrunkAccess } from './trunk-access.tsx'
import { TrunkNumbers } from './trunk-numbers.tsx'
import { TrunkQuality } from './trunk-quality.tsx'
import { TrunkSettings } from './trunk-settings.tsx'
import { TrunkTests } from './trunk-tests.tsx'

const TABS = [
  ['', 'Overview', 'service_configuration:read'],
  ['access', 'Access and targets', 'service_configuration:read'],
  ['numbers', 'Numbers and subtrunks', 'service_configuration:read'],
  ['tests', 'Tests', 'tests:manage'],
  ['quality', 'Figures', 'call_diagnostics:read'],
  ['connect', 'PBX configuration', 'service_configuration:read'],
  ['revisions', 'Revisions', 'audit:read'],
  ['settings', 'Settings', 'service_configuration:write'],
] as const

export function TrunkPage({ params }: PageProps) {
  const id = params['id'] ?? ''
  const tab = params['tab'] ?? ''
  const of = useData<Trunk>(`/v1/trunks/${id}`, { poll_ms: 5000 })
  const { reload } = of
  useEffect(() => onLive(event => event.type === 'trunk_apply' && event['trunk_id'] === id && reload()), [id, reload])
  // Poll quickly while a change applies: it takes less than a second.
  const applying = of.data?.apply.state === 'applying'
  useEffect(() => {
    if (!applying) return
    const timer = setInterval(reload, 700)
    return () => clearInterval(timer)
  }, [applying, reload])

  const back = { href: hrefOf('/trunks'), text: 'Trunks' }
  return (
    <Loaded of={of} page={{ title: 'Trunk', back }}>
      {trunk => (
        <>
          <PageHead
            title={trunk.name}
            back={back}
            badges={
              <>
                <Status of={trunk.status} />
                {noTargetAnswers(trunk) && <Badge tone="bad">No target answers</Badge>}
                <ApplyBadge apply={trunk.apply} />
              </>
            }
            sub={<Id value={trunk.id} what="the trunk's id" />}
          />
          <Tabs
            items={TABS.filter(([, , scope]) => may(scope)).map(([name, text]) => ({
              id: name,
              text,
              href: hrefOf(`/trunks/${id}${name === '' ? '' : `/${name}`}`),
            }))}
            current={tab}
          />
          {trunk.apply.error && (
            <Notice tone="bad" title="The last change could not be applied">
              {trunk.apply.error}
            </Notice>
          )}
          {noTargetAnswers(trunk) && (
            <Notice tone="bad" title="No target of this trunk answers">
              Calls to it are still tried, and fail while that lasts.
            </Notice>
          )}
          {tabOf(tab, trunk, of)}
        </>
      )}
    </Loaded>
  )
}

function tabOf(tab: string, trunk: Trunk, of: Data<Trunk>) {
  if (TABS.some(([name, , scope]) => name === tab && !may(scope))) return <NotForRole />
  if (tab === 'access') return <TrunkAccess trunk={trunk} of={of} />
  if (tab === 'numbers') return <TrunkNumbers trunk={trunk} of={of} />
  if (tab === 'tests') return <TrunkTests trunk={trunk} of={of} />
  if (tab === 'quality') return <TrunkQuality trunk={trunk} of={of} />
  if (tab === 'connect') return <PbxConfigurations trunk={trunk} password={null} />
  if (tab === 'revisions') return <Revisions trunk_id={trunk.id} />
  if (tab === 'settings') return <TrunkSettings trunk={trunk} of={of} />
  if (tab === '') return <OverviewTab trunk={trunk} />
  return <Empty title="There is no such part of a trunk" />
}

const OverviewTab = ({ trunk }: { trunk: Trunk }) => (
  <>
    {may('call_diagnostics:read') && <Board of={{ trunk_id: trunk.id }} />}
    <Endpoints of={trunk.endpoint_evidence} />
    <div class="columns">
      <CeilingsInUse trunk={trunk} />
      <Settings trunk={trunk} />
    </div>
  </>
)

const Endpoints = ({ of }: { of: Trunk['endpoint_evidence'] }) => (
  <Card title="Endpoints" hint="What the platform last heard from each target." flush>
    {of.length === 0 ? (
      <Empty title="No target">
        Calls to this trunk's numbers ring the PBX that is registered with its user and password. Add a target if the
        PBX does not register.
      </Empty>
    ) : (
      <Table
        label="Endpoints"
        rows={of}
        keyOf={row => row.sip_uri}
        columns={[
          { title: 'Target', cell: row => <span class="mono">{row.sip_uri}</span> },
          { title: 'State', cell: row => <Status of={row.state} /> },
          { title: 'Last answer', cell: row => (row.last_result ? words(String(row.last_result.code)) : '–') },
          { title: 'Asked', cell: row => <Time at={row.last_attempt_at} /> },
          { title: 'In words', cell: row => <span class="muted small">{row.detail}</span>, wide: true },
        ]}
      />
    )}
  </Card>
)

const CeilingsInUse = ({ trunk }: { trunk: Trunk }) => (
  <Card title="Ceilings in use">
    <Meter name="Calls at once" used={trunk.concurrency_used} limit={trunk.limits.concurrency.configured} />
    <Facts
      rows={[
        ['Most calls per second', trunk.limits.cps.configured],
        ['Longest call', duration(trunk.limits.max_call_duration.configured)],
        ['Daily spend', trunk.daily_spend_cap_minor === null ? 'no ceiling' : money(trunk.daily_spend_cap_minor)],
        [
          'Highest rate',
          trunk.max_destination_rate_minor === null
            ? 'no ceiling'
            : `${money(trunk.max_destination_rate_minor)} a minute`,
        ],
        [
          'Outbound policy',
          trunk.outbound_policy ? (
            <a href={hrefOf(`/policies/${trunk.outbound_policy.id}`)}>{trunk.outbound_policy.name}</a>
          ) : (
            'none'
          ),
        ],
      ]}
    />
  </Card>
)

const Settings = ({ trunk }: { trunk: Trunk }) => (
  <Card title="Settings">
    <Facts
      rows={[
        ['Direction', words(trunk.direction)],
        ['Authentication', trunk.authentication.mode === 'digest' ? 'User and password' : 'IP address'],
        ['Only over TLS', trunk.authentication.require_tls ? 'yes' : 'no'],
        ['Source check', words(trunk.authentication.source_validation)],
        ['Codecs', trunk.media.codecs.join(', ')],
        ['Media', trunk.media.security === 'rtp' ? 'RTP' : 'SRTP required'],
        ['SIP name', trunk.signaling_fqdn ? <Id value={trunk.signaling_fqdn} what="the SIP name" /> : '–'],
        ['Subaccount', trunk.subaccount_name ?? 'none'],
        ['Applied', <Time key="t" at={trunk.apply.applied_at} />],
      ]}
    />
  </Card>
)

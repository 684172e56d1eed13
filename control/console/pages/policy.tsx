import { useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { ask } from '../lib/api.ts'
import type { PolicyAttachment } from '../lib/api-types.ts'
import { type Data, useAction, useData } from '../lib/data.ts'
import { count, money, when, words } from '../lib/format.ts'
import { hoursText } from '../lib/hours-text.ts'
import { go, hrefOf, type PageProps } from '../lib/router.ts'
import { hasRole, may } from '../lib/session.ts'
import type { ListOf, Policy } from '../lib/types.ts'
import {
  Button,
  Card,
  Empty,
  Facts,
  Id,
  Loaded,
  Meter,
  NoRows,
  Notice,
  PageHead,
  ProblemBox,
  Status,
  Time,
} from '../ui/basics.tsx'
import { ConfirmByName } from '../ui/dialog.tsx'
import { Form } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import { POLICY_FIELDS, PolicyFields, type PolicyForm, policyBody } from './policies.tsx'
import { PolicyRules } from './policy-rules.tsx'

export function PolicyPage({ params }: PageProps) {
  const path = `/v1/outbound-policies/${params['id']}`
  const of = useData<Policy>(path, { poll_ms: 5000 })
  const attachments = useData<ListOf<PolicyAttachment>>(`${path}/attachments`, { poll_ms: 5000 })
  const [deleting, setDeleting] = useState(false)
  const write = may('service_configuration:write')
  const back = { href: hrefOf('/policies'), text: 'Outbound policies' }
  return (
    <Loaded of={of} page={{ title: 'Outbound policy', back }}>
      {policy => (
        <>
          <PageHead
            title={policy.name}
            back={back}
            badges={<Status of={policy.status} />}
            sub={<Id value={policy.id} />}
            actions={
              write &&
              !policy.system_default && (
                <Button kind="danger" onClick={() => setDeleting(true)}>
                  Delete
                </Button>
              )
            }
          />
          <div class="columns">
            <InUse policy={policy} />
            <RecordingConsent policy={policy} onChanged={of.reload} />
          </div>
          <PolicyRules policy={policy} path={path} onSaved={of.set} />
          <Services of={attachments} />
          {write && <Edit key={policy.revision} policy={policy} path={path} onSaved={of.set} />}
          {deleting && <Delete policy={policy} path={path} onClose={() => setDeleting(false)} />}
        </>
      )}
    </Loaded>
  )
}

const InUse = ({ policy: { ceilings, revision, created_at, created_by } }: { policy: Policy }) => (
  <Card title="In use today">
    <Meter
      name="Spend"
      used={ceilings.daily_spend.used_today_minor}
      limit={ceilings.daily_spend.configured_minor}
      show={money}
    />
    <Facts
      rows={[
        ['Begins anew', <Time key="t" at={ceilings.daily_spend.resets_at} />],
        ['Revision', revision],
        ['Made', `${when(created_at)}${created_by ? ` by ${created_by}` : ''}`],
      ]}
    />
  </Card>
)

function Services({ of }: { of: Data<ListOf<PolicyAttachment>> }) {
  const rows = of.data?.data ?? []
  return (
    <Card title="Services that use it" flush>
      {rows.length === 0 ? (
        <NoRows of={of}>
          <Empty title="Nothing uses it yet">Choose it in the settings of a trunk.</Empty>
        </NoRows>
      ) : (
        <Table
          label="Services that use it"
          rows={rows}
          keyOf={row => row.id}
          columns={[
            {
              title: 'Service',
              cell: row =>
                row.service_type === 'trunk' ? (
                  <a href={hrefOf(`/trunks/${row.service_id}`)}>{row.service_name}</a>
                ) : (
                  row.service_name
                ),
            },
            { title: 'Kind', cell: row => words(row.service_type) },
            { title: 'State', cell: row => <Status of={row.apply_state} /> },
            { title: 'Calls now', cell: row => count(row.calls_in_flight), right: true },
            { title: 'Applied', cell: row => <Time at={row.applied_at} />, wide: true },
          ]}
        />
      )}
    </Card>
  )
}

const Delete = ({ policy, path, onClose }: { policy: Policy; path: string; onClose: () => void }) => (
  <ConfirmByName
    title="Delete the policy"
    name={policy.name}
    verb="Detach and delete"
    onClose={onClose}
    onConfirm={async () => {
      await ask('DELETE', `${path}?detach=true`)
      go('/policies')
    }}
  >
    <Notice tone="bad">
      It is detached from {counted(policy.attached_services, 'service')}, whose calls then have only their own ceilings.
    </Notice>
  </ConfirmByName>
)

function Edit({ policy, path, onSaved }: { policy: Policy; path: string; onSaved: (value: Policy) => void }) {
  const { ceilings, recording } = policy
  const [form, setForm] = useState<PolicyForm>({
    name: policy.name,
    calling_hours: hoursText(policy.calling_hours),
    recording_mode: recording.mode,
    recording_retention_days: recording.retention_days,
    concurrency: ceilings.concurrency.configured,
    cps: ceilings.cps.configured,
    daily_spend_limit_minor: ceilings.daily_spend.configured_minor,
    max_call_duration_seconds: ceilings.max_call_duration.configured,
    max_destination_rate_minor: ceilings.max_destination_rate.configured_minor,
  })
  const action = useAction()
  const save = () =>
    action.run(async () => {
      onSaved(await ask<Policy>('PATCH', path, { body: policyBody(form), on: policy }))
      toast('Saved; applying to every service that uses it')
    })
  return (
    <Card title="Ceilings and recording">
      <Form
        onSubmit={() => void save()}
        submit="Save and apply"
        busy={action.busy}
        problem={action.problem}
        fields={POLICY_FIELDS}
      >
        <PolicyFields form={form} set={changes => setForm({ ...form, ...changes })} action={action} />
      </Form>
    </Card>
  )
}

function RecordingConsent({ policy, onChanged }: { policy: Policy; onChanged: () => void }) {
  const action = useAction()
  const { consent, mode, applied } = policy.recording
  const accept = () =>
    action.run(async () => {
      await ask('POST', '/recording-consent', { body: { terms_version: consent.terms_version } })
      onChanged()
    })
  return (
    <Card title="Recording consent">
      {consent.accepted ? (
        <p>
          Accepted by {consent.accepted_by} <Time at={consent.accepted_at} />, terms {consent.terms_version}.{' '}
          {mode === 'all'
            ? applied
              ? 'All calls are recorded.'
              : 'Recording is being applied.'
            : 'This policy records nothing.'}
        </p>
      ) : (
        <>
          <Notice tone="warn">
            Nothing is recorded before an admin confirms that callers are told of the recording, as the law of their
            country asks. Terms {consent.terms_version}.
          </Notice>
          {hasRole('org:admin') ? (
            <div>
              <Button onClick={() => void accept()} disabled={action.busy}>
                I confirm; accept the terms
              </Button>
            </div>
          ) : (
            <p class="muted">An admin can accept them.</p>
          )}
        </>
      )}
      <ProblemBox problem={action.problem} />
    </Card>
  )
}

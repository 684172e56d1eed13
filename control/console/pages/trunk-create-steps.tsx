import { counted } from '../../../core/domain/text/counted.ts'
import { linesOf, wrongSipUri, wrongSources } from '../lib/checks.ts'
import { useData } from '../lib/data.ts'
import { AUTHENTICATIONS, CODECS, DIRECTIONS, MEDIA_SECURITIES, SOURCE_CHECKS } from '../lib/trunk-choices.ts'
import type { TargetDraft, TrunkDraft } from '../lib/trunk-draft.ts'
import type { ListOf, NumberBlock, PolicySummary } from '../lib/types.ts'
import { Button, Facts } from '../ui/basics.tsx'
import { AreaField, CheckField, Chips, Choices, NumberField, SelectField, TextField } from '../ui/form.tsx'
import { CeilingFields } from './trunk-fields.tsx'

interface StepProps {
  readonly draft: TrunkDraft
  readonly set: (changes: Partial<TrunkDraft>) => void
  readonly at: (pointer: string) => string | null
}

export const NameStep = ({ draft, set, at }: StepProps) => (
  <>
    <TextField
      label="Name"
      value={draft.name}
      onInput={name => set({ name })}
      wrong={at('/name')}
      hint="What you call the PBX or the site, such as “Lagos head office”."
      autoFocus
      required
    />
    <Choices
      legend="Direction"
      value={draft.direction}
      onInput={direction => set({ direction })}
      options={DIRECTIONS}
    />
  </>
)

export const AuthenticationStep = ({ draft, set, at }: StepProps) => (
  <>
    <Choices
      legend="How the PBX proves who it is"
      value={draft.auth_mode}
      onInput={auth_mode => set({ auth_mode })}
      options={AUTHENTICATIONS}
    />
    <AreaField
      label={draft.auth_mode === 'digest' ? 'Addresses it may come from (may stay empty)' : 'Addresses it comes from'}
      value={draft.sources}
      onInput={sources => set({ sources })}
      mono
      rows={3}
      placeholder={'203.0.113.10\n198.51.100.0/24'}
      hint="One address or network a line."
      wrong={wrongSources(draft.sources) ?? at('/sources')}
    />
    <Choices
      legend="Source check"
      value={draft.source_validation}
      onInput={source_validation => set({ source_validation })}
      options={SOURCE_CHECKS}
    />
    <CheckField
      label="Only over TLS"
      hint="Calls that come over UDP or TCP are refused."
      checked={draft.require_tls}
      onInput={require_tls => set({ require_tls })}
    />
  </>
)

export function TargetsStep({ draft, set, at }: StepProps) {
  const change = (index: number, changes: Partial<TargetDraft>) =>
    set({ targets: draft.targets.map((target, place) => (place === index ? { ...target, ...changes } : target)) })
  return (
    <>
      <p class="muted">
        Calls to your numbers are delivered to these addresses, the lowest priority first; equal priorities share by
        weight. A PBX that registers needs none.
      </p>
      {draft.targets.map((target, index) => (
        <div class="grid-2" key={index}>
          <TextField
            label={`Target ${index + 1}`}
            mono
            value={target.sip_uri}
            placeholder="sip:pbx.example.com:5060"
            onInput={sip_uri => change(index, { sip_uri })}
            wrong={wrongSipUri(target.sip_uri, target.transport) ?? at(`/targets/${index}`)}
            required
          />
          <SelectField
            label="Transport"
            value={target.transport}
            onInput={transport => change(index, { transport: transport as TargetDraft['transport'] })}
            options={[
              { value: 'udp', text: 'UDP' },
              { value: 'tcp', text: 'TCP' },
              { value: 'tls', text: 'TLS' },
            ]}
          />
          <NumberField
            label="Priority"
            value={target.priority}
            onInput={value => change(index, { priority: value ?? 0 })}
          />
          <NumberField label="Weight" value={target.weight} onInput={value => change(index, { weight: value ?? 0 })} />
          <div>
            <Button
              kind="quiet"
              icon="cross"
              onClick={() => set({ targets: draft.targets.filter((_, place) => place !== index) })}
            >
              Remove target {index + 1}
            </Button>
          </div>
        </div>
      ))}
      <div>
        <Button
          icon="plus"
          onClick={() =>
            set({ targets: [...draft.targets, { sip_uri: '', transport: 'udp', priority: 10, weight: 100 }] })
          }
        >
          Add a target
        </Button>
      </div>
    </>
  )
}

export function MediaStep({ draft, set, at }: StepProps) {
  const policies = useData<ListOf<PolicySummary>>('/v1/outbound-policies')
  const blocks = useData<ListOf<NumberBlock>>('/v1/number-blocks')
  return (
    <>
      <Chips
        legend="Codecs, in the order you choose them"
        values={draft.codecs}
        onInput={codecs => set({ codecs })}
        options={CODECS}
        wrong={at('/codecs')}
      />
      <p class="muted small">Order: {draft.codecs.join(', ') || 'none'}</p>
      <Choices
        legend="Media security"
        value={draft.media_security}
        onInput={media_security => set({ media_security })}
        options={MEDIA_SECURITIES}
      />
      <CeilingFields of={draft} set={set} wrongAt={at} required />
      <SelectField
        label="Outbound policy"
        value={draft.outbound_policy_id}
        onInput={outbound_policy_id => set({ outbound_policy_id })}
        options={[
          { value: '', text: 'None' },
          ...(policies.data?.data ?? []).map(policy => ({ value: policy.id, text: policy.name })),
        ]}
        wrong={at('/outbound_policy_id')}
        hint="Spend caps, destinations and recording."
      />
      {(blocks.data?.data.length ?? 0) > 0 && (
        <Chips
          legend="Number blocks that ring this trunk"
          values={draft.number_block_ids}
          onInput={number_block_ids => set({ number_block_ids })}
          options={(blocks.data?.data ?? []).map(block => ({ value: block.id, text: `${block.start} – ${block.end}` }))}
          wrong={at('/number_block_ids')}
        />
      )}
    </>
  )
}

export const Review = ({ draft }: { draft: TrunkDraft }) => (
  <Facts
    rows={[
      ['Name', draft.name],
      ['Direction', draft.direction],
      ['Authentication', draft.auth_mode === 'digest' ? 'User and password' : 'IP address'],
      ['Addresses', linesOf(draft.sources).join(', ') || 'any'],
      ['Targets', draft.targets.map(target => target.sip_uri).join(', ') || 'none: calls ring the registered PBX'],
      ['Codecs', draft.codecs.join(', ')],
      ['Media', draft.media_security === 'rtp' ? 'RTP' : 'SRTP required'],
      [
        'Ceilings',
        `${counted(draft.concurrency ?? 0, 'call')} at once, ${draft.cps ?? 0} per second, ${draft.max_call_duration_seconds ?? 0} s each`,
      ],
    ]}
  />
)

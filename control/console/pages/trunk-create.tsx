import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import { linesOf, wrongSipUri, wrongSources } from '../lib/checks.ts'
import { useAction, useData } from '../lib/data.ts'
import { messagesAt } from '../lib/problem.ts'
import { hrefOf } from '../lib/router.ts'
import type { ListOf, NumberBlock, PolicySummary, Trunk } from '../lib/types.ts'
import { ApplyBadge } from '../ui/apply.tsx'
import { Button, Card, Facts, LinkButton, Loaded, Notice, PageHead, ProblemBox } from '../ui/basics.tsx'
import { SecretOnce } from '../ui/dialog.tsx'
import { AreaField, CheckField, Chips, Choices, NumberField, SelectField, TextField } from '../ui/form.tsx'
import { PbxConfigurations } from './pbx.tsx'

interface TargetDraft {
  readonly sip_uri: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly priority: number
  readonly weight: number
}

interface Draft {
  readonly name: string
  readonly direction: 'inbound' | 'outbound' | 'both'
  readonly auth_mode: 'ip_allow_list' | 'digest'
  readonly sources: string
  readonly source_validation: 'relaxed' | 'strict'
  readonly require_tls: boolean
  readonly targets: readonly TargetDraft[]
  readonly codecs: readonly string[]
  readonly media_security: 'rtp' | 'sdes_srtp_required'
  readonly concurrency: number | null
  readonly cps: number | null
  readonly max_call_duration_seconds: number | null
  readonly outbound_policy_id: string
  readonly number_block_ids: readonly string[]
}

const START: Draft = {
  name: '',
  direction: 'both',
  auth_mode: 'digest',
  sources: '',
  source_validation: 'relaxed',
  require_tls: false,
  targets: [],
  codecs: ['PCMA', 'PCMU'],
  media_security: 'rtp',
  concurrency: 30,
  cps: 5,
  max_call_duration_seconds: 14_400,
  outbound_policy_id: '',
  number_block_ids: [],
}

export const CODECS = ['PCMA', 'PCMU', 'G722', 'OPUS', 'G729'].map(value => ({ value, text: value }))

const STEPS = [
  'Name and direction',
  'Who may call',
  'Where calls go',
  'Media and ceilings',
  'Check and create',
] as const

interface Set {
  readonly draft: Draft
  readonly set: (changes: Partial<Draft>) => void
  readonly at: (pointer: string) => string | null
}

/** What keeps a step from being left, as far as the page can tell. */
function wrongIn(step: number, draft: Draft): string | null {
  if (step === 0) return draft.name.trim() === '' ? 'Give the trunk a name.' : null
  if (step === 1) {
    const wrong = wrongSources(draft.sources)
    if (wrong) return wrong
    return draft.auth_mode === 'ip_allow_list' && linesOf(draft.sources).length === 0
      ? 'An IP trunk needs at least one address.'
      : null
  }
  if (step === 2) {
    const bad = draft.targets.find(({ sip_uri, transport }) => sip_uri === '' || wrongSipUri(sip_uri, transport))
    return bad ? `The target “${bad.sip_uri}” is not right yet.` : null
  }
  if (step === 3) return draft.codecs.length === 0 ? 'Choose at least one codec.' : null
  return null
}

const requestOf = (draft: Draft) => ({
  name: draft.name.trim(),
  direction: draft.direction,
  auth_mode: draft.auth_mode,
  sources: linesOf(draft.sources),
  source_validation: draft.source_validation,
  require_tls: draft.require_tls,
  targets: draft.targets,
  codecs: draft.codecs,
  media_security: draft.media_security,
  limits: {
    concurrency: draft.concurrency ?? 0,
    cps: draft.cps ?? 0,
    max_call_duration_seconds: draft.max_call_duration_seconds ?? 0,
  },
  ...(draft.outbound_policy_id === '' ? {} : { outbound_policy_id: draft.outbound_policy_id }),
  ...(draft.number_block_ids.length === 0 ? {} : { number_block_ids: draft.number_block_ids }),
})

/** The step that holds the field of the first error the platform names. */
const STEP_OF: readonly (readonly [RegExp, number])[] = [
  [/^\/(name|direction)/, 0],
  [/^\/(auth_mode|sources|source_validation|require_tls)/, 1],
  [/^\/targets/, 2],
  [/^\/(codecs|media_security|limits|outbound_policy_id|number_block_ids)/, 3],
]

export function TrunkCreate() {
  const [draft, setDraft] = useState(START)
  const [step, setStep] = useState(0)
  const [tried, setTried] = useState(false)
  const [made, setMade] = useState<{ digest_password: string | null; trunk: Trunk } | null>(null)
  const action = useAction()
  const set = (changes: Partial<Draft>) => setDraft(before => ({ ...before, ...changes }))
  const at = (pointer: string) => messagesAt(action.problem, pointer)
  const wrong = wrongIn(step, draft)

  if (made) return <Created trunk={made.trunk} password={made.digest_password} />

  const next = async () => {
    if (wrong) return setTried(true)
    setTried(false)
    if (step < STEPS.length - 1) return setStep(step + 1)
    await action.run(async () => {
      setMade(await ask('POST', '/v1/trunks', { body: requestOf(draft) }))
    })
  }
  const firstWrong = action.problem?.errors?.[0]?.pointer
  const stepOfWrong = firstWrong === undefined ? undefined : STEP_OF.find(([pattern]) => pattern.test(firstWrong))?.[1]

  return (
    <>
      <PageHead title="Create a trunk" back={{ href: hrefOf('/trunks'), text: 'Trunks' }} />
      <ol class="steps" aria-label="Steps">
        {STEPS.map((name, index) => (
          <li key={name} class={index < step ? 'done' : ''} aria-current={index === step ? 'step' : undefined}>
            {name}
          </li>
        ))}
      </ol>
      <Card title={STEPS[step]}>
        <form
          onSubmit={event => {
            event.preventDefault()
            void next()
          }}
        >
          {step === 0 && <NameStep draft={draft} set={set} at={at} />}
          {step === 1 && <AuthenticationStep draft={draft} set={set} at={at} />}
          {step === 2 && <TargetsStep draft={draft} set={set} at={at} />}
          {step === 3 && <MediaStep draft={draft} set={set} at={at} />}
          {step === 4 && <Review draft={draft} />}
          {tried && wrong && <Notice tone="bad">{wrong}</Notice>}
          <ProblemBox problem={action.problem} />
          {stepOfWrong !== undefined && stepOfWrong !== step && (
            <div>
              <Button onClick={() => setStep(stepOfWrong)}>Go to “{STEPS[stepOfWrong]}”</Button>
            </div>
          )}
          <div class="actions">
            {step > 0 && <Button onClick={() => setStep(step - 1)}>Back</Button>}
            <Button type="submit" kind="main-one" disabled={action.busy}>
              {step < STEPS.length - 1 ? 'Continue' : action.busy ? 'One moment…' : 'Create the trunk'}
            </Button>
          </div>
        </form>
      </Card>
    </>
  )
}

const NameStep = ({ draft, set, at }: Set) => (
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
      options={[
        { value: 'both', text: 'Both', hint: 'The PBX makes and takes calls.' },
        { value: 'outbound', text: 'Outbound', hint: 'The PBX only makes calls.' },
        { value: 'inbound', text: 'Inbound', hint: 'The PBX only takes calls to your numbers.' },
      ]}
    />
  </>
)

const AuthenticationStep = ({ draft, set, at }: Set) => (
  <>
    <Choices
      legend="How the PBX proves who it is"
      value={draft.auth_mode}
      onInput={auth_mode => set({ auth_mode })}
      options={[
        {
          value: 'digest',
          text: 'User and password',
          hint: 'Digest. For a PBX that registers or has no fixed address. The password is made for you.',
        },
        { value: 'ip_allow_list', text: 'IP address', hint: 'For a PBX with a fixed public address.' },
      ]}
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
      options={[
        {
          value: 'relaxed',
          text: 'Relaxed',
          hint: 'Media may come from another port or address than signalled, as behind NAT.',
        },
        { value: 'strict', text: 'Strict', hint: 'Signalling and media only from the addresses above.' },
      ]}
    />
    <CheckField
      label="Only over TLS"
      hint="Calls that come over UDP or TCP are refused."
      checked={draft.require_tls}
      onInput={require_tls => set({ require_tls })}
    />
  </>
)

function TargetsStep({ draft, set, at }: Set) {
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

function MediaStep({ draft, set, at }: Set) {
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
        options={[
          { value: 'rtp', text: 'RTP', hint: 'Plain, and SRTP when the PBX offers it.' },
          { value: 'sdes_srtp_required', text: 'SRTP required', hint: 'Calls without encrypted media are refused.' },
        ]}
      />
      <div class="grid-2">
        <NumberField
          label="Calls at once"
          value={draft.concurrency}
          onInput={concurrency => set({ concurrency })}
          wrong={at('/limits/concurrency')}
          required
        />
        <NumberField
          label="Calls per second"
          value={draft.cps}
          onInput={cps => set({ cps })}
          wrong={at('/limits/cps')}
          required
        />
        <NumberField
          label="Longest call, seconds"
          value={draft.max_call_duration_seconds}
          onInput={max_call_duration_seconds => set({ max_call_duration_seconds })}
          wrong={at('/limits/max_call_duration_seconds')}
          required
        />
      </div>
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

const Review = ({ draft }: { draft: Draft }) => (
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
        `${draft.concurrency} calls at once, ${draft.cps} per second, ${draft.max_call_duration_seconds} s each`,
      ],
    ]}
  />
)

function Created({ trunk: first, password }: { trunk: Trunk; password: string | null }) {
  const trunk = useData<Trunk>(`/v1/trunks/${first.id}`, { poll_ms: 1000 })
  const identity = first.authentication.digest_identities[0]
  return (
    <>
      <PageHead
        title={first.name}
        sub="The trunk is made. Take its configuration to your PBX."
        badges={<ApplyBadge apply={trunk.data?.apply ?? first.apply} />}
        actions={
          <LinkButton href={hrefOf(`/trunks/${first.id}`)} kind="main-one">
            Open the trunk
          </LinkButton>
        }
      />
      {password !== null && identity && (
        <Card title="User and password of the PBX">
          <Facts
            rows={[
              ['User', <code key="u">{identity.username}</code>],
              ['Realm', <code key="r">{identity.realm}</code>],
            ]}
          />
          <SecretOnce value={password} what="the password" />
        </Card>
      )}
      <Loaded of={trunk}>{data => <PbxConfigurations trunk={data} password={password} />}</Loaded>
    </>
  )
}

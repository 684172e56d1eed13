import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { TrunkCreation } from '../lib/api-types.ts'
import { useAction, useData } from '../lib/data.ts'
import { messagesAt } from '../lib/problem.ts'
import { hrefOf } from '../lib/router.ts'
import { NEW_TRUNK, requestOf, type TrunkDraft, wrongIn } from '../lib/trunk-draft.ts'
import type { Trunk } from '../lib/types.ts'
import { ApplyBadge } from '../ui/apply.tsx'
import { Button, Card, Facts, LinkButton, Loaded, Notice, PageHead, ProblemBox } from '../ui/basics.tsx'
import { SecretOnce } from '../ui/dialog.tsx'
import { PbxConfigurations } from './pbx.tsx'
import { AuthenticationStep, MediaStep, NameStep, Review, TargetsStep } from './trunk-create-steps.tsx'

const STEPS = [
  'Name and direction',
  'Who may call',
  'Where calls go',
  'Media and ceilings',
  'Check and create',
] as const

/** The step of each field, by JSON pointer. The form offers to go to the step of the first error from the API. */
const STEP_OF: readonly (readonly [RegExp, number])[] = [
  [/^\/(name|direction)/, 0],
  [/^\/(auth_mode|sources|source_validation|require_tls)/, 1],
  [/^\/targets/, 2],
  [/^\/(codecs|media_security|limits|outbound_policy_id|number_block_ids)/, 3],
]

export function TrunkCreate() {
  const [draft, setDraft] = useState(NEW_TRUNK)
  const [step, setStep] = useState(0)
  const [tried, setTried] = useState(false)
  const [made, setMade] = useState<TrunkCreation | null>(null)
  const action = useAction()
  const set = (changes: Partial<TrunkDraft>) => setDraft(before => ({ ...before, ...changes }))
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

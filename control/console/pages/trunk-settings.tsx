import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import { useAction } from '../lib/data.ts'
import { messagesAt } from '../lib/problem.ts'
import { go } from '../lib/router.ts'
import {
  AUTHENTICATIONS,
  CODECS,
  DIRECTIONS,
  MEDIA_SECURITIES,
  SOURCE_CHECKS,
  TRANSFERS,
} from '../lib/trunk-choices.ts'
import type { Trunk } from '../lib/types.ts'
import { Button, Card, Notice, ProblemBox } from '../ui/basics.tsx'
import { ConfirmByName } from '../ui/dialog.tsx'
import { CheckField, Chips, Choices, Form, SelectField, TextField } from '../ui/form.tsx'
import { toast } from '../ui/toast.tsx'
import { PolicyChoice } from './policy-choice.tsx'
import { CeilingFields, type Ceilings } from './trunk-fields.tsx'
import type { TrunkTab } from './trunk-tab.ts'

export const TrunkSettings = (props: TrunkTab) => (
  <>
    <General key={props.trunk.revision} {...props} />
    <PolicyChoice<Trunk>
      path={`/v1/trunks/${props.trunk.id}`}
      of={props.trunk}
      on={props.trunk}
      hint="Spend caps, destinations and recording of the calls that this trunk makes."
      onSaved={props.of.set}
    />
    <Danger {...props} />
  </>
)

const settingsOf = (trunk: Trunk) => ({
  name: trunk.name,
  direction: trunk.direction,
  auth_mode: trunk.authentication.mode,
  source_validation: trunk.authentication.source_validation,
  require_tls: trunk.authentication.require_tls,
  codecs: trunk.media.codecs,
  media_security: trunk.media.security,
  transfers: trunk.transfers,
  limits: {
    concurrency: trunk.limits.concurrency.configured,
    cps: trunk.limits.cps.configured,
    max_call_duration_seconds: trunk.limits.max_call_duration.configured,
  },
})
type Settings = ReturnType<typeof settingsOf>

function General({ trunk, of }: TrunkTab) {
  const [form, setForm] = useState(() => settingsOf(trunk))
  const action = useAction()
  const set = (changes: Partial<Settings>) => setForm(before => ({ ...before, ...changes }))
  const setLimits = (changes: Partial<Ceilings>) => {
    const { concurrency, cps, max_call_duration_seconds } = { ...form.limits, ...changes }
    // The API takes numbers only: an empty field is sent as 0.
    const limits = {
      concurrency: concurrency ?? 0,
      cps: cps ?? 0,
      max_call_duration_seconds: max_call_duration_seconds ?? 0,
    }
    set({ limits })
  }
  const save = () =>
    action.run(async () => {
      const body = { ...form, ...(trunk.subaccount_id === null ? {} : { subaccount_id: trunk.subaccount_id }) }
      of.set(await ask<Trunk>('PATCH', `/v1/trunks/${trunk.id}`, { body, on: trunk }))
      toast('Saved; applying')
    })
  const at = (pointer: string) => ({ problem: action.problem, at: pointer })
  return (
    <Card title="General">
      <Form
        onSubmit={() => void save()}
        submit="Save and apply"
        busy={action.busy}
        problem={action.problem}
        fields={['/name', '/codecs', '/limits']}
      >
        <TextField label="Name" value={form.name} onInput={name => set({ name })} required {...at('/name')} />
        <Choices
          legend="Direction"
          value={form.direction}
          onInput={direction => set({ direction })}
          options={DIRECTIONS}
        />
        <SettingChoices form={form} set={set} />
        <CheckField label="Only over TLS" checked={form.require_tls} onInput={require_tls => set({ require_tls })} />
        <Chips
          legend={`Codecs: ${form.codecs.join(', ')}`}
          values={form.codecs}
          onInput={codecs => set({ codecs })}
          options={CODECS}
          wrong={messagesAt(action.problem, '/codecs')}
        />
        <CeilingFields of={form.limits} set={setLimits} wrongAt={pointer => messagesAt(action.problem, pointer)} />
      </Form>
    </Card>
  )
}

interface ChoicesProps {
  readonly form: Settings
  readonly set: (changes: Partial<Settings>) => void
}

const SettingChoices = ({ form, set }: ChoicesProps) => (
  <div class="grid-2">
    <SelectField
      label="Authentication"
      value={form.auth_mode}
      onInput={value => set({ auth_mode: value as Settings['auth_mode'] })}
      options={AUTHENTICATIONS}
    />
    <SelectField
      label="Source check"
      value={form.source_validation}
      onInput={value => set({ source_validation: value as Settings['source_validation'] })}
      options={SOURCE_CHECKS}
    />
    <SelectField
      label="Media security"
      value={form.media_security}
      onInput={value => set({ media_security: value as Settings['media_security'] })}
      options={MEDIA_SECURITIES}
    />
    <SelectField
      label="Transfers by the PBX"
      value={form.transfers}
      onInput={value => set({ transfers: value as Settings['transfers'] })}
      options={TRANSFERS}
    />
  </div>
)

function Danger({ trunk, of }: TrunkTab) {
  const [asking, setAsking] = useState<'suspend' | 'delete' | null>(null)
  const action = useAction()
  const change = async (verb: 'suspend' | 'resume') =>
    of.set(await ask<Trunk>('POST', `/v1/trunks/${trunk.id}/${verb}`, { on: trunk }))
  const suspended = trunk.status === 'disabled'
  return (
    <Card title="Suspend or delete">
      <div class="row">
        {suspended ? (
          <Button onClick={() => void action.run(() => change('resume'))}>Resume the trunk</Button>
        ) : (
          <Button kind="danger" onClick={() => setAsking('suspend')}>
            Suspend the trunk
          </Button>
        )}
        <Button kind="danger" onClick={() => setAsking('delete')}>
          Delete the trunk
        </Button>
      </div>
      <ProblemBox problem={action.problem} />
      {asking === 'suspend' && (
        <ConfirmByName
          title="Suspend the trunk"
          name={trunk.name}
          verb="Suspend"
          onClose={() => setAsking(null)}
          onConfirm={() => change('suspend')}
        >
          <Notice tone="warn">New calls are refused until the trunk is resumed. Calls that run go on.</Notice>
        </ConfirmByName>
      )}
      {asking === 'delete' && (
        <ConfirmByName
          title="Delete the trunk"
          name={trunk.name}
          verb="Delete"
          onClose={() => setAsking(null)}
          onConfirm={async ({ confirm_name }) => {
            await ask('DELETE', `/v1/trunks/${trunk.id}`, { body: { confirm_name }, on: trunk })
            toast(`${trunk.name} is being released`)
            go('/trunks')
          }}
        >
          <Notice tone="bad">
            This cannot be taken back. The trunk must have no calls, no numbers and no subtrunks. Its calls stay in the
            history.
          </Notice>
        </ConfirmByName>
      )}
    </Card>
  )
}

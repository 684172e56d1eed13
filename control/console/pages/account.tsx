import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import { useAction } from '../lib/data.ts'
import { ROLE_NAMES, type Session, session } from '../lib/session.ts'
import { Badge, Card, CopyButton, Facts, PageHead } from '../ui/basics.tsx'
import { Form, TextField } from '../ui/form.tsx'
import { toast } from '../ui/toast.tsx'

export function Account() {
  const who = session.value
  if (!who) return null
  return (
    <>
      <PageHead title="Your account" />
      <div class="columns">
        <Card title="You">
          <Facts
            rows={[
              ['Email', who.member.email],
              ['Role', ROLE_NAMES[who.member.role]],
              ['Organization', who.organization.name],
              ['Time zone', who.organization.time_zone],
              [
                'Scopes',
                <span key="s" class="mono small">
                  {who.member.scopes.join(', ')}
                </span>,
              ],
            ]}
          />
        </Card>
        <Password />
        <TwoFactor />
      </div>
    </>
  )
}

function Password() {
  const [current_password, setCurrent] = useState('')
  const [new_password, setNew] = useState('')
  const action = useAction()
  const save = () =>
    action.run(async () => {
      await ask('PUT', '/session/password', { body: { current_password, new_password } })
      setCurrent('')
      setNew('')
      toast('Your password is changed; your other sessions have ended')
    })
  return (
    <Card title="Password">
      <Form
        onSubmit={() => void save()}
        submit="Change it"
        busy={action.busy}
        problem={action.problem}
        fields={['/current_password', '/new_password']}
      >
        <TextField
          label="Password so far"
          type="password"
          autoComplete="current-password"
          value={current_password}
          onInput={setCurrent}
          problem={action.problem}
          at="/current_password"
          required
        />
        <TextField
          label="New password"
          type="password"
          autoComplete="new-password"
          value={new_password}
          onInput={setNew}
          hint="At least 12 characters."
          problem={action.problem}
          at="/new_password"
          required
        />
      </Form>
    </Card>
  )
}

function TwoFactor() {
  const [setUp, setSetUp] = useState<{ secret: string; uri: string } | null>(null)
  const [code, setCode] = useState('')
  const action = useAction()
  const on = session.value?.member.totp_enabled ?? false
  const begin = () =>
    action.run(async () => {
      setSetUp(await ask('POST', '/session/totp'))
    })
  const finish = (enabled: boolean) =>
    action.run(async () => {
      await ask('PUT', '/session/totp', { body: { enabled, code } })
      session.value = await ask<Session>('GET', '/session')
      setSetUp(null)
      setCode('')
      toast(enabled ? 'One-time codes are on' : 'One-time codes are off')
    })
  const field = (
    <TextField
      label="Code of your app"
      value={code}
      onInput={setCode}
      inputMode="numeric"
      autoComplete="one-time-code"
      problem={action.problem}
      at="/code"
      required
    />
  )
  return (
    <Card title="Two-factor sign-in" actions={<Badge tone={on ? 'good' : 'idle'}>{on ? 'On' : 'Off'}</Badge>}>
      {on ? (
        <Form
          onSubmit={() => void finish(false)}
          submit="Turn it off"
          danger
          busy={action.busy}
          problem={action.problem}
          fields={['/code']}
        >
          {field}
        </Form>
      ) : setUp ? (
        <Form
          onSubmit={() => void finish(true)}
          submit="Turn it on"
          busy={action.busy}
          problem={action.problem}
          fields={['/code']}
        >
          <p>Add this secret to your authenticator app, then type its first code.</p>
          <div class="secret">
            <code>{setUp.secret}</code>
            <CopyButton text={setUp.secret} what="the secret" />
          </div>
          <p>
            <a href={setUp.uri}>Open it in the app of this device</a>
          </p>
          {field}
        </Form>
      ) : (
        <Form onSubmit={() => void begin()} submit="Set it up" busy={action.busy} problem={action.problem}>
          <p class="muted">A code of your telephone is then asked for beside the password.</p>
        </Form>
      )}
    </Card>
  )
}

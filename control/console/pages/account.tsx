import { useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { ask } from '../lib/api.ts'
import type { RecoveryCodes, TotpSetUp } from '../lib/api-types.ts'
import { useAction } from '../lib/data.ts'
import { saveAs } from '../lib/save-as.ts'
import { ROLE_NAMES, type Session, session } from '../lib/session.ts'
import { Badge, Button, Card, CopyButton, Facts, Notice, PageHead } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Form, TextField } from '../ui/form.tsx'
import { Lazy, lazy } from '../ui/lazy.tsx'
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
          label="Current password"
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

const Qr = lazy(async () => (await import('../ui/qr.tsx')).Qr)

type Action = ReturnType<typeof useAction>

const CodeField = ({ value, onInput, action, label }: CodeFieldProps) => (
  <TextField
    label={label}
    value={value}
    onInput={onInput}
    autoComplete="one-time-code"
    problem={action.problem}
    at="/code"
    required
  />
)

interface CodeFieldProps {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly action: Action
  readonly label: string
}

function TwoFactor() {
  const [setUp, setSetUp] = useState<TotpSetUp | null>(null)
  const [code, setCode] = useState('')
  const [codes, setCodes] = useState<readonly string[] | null>(null)
  const action = useAction()
  const { totp_enabled: on = false, recovery_codes_left = 0 } = session.value?.member ?? {}
  const begin = () =>
    action.run(async () => {
      setSetUp(await ask('POST', '/session/totp'))
    })
  const finish = (method: 'PUT' | 'POST', path: string, body: object, told: string) =>
    action.run(async () => {
      const { recovery_codes } = await ask<RecoveryCodes>(method, path, { body: { ...body, code: code.trim() } })
      session.value = await ask<Session>('GET', '/session')
      setSetUp(null)
      setCode('')
      setCodes(recovery_codes.length > 0 ? recovery_codes : null)
      toast(told)
    })
  const turn = (enabled: boolean) =>
    finish('PUT', '/session/totp', { enabled }, enabled ? 'One-time codes are on' : 'One-time codes are off')
  const renew = () => finish('POST', '/session/recovery-codes', {}, 'The earlier recovery codes work no more')
  const form = { busy: action.busy, problem: action.problem, fields: ['/code'] }
  const field = { value: code, onInput: setCode, action }
  return (
    <Card title="Two-factor sign-in" actions={<Badge tone={on ? 'good' : 'idle'}>{on ? 'On' : 'Off'}</Badge>}>
      {codes && <RecoveryCodesOnce codes={codes} onClose={() => setCodes(null)} />}
      {on ? (
        <Form onSubmit={() => void turn(false)} submit="Turn it off" danger {...form}>
          <p class={recovery_codes_left > 2 ? 'muted' : ''}>
            {recovery_codes_left === 0
              ? 'No recovery code is left. Make new ones, or you lose the account with the telephone.'
              : `${counted(recovery_codes_left, 'recovery code is', 'recovery codes are')} left.`}
          </p>
          <CodeField label="Code of your app, or a recovery code" {...field} />
          <Button disabled={action.busy || code.trim() === ''} onClick={() => void renew()}>
            Make new recovery codes
          </Button>
        </Form>
      ) : setUp ? (
        <Form onSubmit={() => void turn(true)} submit="Turn it on" {...form}>
          <p>Scan this with your authenticator app, then type its first code.</p>
          <Lazy of={Qr} text={setUp.uri} label="QR code for the authenticator app" />
          <details>
            <summary>The app cannot scan</summary>
            <div class="secret">
              <code>{setUp.secret}</code>
              <CopyButton text={setUp.secret} what="the secret" />
            </div>
            <p>
              <a href={setUp.uri}>Open it in the app of this device</a>
            </p>
          </details>
          <CodeField label="Code of your app" {...field} />
        </Form>
      ) : (
        <Form onSubmit={() => void begin()} submit="Set it up" busy={action.busy} problem={action.problem}>
          <p class="muted">A code of your telephone is then asked for beside the password.</p>
        </Form>
      )}
    </Card>
  )
}

/** Shows the recovery codes. Nobody, the platform included, can show them again. */
const RecoveryCodesOnce = ({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) => (
  <Dialog title="Your recovery codes" onClose={onClose}>
    <Notice tone="warn" title="Keep them where your telephone is not">
      Each signs you in once without the app. They are not shown again.
    </Notice>
    <ul class="codes" data-recovery-codes>
      {codes.map(code => (
        <li key={code}>
          <code>{code}</code>
        </li>
      ))}
    </ul>
    <div class="row">
      <CopyButton text={codes.join('\n')} what="the codes" />
      <Button onClick={() => saveAs(new Blob([`${codes.join('\n')}\n`]), 'strowger-recovery-codes.txt')}>
        Save as a file
      </Button>
      <Button kind="main-one" onClick={onClose}>
        I have kept them
      </Button>
    </div>
  </Dialog>
)

import { useState } from 'preact/hooks'
import logo from '../icon.svg'
import { ask, read } from '../lib/api.ts'
import { useAction } from '../lib/data.ts'
import { go, path } from '../lib/router.ts'
import { may, type Session, session, signInNotice } from '../lib/session.ts'
import type { ListOf } from '../lib/types.ts'
import { Notice } from '../ui/basics.tsx'
import { Form, TextField } from '../ui/form.tsx'

/** Who signs in before the project's first call, and may make one, begins there. */
async function openFirstCall(): Promise<void> {
  if (path.value !== '/' || !may('service_configuration:write') || !may('call_history:read')) return
  const { data } = await read<ListOf<unknown>>('/v1/calls?limit=1')
  if (data.length === 0 && path.value === '/') go('/welcome', { replace: true })
}

export function SignIn() {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const action = useAction()
  const signIn = () =>
    action.run(async () => {
      const body = { email: email.trim(), password, ...(code.trim() === '' ? {} : { code: code.trim() }) }
      session.value = await ask<Session>('POST', '/session', { body })
      signInNotice.value = ''
      await openFirstCall()
    })
  return (
    <main class="door">
      <div class="card">
        <h1 class="brand">
          <img src={logo} alt="" />
          Strowger
        </h1>
        {signInNotice.value && <Notice tone="warn">{signInNotice.value}</Notice>}
        <Form
          onSubmit={() => void signIn()}
          submit="Sign in"
          busy={action.busy}
          problem={action.problem}
          fields={['/email', '/password', '/code']}
        >
          <TextField
            label="Email"
            type="email"
            value={email}
            onInput={setEmail}
            autoComplete="username"
            required
            autoFocus
            problem={action.problem}
            at="/email"
          />
          <TextField
            label="Password"
            type="password"
            value={password}
            onInput={setPassword}
            autoComplete="current-password"
            required
            problem={action.problem}
            at="/password"
          />
          <TextField
            label="One-time code"
            value={code}
            onInput={setCode}
            autoComplete="one-time-code"
            hint="Only if you have turned on two-factor sign-in. A recovery code stands in for it once."
            problem={action.problem}
            at="/code"
          />
        </Form>
        <p class="muted small">
          The first member of a new installation is printed by <code>npm start</code>; its password is in{' '}
          <code>data/console-password</code>.
        </p>
      </div>
    </main>
  )
}

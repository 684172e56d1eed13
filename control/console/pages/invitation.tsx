import { useState } from 'preact/hooks'
import logo from '../icon.svg'
import { ask } from '../lib/api.ts'
import { useAction } from '../lib/data.ts'
import { LinkButton, Notice } from '../ui/basics.tsx'
import { Form, TextField } from '../ui/form.tsx'

/** Where an invited person sets a password. The token is in the address's fragment, which is sent to no server. */
export function Invitation() {
  const [token] = useState(() => location.hash.slice(1))
  const [password, setPassword] = useState('')
  const [email, setEmail] = useState<string | null>(null)
  const action = useAction()
  const accept = () =>
    action.run(async () => {
      const accepted = await ask<{ email: string }>('POST', '/invitations/accept', { body: { token, password } })
      history.replaceState(null, '', location.pathname)
      setEmail(accepted.email)
    })
  return (
    <main class="door">
      <div class="card">
        <h1 class="brand">
          <img src={logo} alt="" />
          Strowger
        </h1>
        {email === null ? (
          <>
            <p>You are invited to an organization. Choose a password to become a member.</p>
            <Form
              onSubmit={() => void accept()}
              submit="Accept the invitation"
              busy={action.busy}
              problem={action.problem}
              fields={['/password']}
            >
              <TextField
                label="Password"
                type="password"
                value={password}
                onInput={setPassword}
                autoComplete="new-password"
                required
                autoFocus
                hint="At least 12 characters."
                problem={action.problem}
                at="/password"
              />
            </Form>
          </>
        ) : (
          <>
            <Notice tone="good">You are a member now. Sign in as {email}.</Notice>
            <LinkButton href="/console/">To the sign-in</LinkButton>
          </>
        )}
      </div>
    </main>
  )
}

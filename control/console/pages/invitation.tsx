import { useState } from 'preact/hooks'
import logo from '../icon.svg'
import { ask } from '../lib/api.ts'
import type { AcceptedInvitation } from '../lib/api-types.ts'
import { useAction } from '../lib/data.ts'
import { LinkButton, Notice } from '../ui/basics.tsx'
import { Form, TextField } from '../ui/form.tsx'

interface Words {
  readonly path: string
  readonly invites: string
  readonly submit: string
  readonly done: string
}

/** Where an invited person sets a password. */
export const Invitation = () => (
  <PasswordByLink
    path="/invitations/accept"
    invites="You are invited to an organization. Choose a password to become a member."
    submit="Accept the invitation"
    done="You are a member now."
  />
)

/** Where a member sets a new password by a link of the operator. */
export const NewPassword = () => (
  <PasswordByLink
    path="/password-resets/accept"
    invites="Choose a new password. Every session of yours ends."
    submit="Set the password"
    done="The new password is set."
  />
)

/** Sets a password by a link. The token is in the address's fragment, which is sent to no server. */
function PasswordByLink({ path, invites, submit, done }: Words) {
  const [token] = useState(() => location.hash.slice(1))
  const [password, setPassword] = useState('')
  const [email, setEmail] = useState<string | null>(null)
  const action = useAction()
  const accept = () =>
    action.run(async () => {
      const accepted = await ask<AcceptedInvitation>('POST', path, { body: { token, password } })
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
            <p>{invites}</p>
            <Form
              onSubmit={() => void accept()}
              submit={submit}
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
            <Notice tone="good">
              {done} Sign in as {email}.
            </Notice>
            <LinkButton href="/console/">To the sign-in</LinkButton>
          </>
        )}
      </div>
    </main>
  )
}

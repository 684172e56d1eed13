import { CONSOLE_PASSWORD, type ControlPlane, freshKey } from './control-plane.ts'

/** Sessions of the console's API, without a browser. */

export const CONSOLE_API = '/console/api'

/** A session. `ask` sends its cookie and CSRF token. */
export interface SignedIn {
  readonly cookie: string
  readonly csrf: string
  ask(method: string, path: string, body?: object, headers?: Record<string, string>): ReturnType<ControlPlane['ask']>
}

/** Tries to sign in, and returns the answer. */
export const attempt = (w: ControlPlane, email: string, password: string, code?: string) =>
  w.ask('POST', `${CONSOLE_API}/session`, { key: null, body: { email, password, ...(code ? { code } : {}) } })

/** Signs a member in; by default the one of the demo project, who is an operator. @throws when it is refused */
export async function signIn(w: ControlPlane, email = w.demo.email, password = CONSOLE_PASSWORD): Promise<SignedIn> {
  const { status, body, headers, text } = await attempt(w, email, password)
  if (status !== 200) throw new Error(text)
  const set = headers.get('set-cookie') ?? ''
  const cookie = set.split(';', 1)[0] ?? ''
  const csrf = body.csrf_token as string
  return {
    cookie,
    csrf,
    ask: (method, path, sent, more) =>
      w.ask(method, `${CONSOLE_API}${path}`, {
        key: null,
        ...(sent ? { body: sent } : {}),
        headers: { Cookie: cookie, 'X-CSRF-Token': csrf, 'Idempotency-Key': freshKey(), ...more },
      }),
  }
}

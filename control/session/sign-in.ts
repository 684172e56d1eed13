import { Secret, TOTP } from 'otpauth'
import { iso } from '../../core/runtime/clock.ts'
import { hashPassword, passwordMatches, unseal } from '../../core/runtime/secrets.ts'
import { type MemberSecurityRow, saveSecurity, securityOf, takeTotpStep } from '../../core/state/console-sessions.ts'
import { findMemberByEmail, type MemberRow } from '../../core/state/organizations.ts'
import { type Refusal, refuse } from '../http/reply.ts'
import type { Services } from '../http/services.ts'

const MAX_FAILURES = 5
const LOCKED_MS = 15 * 60 * 1000
const STEP_SECONDS = 30

const wrong = (): Refusal =>
  refuse('unauthenticated', {}, { detail: 'The email, the password or the one-time code is not right.' })

/** Hash that nobody's password has: an unknown email takes as long as a known one. */
const nobodysHash = hashPassword('no member has this password')

/**
 * Checks a sign-in. Five failures lock the member for 15 minutes; the count outlives the refused request, which is why
 * it is written beside its transaction. All failures look the same.
 */
export async function checkSignIn(
  services: Services,
  given: { readonly email: string; readonly password: string; readonly code?: string | null },
): Promise<MemberRow | Refusal> {
  const { state, clock } = services
  const member = await findMemberByEmail(state.db, given.email)
  const right = await passwordMatches(given.password, member?.password_hash ?? (await nobodysHash))
  if (!member) return wrong()
  const security = await securityOf(state.db, member.id)
  const now_ms = clock.now()
  if (security.locked_until !== null && security.locked_until > iso(now_ms)) return refuse('account_locked')
  const coded = security.totp_enabled === 0 || (right && (await codeAccepted(services, security, given.code ?? '')))
  if (right && coded) {
    if (security.failed_attempts > 0)
      await saveSecurity(state.db, member.id, { failed_attempts: 0, locked_until: null })
    return member
  }
  const failed_attempts = security.failed_attempts + 1
  const locked = failed_attempts >= MAX_FAILURES
  await saveSecurity(state.db, member.id, {
    failed_attempts: locked ? 0 : failed_attempts,
    locked_until: locked ? iso(now_ms + LOCKED_MS) : null,
  })
  return wrong()
}

/** Whether a one-time code is right and used for the first time; one step of clock difference either way is allowed. */
export async function codeAccepted(services: Services, security: MemberSecurityRow, code: string): Promise<boolean> {
  if (security.totp_sealed === null || !/^\d{6}$/.test(code)) return false
  const timestamp = services.clock.now()
  const totp = totpOf(unseal(services.settings.master_key, security.totp_sealed))
  const delta = totp.validate({ token: code, timestamp, window: 1 })
  if (delta === null) return false
  const step = Math.floor(timestamp / 1000 / STEP_SECONDS) + delta
  return takeTotpStep(services.state.db, security.member_id, step)
}

export const newTotpSecret = (): string => new Secret({ size: 20 }).base32

export const totpOf = (secret: string, label = 'console'): TOTP =>
  new TOTP({ issuer: 'Strowger', label, secret: Secret.fromBase32(secret), digits: 6, period: STEP_SECONDS })

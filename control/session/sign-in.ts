import { Secret, TOTP } from 'otpauth'
import { hashOfNothing, passwordMatches, unseal } from '../../core/runtime/secrets.ts'
import { type MemberSecurityRow, securityOf, takeTotpStep } from '../../core/state/people/console-sessions.ts'
import { findMemberByEmail, type MemberRow } from '../../core/state/people/organizations.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { type Refusal, refuse } from '../http/reply.ts'
import type { HttpServices, Services } from '../http/services.ts'

/** Limits failed sign-ins of one account from one address: five, then one more every three minutes. */
export const SIGN_INS: RateLimit = { burst: 5, per_second: 1 / 180 }
const STEP_SECONDS = 30

const wrong = (): Refusal =>
  refuse(
    'unauthenticated',
    {},
    {
      detail: 'The email, the password or the one-time code is not right.',
      extra: { remediation: 'Check all three, or ask an admin of your organization to set a new password.' },
    },
  )

/** The hash for unknown emails: checking against it takes as long as a check for a known email. */
const NOBODYS_HASH = hashOfNothing()

/**
 * Checks a sign-in from `address`. Failures limit only the same account from the same address, so that guessing from
 * elsewhere locks no member out. Unknown accounts are limited alike, so that answers do not reveal which ones exist.
 */
export async function checkSignIn(
  services: HttpServices,
  given: { readonly email: string; readonly password: string; readonly code?: string | null },
  address: string,
): Promise<MemberRow | Refusal> {
  const { state, clock, sign_ins } = services
  const key = `${address} ${given.email.toLowerCase()}`
  const { allowed, headers } = sign_ins.take(key, clock.monotonic_ms(), clock.now())
  if (!allowed) return refuse('account_locked', { value: 'from this address' }, { headers })
  const member = await findMemberByEmail(state.db, given.email)
  const right = await passwordMatches(given.password, member?.password_hash ?? NOBODYS_HASH)
  if (!member) return wrong()
  const security = await securityOf(state.db, member.id)
  const coded = security.totp_enabled === 0 || (right && (await codeAccepted(services, security, given.code ?? '')))
  if (!right || !coded) return wrong()
  // Only a member who proves the password learns of it.
  if (member.locked_at !== null) return refuse('member_locked', { name: member.email })
  sign_ins.forget(key)
  return member
}

/** Reports whether a one-time code is valid and unused. The clock may differ by one step in either direction. */
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

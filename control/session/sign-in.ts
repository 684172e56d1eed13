import { Secret, TOTP } from 'otpauth'
import type { Breathe } from '../../core/domain/rating/index.ts'
import { hashOfNothing, hashSecret, passwordMatches, unseal } from '../../core/runtime/secrets.ts'
import { findMemberByEmail, type MemberRow } from '../../core/state/people/organizations.ts'
import {
  hasRecoveryCode,
  type MemberSecurityRow,
  securityOf,
  takeTotpStep,
} from '../../core/state/people/second-factors.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { type Refusal, refuse } from '../http/reply.ts'
import type { HttpServices, Services } from '../http/services.ts'

/** Limits failed sign-ins of one account from one address: five, then one more every three minutes. */
export const SIGN_INS: RateLimit = { burst: 5, per_second: 1 / 180 }
const STEP_SECONDS = 30

export const wrongSignIn = (): Refusal<'unauthenticated'> =>
  refuse(
    'unauthenticated',
    {},
    {
      detail: 'The email, the password or the code is not right.',
      extra: { remediation: 'Check all three, or ask an admin of your organization to set a new password.' },
    },
  )

/** The hash for unknown emails: checking against it takes as long as a check for a known email. */
const NOBODYS_HASH = hashOfNothing()

/** Who signed in. A recovery code is consumed with the session that it opens. */
interface SignedIn {
  readonly member: MemberRow
  readonly recovery_hash: string | null
}

/**
 * Checks a sign-in from `address`. Failures limit only the same account from the same address, so that guessing from
 * elsewhere locks no member out. Unknown accounts are limited alike, so that answers do not reveal which ones exist.
 */
export async function checkSignIn(
  services: HttpServices,
  given: { readonly email: string; readonly password: string; readonly code?: string | null },
  address: string,
): Promise<SignedIn | Refusal> {
  const { state, clock, sign_ins } = services
  const key = `${address} ${given.email.toLowerCase()}`
  const { allowed, headers } = await sign_ins.take(key, clock.monotonic_ms(), clock.now())
  if (!allowed) return refuse('account_locked', { value: 'from this address' }, { headers })
  const member = await findMemberByEmail(state.db, given.email)
  const right = await passwordMatches(given.password, member?.password_hash ?? NOBODYS_HASH)
  if (!member) return wrongSignIn()
  const security = await securityOf(state.db, member.id)
  const factor = security.totp_enabled === 0 || (right && (await secondFactor(services, security, given.code ?? '')))
  if (!right || !factor) return wrongSignIn()
  // Only a member who proves the password learns of it.
  if (member.locked_at !== null) return refuse('member_locked', { name: member.email })
  sign_ins.forget(key)
  return { member, recovery_hash: factor === true ? null : factor.recovery_hash }
}

/** A code of the member's app, which is consumed, or a recovery code, which the caller then consumes. */
export type SecondFactor = true | { readonly recovery_hash: string }

/** Checks what a member gives beside the password; false when it is neither a code of the app nor a recovery code. */
async function secondFactor(
  services: Services,
  security: MemberSecurityRow,
  given: string,
): Promise<SecondFactor | false> {
  if (await codeAccepted(services, security, given)) return true
  const recovery_hash = recoveryHash(given)
  return (await hasRecoveryCode(services.state.db, security.member_id, recovery_hash)) && { recovery_hash }
}

/**
 * Checks the code that a signed-in member gives for a change of the second factor, which only a code of the `app` may
 * begin. Guesses are limited as sign-ins are, but from all addresses together: a stolen session alone finds no code.
 */
export async function provenFactor(
  services: HttpServices,
  member_id: string,
  given: string,
  app: boolean,
): Promise<SecondFactor | false | Refusal<'account_locked'>> {
  const { state, clock, sign_ins } = services
  const key = `code of ${member_id}`
  const { allowed, headers } = await sign_ins.take(key, clock.monotonic_ms(), clock.now())
  if (!allowed) return refuse('account_locked', { value: 'codes of this account' }, { headers })
  const factor = await (app ? codeAccepted : secondFactor)(services, await securityOf(state.db, member_id), given)
  if (factor) sign_ins.forget(key)
  return factor
}

/**
 * Checks the password that a signed-in member gives to change it. Guesses are limited as those of codes are. The check
 * waits for its turn, as every hash for a member does: each takes a core and 32 MiB.
 */
export async function provenPassword(
  { clock, sign_ins }: HttpServices,
  { id, password_hash }: MemberRow,
  given: string,
  breathe: Breathe,
): Promise<boolean | Refusal<'account_locked'>> {
  const key = `password of ${id}`
  const { allowed, headers } = await sign_ins.take(key, clock.monotonic_ms(), clock.now())
  if (!allowed) return refuse('account_locked', { value: 'passwords of this account' }, { headers })
  await breathe()
  const right = await passwordMatches(given, password_hash)
  if (right) sign_ins.forget(key)
  return right
}

/** People type a code with or without its hyphens, in capital letters or small ones. */
export const recoveryHash = (code: string): string => hashSecret(code.toUpperCase().replace(/[^A-Z2-7]/g, ''))

/** Reports whether a one-time code is valid and unused. The clock may differ by one step in either direction. */
async function codeAccepted(services: Services, security: MemberSecurityRow, code: string): Promise<boolean> {
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

import { codedAmount } from '../rating/amounts.ts'
import { counted } from '../text/counted.ts'
import { REASONS, type Reason, type ReasonEntry } from './table.ts'

/**
 * Values of a sentence's placeholders: `value` is the actual value, `limit` the expected one, `name` the rule's owner.
 */
export type ReasonFacts = Readonly<Record<string, string | number | null | undefined>>

const MAX_VALUE_LENGTH = 120

/** Returns the sentence of a reason with the offending values. */
export const reasonSentence = (reason: Reason, facts: ReasonFacts = {}): string =>
  fill(REASONS[reason].sentence, facts, REASONS[reason].of_money)

/** Returns the remedy of a reason. */
export const reasonMend = (reason: Reason, facts: ReasonFacts = {}): string => fill(REASONS[reason].mend, facts)

interface SipRefusal {
  readonly code: number
  readonly reason: Reason
  readonly sentence: string
  /** Encoded header values. A peer's text in them cannot end a quoted string or a line. */
  readonly headers: Readonly<{ Reason: string; Warning: string; 'Retry-After'?: string }>
}

/**
 * Returns the SIP response that refuses an INVITE for a reason (design section 4). `sentence` replaces that of the
 * table, for example by a finding's. A reason without a SIP code gives 500, because it does not apply to an INVITE.
 */
export function sipRefusal(reason: Reason, facts: ReasonFacts = {}, sentence?: string): SipRefusal {
  const { sip, retry_after_seconds } = REASONS[reason] as ReasonEntry
  const code = sip ?? 500
  const text = sentence ?? reasonSentence(reason, facts)
  return {
    code,
    reason,
    sentence: text,
    headers: {
      Reason: `X-Strowger;cause=${code};text="${reason}"`,
      Warning: `399 strowger "${quotable(text)}"`,
      ...(retry_after_seconds === null ? {} : { 'Retry-After': String(retry_after_seconds) }),
    },
  }
}

/**
 * Returns the headers of a stranger's 403 over a connection, by which an operator of a PBX learns the address that it
 * has here. They are the same for everybody and name no trunk. Over UDP a stranger gets none, since its address may be
 * forged.
 */
export const strangerAdvice = (address: string): Readonly<Record<string, string>> =>
  sipRefusal(
    'source_not_allowed',
    {},
    `${address} is in no enabled source of a trunk; list it at the trunk, or give the trunk digest credentials`,
  ).headers

interface ProblemProjection {
  readonly status: number
  readonly code: Reason
  readonly detail: string
  readonly remediation: string
  readonly retry_after_seconds: number | null
}

/** Returns the parts of a problem document on /v1. A reason without an HTTP status gives 409. */
export function problemOf(reason: Reason, facts: ReasonFacts = {}): ProblemProjection {
  const { http, retry_after_seconds } = REASONS[reason] as ReasonEntry
  return {
    status: http ?? 409,
    code: reason,
    detail: capitalized(reasonSentence(reason, facts)),
    remediation: reasonMend(reason, facts),
    retry_after_seconds: retry_after_seconds ?? (http === 429 ? LEAST_RETRY_SECONDS : null),
  }
}

/** A 429 says when to try again (RFC 6585 §4). A SIP 503 must not: peers would send nothing at all until then. */
const LEAST_RETRY_SECONDS = 1

interface VoiceErrorProjection {
  readonly retry_after_seconds: number | null
  readonly status: number
  readonly code: number
  readonly message: string
  readonly details: Readonly<{ reason: Reason }>
}

/** Returns the numbered error of the voice-calls API (voice-compat.md sections 1 and 15). */
export function voiceErrorOf(reason: Reason, facts: ReasonFacts = {}): VoiceErrorProjection {
  const { voice, voice_http, retry_after_seconds } = REASONS[reason] as ReasonEntry
  return {
    retry_after_seconds: retry_after_seconds ?? (voice_http === 429 ? LEAST_RETRY_SECONDS : null),
    status: voice_http ?? 400,
    code: voice ?? 20001,
    message: capitalized(reasonSentence(reason, facts)),
    details: { reason },
  }
}

function fill(template: string, facts: ReasonFacts, of_money = false): string {
  return template.replace(PLACEHOLDER, (_, name: string, one?: string, many?: string) => {
    const value = facts[name]
    if (one !== undefined && typeof value === 'number') return counted(value, one, many)
    const after = many === undefined ? '' : ` ${many}`
    if (value === null || value === undefined || value === '') return `none${after}`
    const text = of_money && typeof value === 'number' ? codedAmount(value) : String(value)
    return `${text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}...` : text}${after}`
  })
}

/** A placeholder: its fact, and of a number what is said of one and of several. */
const PLACEHOLDER = /\{(\w+)(?::([^|}]+)\|([^}]+))?\}/g

/** Returns a sentence of the table as documents show it, with its placeholders: `{value} calls are in progress`. */
export const templateInWords = (template: string): string =>
  template.replace(PLACEHOLDER, (_, name: string, _one?: string, many?: string) =>
    many === undefined ? `{${name}}` : `{${name}} ${many}`,
  )

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/**
 * Makes text safe inside a quoted string of a SIP header (RFC 3261 §25.1): printable ASCII without quote and backslash.
 */
const quotable = (text: string): string => text.replace(/["\\]/g, "'").replace(/[^\x20-\x7e]/g, '?')

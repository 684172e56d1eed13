import { problemOf } from '../../core/domain/reasons/index.ts'
import type { Refusal } from './reply.ts'
import type { FieldError } from './validate.ts'

/** A problem document (RFC 9457) with the members of the specification. */
interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
  readonly request_id: string
  readonly remediation?: string
  readonly errors?: readonly FieldError[]
}

export const PROBLEM_TYPE = 'application/problem+json'

/** Returns the problem document of a refusal, and its headers. */
export function problem(
  refusal: Refusal,
  context: { readonly base_url: string; readonly request_id: string },
): { readonly body: Problem; readonly headers: Readonly<Record<string, string>> } {
  const { status, code, detail, remediation, retry_after_seconds } = problemOf(refusal.refused, refusal.facts)
  const body = {
    type: `${context.base_url}/docs/errors/${code}`,
    // Commands, which have no HTTP server, load this module only for a refusal.
    title: process.getBuiltinModule('node:http').STATUS_CODES[status] ?? 'Error',
    status,
    detail: refusal.detail ?? sentence(detail),
    code,
    request_id: context.request_id,
    remediation,
    ...(refusal.errors ? { errors: refusal.errors } : {}),
    ...refusal.extra,
  }
  const headers = {
    ...(retry_after_seconds === null ? {} : { 'Retry-After': String(retry_after_seconds) }),
    ...refusal.headers,
  }
  return { body, headers }
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

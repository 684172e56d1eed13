import type { VoiceAccountOfProject } from '../../core/state/people/voice-accounts.ts'
import { problem } from '../http/problem.ts'
import type { Refusal } from '../http/reply.ts'
import type { Services } from '../http/services.ts'
import type { VoiceRefusal } from '../voice/errors.ts'

/** Creates and finds calls in one environment of the general API. */
export interface CallEnvironment {
  create(
    context: GeneralContext,
    wanted: { readonly to: string; readonly message: string },
  ): Promise<GeneralCall | GeneralError>
  find(context: GeneralContext, id: string): Promise<GeneralCall | null>
  /** Lists calls, newest first. Returns up to `limit` + 1: the extra one shows that there is a next page. */
  list(context: GeneralContext, page: { readonly offset: number; readonly limit: number }): Promise<GeneralCall[]>
}

export interface GeneralContext {
  readonly services: Services
  readonly account: VoiceAccountOfProject
  readonly now_ms: number
}

/** The call resource (spec, "Separate general API"). */
export interface GeneralCall {
  readonly id: string
  readonly status: string
  readonly to: string
  readonly created_at: string
}

export interface GeneralError {
  readonly error_status: number
  readonly code: string
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
}

export const isError = (value: unknown): value is GeneralError =>
  typeof value === 'object' && value !== null && 'error_status' in value

export const error = (error_status: number, code: string, message: string, headers = {}): GeneralError => ({
  error_status,
  code,
  message,
  headers,
})

/** Converts a refusal of the shared pipeline to this API's error format. */
export function errorOf(refusal: Refusal): GeneralError {
  const { body, headers } = problem(refusal, { base_url: '', request_id: '' })
  return { error_status: body.status, code: body.code, message: body.detail, headers }
}

/** Converts a refusal of the voice-calls API to this API's error format. The code is its reason, if it has one. */
export function errorOfVoice(refusal: VoiceRefusal): GeneralError {
  if (refusal.kind === 'problem') return error(404, refusal.reason, refusal.detail)
  const reason = refusal.details?.['reason']
  const code = typeof reason === 'string' ? reason : 'invalid_parameter'
  return error(refusal.status, code, refusal.message, refusal.headers)
}

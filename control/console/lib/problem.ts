/** An error of the API, as a problem document (RFC 9457), or of the network. */
export interface Problem {
  readonly type: string
  readonly title: string
  /** 0 when there was no answer. */
  readonly status: number
  readonly detail: string
  readonly code: string
  readonly request_id: string
  readonly remediation?: string
  readonly errors?: readonly { readonly pointer: string; readonly message: string }[]
}

export class ApiError extends Error {
  readonly problem: Problem
  constructor(problem: Problem) {
    super(problem.detail)
    this.problem = problem
  }
}

export const noAnswer = (detail: string): ApiError =>
  new ApiError({ type: '', title: 'No answer', status: 0, detail, code: 'no_answer', request_id: '' })

export const problemOf = (error: unknown): Problem =>
  error instanceof ApiError
    ? error.problem
    : { ...noAnswer('').problem, title: 'Something went wrong in this page', detail: String(error), code: 'page_error' }

/** Returns a problem's messages about the field at `pointer`, such as `/sources/0`, and about fields below it. */
export function messagesAt(problem: Problem | null, pointer: string): string | null {
  const found = (problem?.errors ?? []).filter(
    error => error.pointer === pointer || error.pointer.startsWith(`${pointer}/`),
  )
  if (found.length === 0) return null
  return found
    .map(error => {
      const below = error.pointer.slice(pointer.length + 1)
      return below === ''
        ? error.message
        : `${/^\d+$/.test(below) ? `entry ${Number(below) + 1}` : below} ${error.message}`
    })
    .join('; ')
}

/** Returns the messages that no field of the form shows. */
export const messagesElsewhere = (problem: Problem, pointers: readonly string[]): readonly string[] =>
  (problem.errors ?? [])
    .filter(error => !pointers.some(pointer => error.pointer === pointer || error.pointer.startsWith(`${pointer}/`)))
    .map(error => `${error.pointer || 'body'} ${error.message}`)

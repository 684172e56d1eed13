/**
 * Builds an OpenTelemetry trace of an ended call from its stored records, so that tracing costs nothing while the call
 * runs. It contains no telephone numbers and no query parts of URLs; the call's id leads to them.
 */

type SpanKind = 'server' | 'client' | 'internal'
type Attributes = Readonly<Record<string, string | number | boolean>>

interface SpanFacts {
  readonly name: string
  readonly kind: SpanKind
  readonly begin_ms: number
  readonly end_ms: number
  readonly attributes: Attributes
  /** The error; null when the step succeeded. */
  readonly error: string | null
  readonly events: readonly { readonly name: string; readonly at_ms: number; readonly attributes: Attributes }[]
}

/** The first span is the call itself, the parent of the others. */
export type CallTrace = readonly [SpanFacts, ...SpanFacts[]]

interface TracedCall {
  readonly call: {
    readonly sid: string
    readonly project_id: string
    readonly trunk_id: string | null
    readonly carrier_id: string | null
    readonly origin: string
    readonly direction: string
    readonly status: string
    readonly sip_code: number | null
    readonly reason: string | null
    readonly ended_by: string | null
    readonly queued_at: string
    readonly ringing_at: string | null
    readonly answered_at: string | null
    readonly ended_at: string
    /** JSON {admitted, reason, checks: [{check, result}]}; null without an admission. */
    readonly decision_trace: string | null
  }
  readonly attempts: readonly {
    readonly target: string
    readonly transport: string
    readonly address: string | null
    readonly started_at: string
    readonly provisional_at: string | null
    readonly ended_at: string | null
    readonly sip_code: number | null
    readonly result: string | null
    readonly reason: string | null
  }[]
  /** HTTP exchanges: `at` is their end, `detail` JSON {request, response}. */
  readonly exchanges: readonly { readonly at: string; readonly detail: string }[]
  /** JSON of the legs' summaries; null without media. */
  readonly media: string | null
}

export function traceOf(facts: TracedCall): CallTrace {
  const { call } = facts
  const begin_ms = Date.parse(call.queued_at)
  const end_ms = Math.max(begin_ms, Date.parse(call.ended_at))
  const root: SpanFacts = {
    name: `call ${call.direction}`,
    kind: 'server',
    begin_ms,
    end_ms,
    attributes: known({
      'strowger.call_id': call.sid,
      'strowger.project_id': call.project_id,
      'strowger.trunk_id': call.trunk_id,
      'strowger.carrier_id': call.carrier_id,
      'strowger.origin': call.origin,
      'strowger.status': call.status,
      'strowger.reason': call.reason,
      'strowger.ended_by': call.ended_by,
      'sip.response_code': call.sip_code,
    }),
    error: call.status === 'failed' ? (call.reason ?? `SIP ${call.sip_code ?? 'unknown'}`) : null,
    events: [...moment('ringing', call.ringing_at), ...moment('answered', call.answered_at)],
  }
  return [
    root,
    ...admissionSpan(facts, begin_ms, end_ms),
    ...facts.attempts.map(attempt => attemptSpan(attempt, end_ms)),
    ...facts.exchanges.flatMap(exchangeSpan),
    ...mediaSpan(facts, end_ms),
  ]
}

/** Spans the time from the first record of the call to the first INVITE sent, or to its end without one. */
function admissionSpan({ call, attempts }: TracedCall, begin_ms: number, end_ms: number): SpanFacts[] {
  const decision = read(call.decision_trace)
  if (!decision) return []
  const admitted = decision['admitted'] === true
  const checks = Array.isArray(decision['checks']) ? decision['checks'] : []
  const first = attempts[0]
  return [
    {
      name: 'admission',
      kind: 'internal',
      begin_ms,
      end_ms: Math.max(begin_ms, first ? Date.parse(first.started_at) : end_ms),
      attributes: known({ 'strowger.admitted': admitted, 'strowger.reason': text(decision['reason']) }),
      error: admitted ? null : (text(decision['reason']) ?? 'refused'),
      events: checks.map(check => ({
        name: `check ${text(check?.check) ?? ''}`,
        at_ms: begin_ms,
        attributes: known({ result: text(check?.result) }),
      })),
    },
  ]
}

function attemptSpan(attempt: TracedCall['attempts'][number], end_ms: number): SpanFacts {
  const begin_ms = Date.parse(attempt.started_at)
  const well = attempt.result === 'answered' || attempt.result === 'canceled'
  return {
    name: 'INVITE',
    kind: 'client',
    begin_ms,
    end_ms: Math.max(begin_ms, attempt.ended_at === null ? end_ms : Date.parse(attempt.ended_at)),
    attributes: known({
      'sip.target': withoutUser(attempt.target),
      'sip.response_code': attempt.sip_code,
      'network.transport': attempt.transport,
      'network.peer.address': attempt.address,
      'strowger.result': attempt.result,
    }),
    error: well ? null : (attempt.reason ?? attempt.result ?? 'no result'),
    events: moment('provisional', attempt.provisional_at),
  }
}

const withoutUser = (uri: string): string => uri.replace(/^(sips?:)[^@]*@/i, '$1')

function exchangeSpan({ at, detail }: TracedCall['exchanges'][number]): SpanFacts[] {
  const { request, response } = (read(detail) ?? {}) as { request?: Loose; response?: Loose }
  const url = text(request?.['url'])
  if (!url || !URL.canParse(url)) return []
  const { host, pathname, protocol } = new URL(url)
  const duration_ms = number(response?.['request_duration']) ?? 0
  const status = number(response?.['response_code'])
  const method = text(request?.['method']) ?? 'POST'
  return [
    {
      name: `${method} document`,
      kind: 'client',
      begin_ms: Date.parse(at) - duration_ms,
      end_ms: Date.parse(at),
      attributes: known({
        'http.request.method': method,
        'http.response.status_code': status,
        'url.full': `${protocol}//${host}${pathname}`,
      }),
      error:
        status === null ? (text(response?.['error_message']) ?? 'no answer') : status >= 400 ? `HTTP ${status}` : null,
      events: [],
    },
  ]
}

function mediaSpan({ call, media }: TracedCall, end_ms: number): SpanFacts[] {
  if (call.answered_at === null) return []
  const summary = read(media)
  const figures: Record<string, unknown> = { 'strowger.media.mode': summary?.['mode'] }
  for (const leg of ['a', 'b']) {
    const known = summary?.[leg] as Loose | undefined
    for (const name of ['codec', 'mos', 'jitter_ms', 'packets_received', 'packets_lost'])
      figures[`strowger.media.${leg}.${name}`] = known?.[name]
  }
  const begin_ms = Date.parse(call.answered_at)
  return [
    {
      name: 'media',
      kind: 'internal',
      begin_ms,
      end_ms: Math.max(begin_ms, end_ms),
      attributes: known(figures),
      error: null,
      events: [],
    },
  ]
}

type Loose = Readonly<Record<string, unknown>>

function read(json: string | null): Loose | null {
  if (json === null) return null
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Loose) : null
  } catch {
    return null
  }
}

const number = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null)
const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)

const moment = (name: string, at: string | null) =>
  at === null ? [] : [{ name, at_ms: Date.parse(at), attributes: {} }]

const known = (values: Readonly<Record<string, unknown>>): Attributes =>
  Object.fromEntries(
    Object.entries(values).filter(
      (entry): entry is [string, string | number | boolean] =>
        typeof entry[1] === 'string' || typeof entry[1] === 'boolean' || Number.isFinite(entry[1]),
    ),
  )

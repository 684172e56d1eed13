import { createHash } from 'node:crypto'
import type { TracerProvider } from '@opentelemetry/api'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { type CallTrace, traceOf } from '../../core/domain/calls/trace.ts'
import { iso } from '../../core/runtime/clock.ts'
import { attemptsOf, eventsOf } from '../../core/state/calls/call-history.ts'
import { noteReportedUpTo, reportedUpTo } from '../../core/state/delivery/reported-events.ts'
import type { Db } from '../../core/state/index.ts'
import type { Reconciler } from './reconciler.ts'

const NAME = 'traces'
/** Records of calls may be written late: those of a lost node, only after its loss is detected. */
const OVERLAP_MS = 45_000
const BATCH = 100
/** The most calls that a run reads, far more than end within the overlap. The next run reads the rest. */
const MOST_AT_ONCE = 20_000
/** Calls that ended longer ago are not sent, even if the collector was unavailable. */
const PATIENCE_MS = 3_600_000
const EXPORT_LIMIT_MS = 10_000
const MOST_PARENTS = 10

/**
 * Sends each ended call as a trace to an OpenTelemetry collector (OTLP over HTTP). Trace ids derive from CallSids:
 * logs, calls and traces can be correlated, and a call that is sent twice after a crash is still one trace.
 */
export function traces(otlp_url: string): Reconciler {
  let exporter: Promise<Exporter> | null = null
  const sent = new Map<string, number>()
  return {
    name: NAME,
    period_ms: 2000,
    runs: 'once',
    async run({ state: { db }, clock }) {
      exporter ??= openExporter(`${otlp_url}/v1/traces`)
      const now_ms = clock.now()
      // One in the future is from before the clock was set back.
      const told_ms = Math.min(now_ms, (await reportedUpTo(db, NAME)) ?? now_ms)
      const from_ms = Math.max(told_ms - OVERLAP_MS, now_ms - PATIENCE_MS)
      for (const [sid, ended_ms] of sent) if (ended_ms < from_ms) sent.delete(sid)
      const ended = await endedSince(db, from_ms)
      const fresh = ended.filter(row => !sent.has(row.call_sid))
      for (let at = 0; at < fresh.length; at += BATCH) {
        const part = fresh.slice(at, at + BATCH)
        const calls = []
        for (const { call_sid } of part) calls.push(...(await tracedCall(db, call_sid)))
        await (await exporter).send(calls)
        for (const row of part) sent.set(row.call_sid, Date.parse(row.ended_at))
      }
      const last = ended.at(-1)
      if (last) await noteReportedUpTo(db, NAME, Math.min(now_ms, Math.max(told_ms, Date.parse(last.ended_at))))
      else if ((await reportedUpTo(db, NAME)) === undefined) await noteReportedUpTo(db, NAME, now_ms)
    },
    async stop() {
      await exporter?.then(open => open.close())
    },
  }
}

const endedSince = (db: Db, from_ms: number) =>
  db
    .selectFrom('cdr')
    .select(['call_sid', 'ended_at'])
    .where('ended_at', '>=', iso(from_ms))
    .orderBy('ended_at')
    .limit(MOST_AT_ONCE)
    .execute()

interface Traced {
  readonly trace: CallTrace
  /** The outermost ancestor of the call; the call itself when it has no parent. */
  readonly root_sid: string
  readonly sid: string
  readonly parent_sid: string | null
}

async function tracedCall(db: Db, sid: string): Promise<Traced[]> {
  const call = await db
    .selectFrom('call')
    .innerJoin('cdr', 'cdr.call_sid', 'call.sid')
    .selectAll('call')
    .select(['cdr.ended_at as over_at', 'cdr.media'])
    .where('call.sid', '=', sid)
    .executeTakeFirst()
  if (!call) return []
  const exchanges = (await eventsOf(db, sid)).filter(event => event.kind === 'http')
  const attempts = await attemptsOf(db, sid)
  const { media, over_at: ended_at } = call
  const facts = { call: { ...call, ended_at }, attempts, exchanges, media }
  const root_sid = await rootOf(db, sid, call.parent_call_sid)
  return [{ trace: traceOf(facts), root_sid, sid, parent_sid: call.parent_call_sid }]
}

/** Returns the root of a call's trace: a call that a script dialled belongs to the trace of the call that ran it. */
async function rootOf(db: Db, sid: string, parent: string | null): Promise<string> {
  let root = sid
  for (let next = parent, seen = 0; next !== null && seen < MOST_PARENTS; seen++) {
    root = next
    const row = await db.selectFrom('call').select('parent_call_sid').where('sid', '=', next).executeTakeFirst()
    next = row?.parent_call_sid ?? null
  }
  return root
}

/** Strips the letters of a CallSid: 32 hexadecimal digits remain, the length of a trace id (W3C Trace Context). */
const traceIdOf = (call_sid: string): string => call_sid.slice(2)
const spanIdOf = (call_sid: string, index: number): string =>
  createHash('sha256').update(`${call_sid}/${index}`).digest('hex').slice(0, 16)

interface Exporter {
  /** @throws Error when the collector does not accept the calls */
  send(calls: readonly Traced[]): Promise<void>
  close(): Promise<void>
}

/** Loads the library only here, so that installations without a collector do not pay for it. */
async function openExporter(url: string): Promise<Exporter> {
  const [api, { BasicTracerProvider }, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ])
  const finished: ReadableSpan[] = []
  const next = { trace_id: '', span_id: '' }
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'strowger' }),
    idGenerator: { generateTraceId: () => next.trace_id, generateSpanId: () => next.span_id },
    spanProcessors: [
      {
        onStart() {},
        onEnd(span: ReadableSpan) {
          finished.push(span)
        },
        forceFlush: async () => undefined,
        shutdown: async () => undefined,
      },
    ],
  })
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: EXPORT_LIMIT_MS })
  return {
    async send(calls) {
      for (const call of calls) makeSpans(api, provider, next, call)
      const spans = finished.splice(0)
      if (spans.length === 0) return
      await new Promise<void>((resolve, reject) =>
        exporter.export(spans, ({ code, error }) =>
          code === 0 ? resolve() : reject(error ?? new Error('the collector did not take the traces')),
        ),
      )
    },
    async close() {
      await exporter.shutdown()
      await provider.shutdown()
    },
  }
}

function makeSpans(
  { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags }: typeof import('@opentelemetry/api'),
  provider: TracerProvider,
  next: { trace_id: string; span_id: string },
  call: Traced,
): void {
  const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL }
  const tracer = provider.getTracer('strowger')
  next.trace_id = traceIdOf(call.root_sid)
  const below = (spanId: string) =>
    trace.setSpanContext(ROOT_CONTEXT, { traceId: next.trace_id, spanId, traceFlags: TraceFlags.SAMPLED })
  for (const [index, facts] of call.trace.entries()) {
    next.span_id = spanIdOf(call.sid, index)
    const parent = index > 0 ? spanIdOf(call.sid, 0) : call.parent_sid === null ? null : spanIdOf(call.parent_sid, 0)
    const options = { kind: kinds[facts.kind], startTime: facts.begin_ms, attributes: { ...facts.attributes } }
    const span = tracer.startSpan(facts.name, options, parent === null ? ROOT_CONTEXT : below(parent))
    for (const event of facts.events) span.addEvent(event.name, { ...event.attributes }, event.at_ms)
    if (facts.error !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: facts.error })
    span.end(facts.end_ms)
  }
}

import { ending } from '../../core/domain/calls/endings.ts'
import { type CallRequest, readCallRequest } from '../../core/domain/calls/request.ts'
import type { Topic } from '../../core/runtime/bus.ts'
import {
  type CallRow,
  changeRequest,
  dropWaitingRedirects,
  findAccountCall,
  insertCommand,
} from '../../core/state/calls/calls.ts'
import { finishCall } from '../../core/state/calls/running-calls.ts'
import type { Trx } from '../../core/state/index.ts'
import { isEnding, runInstead } from '../live/calls.ts'
import { type LiveChange, liveChange } from '../live/live-change.ts'
import { VoiceRefused } from './dispatch.ts'
import { forReason, isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import { inlineMarkup, methodOf, namesOf, urlOf } from './fields.ts'
import type { Form } from './form.ts'
import { presentVoiceCall, VoiceCall } from './present.ts'
import { type VoiceContext, voiceRoute } from './route.ts'

export const unknownCall = (sid: string): VoiceRefusal => forReason('not_found', { value: `The call ${sid}` })

const fetchRoute = voiceRoute({
  method: 'GET',
  path: '/Calls/{call_sid}',
  suffix: '.json',
  summary: 'Fetch a call',
  replies: { 200: VoiceCall },
  async run({ account, services, params }) {
    const row = await findAccountCall(services.state.db, account.account_sid, params.call_sid)
    return row ? { status: 200, body: presentVoiceCall(row) } : unknownCall(params.call_sid)
  },
})

const updateRoute = voiceRoute({
  method: 'POST',
  path: '/Calls/{call_sid}',
  suffix: '.json',
  summary: 'Redirect or end a live call; carried out in the background',
  fields: {
    'Url, Twiml, InlineMarkup, Status': 'exactly one; Status is completed or canceled',
    Method: 'GET or POST, with Url',
    'FallbackUrl, FallbackMethod, StatusCallback, StatusCallbackMethod, StatusCallbackEvent': 'replaced, with Url',
  },
  example: { Twiml: '<Response><Say>Goodbye.</Say></Response>' },
  replies: { 200: VoiceCall },
  async run(context) {
    const wanted = readChange(context.form)
    if (isVoiceRefusal(wanted)) return wanted
    const { row, wake } = await change(context, context.params.call_sid, wanted)
    return { status: 200, body: presentVoiceCall(row), wake }
  },
})

const deleteRoute = voiceRoute({
  method: 'DELETE',
  path: '/Calls/{call_sid}',
  suffix: '.json',
  summary: 'Hang up a call, or cancel it before the answer; its record stays',
  replies: { 204: null },
  async run(context) {
    const { wake } = await change(context, context.params.call_sid, { kind: 'delete', payload: {}, callbacks: null })
    return { status: 204, wake }
  },
})

export const call = [fetchRoute, updateRoute, deleteRoute]

interface WantedChange {
  readonly kind: LiveChange
  /** The payload of the command: the document of a redirect. */
  readonly payload: object
  /** The fields of the call's original request that a redirect replaces. */
  readonly callbacks: Partial<CallRequest> | null
}

function readChange(form: Form): WantedChange | VoiceRefusal {
  const given = [form.text('Url'), form.text('Twiml') ?? form.text('InlineMarkup'), form.text('Status')]
  if (given.filter(one => one !== undefined).length !== 1)
    return numbered(20001, 'Give exactly one of Url, the inline markup and Status.')
  const status = form.text('Status')
  if (status !== undefined) return readStatus(status)
  const url = urlOf(form, 'Url')
  if (isVoiceRefusal(url)) return url
  const markup = inlineMarkup(form)
  if (isVoiceRefusal(markup)) return markup
  const callbacks: Partial<CallRequest> | VoiceRefusal = url === null ? {} : readCallbacks(form)
  if (isVoiceRefusal(callbacks)) return callbacks
  const { fallback_url, fallback_method } = callbacks
  const fallback = fallback_url ? { fallback_url, fallback_method } : {}
  return { kind: 'redirect', payload: { url, method: methodOf(form, 'Method'), markup, ...fallback }, callbacks }
}

function readStatus(status: string): WantedChange | VoiceRefusal {
  if (status === 'completed') return { kind: 'complete', payload: {}, callbacks: null }
  if (status === 'canceled') return { kind: 'cancel', payload: {}, callbacks: null }
  return numbered(20001, `Status ${status.slice(0, 60)} is neither completed nor canceled.`)
}

function readCallbacks(form: Form): Partial<CallRequest> | VoiceRefusal {
  const fallback_url = urlOf(form, 'FallbackUrl')
  if (isVoiceRefusal(fallback_url)) return fallback_url
  const status_callback = urlOf(form, 'StatusCallback')
  if (isVoiceRefusal(status_callback)) return status_callback
  const events = namesOf(form, 'StatusCallbackEvent')
  return {
    ...(fallback_url === null ? {} : { fallback_url, fallback_method: methodOf(form, 'FallbackMethod') }),
    ...(status_callback === null
      ? {}
      : {
          status_callback,
          status_callback_method: methodOf(form, 'StatusCallbackMethod'),
          status_callback_events: events.length === 0 ? ['completed'] : events,
        }),
  }
}

/**
 * Reads the call, decides and queues a command for its node, all in one transaction: the second of two concurrent
 * changes sees the command of the first. A queued call that no node has taken is ended here.
 */
async function change(
  { account, services, now_ms }: VoiceContext,
  sid: string,
  wanted: WantedChange,
): Promise<{ readonly row: CallRow; readonly wake: readonly Topic[] }> {
  return services.state.transaction(async trx => {
    const row = await findAccountCall(trx, account.account_sid, sid)
    if (!row) throw new VoiceRefused(unknownCall(sid))
    const is_ending = await isEnding(trx, sid)
    const decided = liveChange(wanted.kind, row.status, is_ending)
    if ('refused' in decided) throw new VoiceRefused(notLive(row, is_ending))
    if (decided.command === null) return { row, wake: [] }
    if (decided.command === 'redirect') return redirect(trx, row, wanted, now_ms)
    if (row.status === 'queued' && row.node_id === null) return endQueued(trx, row, now_ms)
    await dropWaitingRedirects(trx, sid, now_ms)
    await insertCommand(trx, sid, decided.command, {}, now_ms)
    return { row, wake: ['commands'] as const }
  })
}

const notLive = (row: CallRow, is_ending: boolean): VoiceRefusal =>
  forReason('call_not_live', { value: row.sid, limit: is_ending ? 'being ended' : row.status })

async function redirect(trx: Trx, row: CallRow, wanted: WantedChange, now_ms: number) {
  await runInstead(trx, row.sid, wanted.payload, now_ms)
  const changed =
    wanted.callbacks && Object.keys(wanted.callbacks).length > 0
      ? await changeRequest(trx, row.sid, { ...readCallRequest(row.request), ...wanted.callbacks }, now_ms)
      : row
  return { row: changed, wake: ['commands'] as const }
}

/** Ends a call that no node has taken. The transaction makes sure that none can still dial it. */
async function endQueued(trx: Trx, row: CallRow, now_ms: number) {
  const ended = await finishCall(trx, row.sid, {
    ending: ending({ cause: 'api', answered: false }),
    ended_ms: now_ms,
    pdd_ms: null,
    media: null,
  })
  return { row: ended ?? row, wake: ['outbox'] as const }
}

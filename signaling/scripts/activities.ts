import type { ActivityCommand } from '../../core/domain/calls/control-commands.ts'
import { iso } from '../../core/runtime/clock.ts'
import { listenerToken } from '../../core/runtime/listener-token.ts'
import { endActivity } from '../../core/state/calls/activities.ts'
import type { Call } from '../b2bua/call.ts'
import type { MediaEvent } from '../b2bua/media.ts'
import type { ScriptHost } from '../b2bua/script-host.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'
import type { ScriptContext } from './context.ts'
import { transcribes } from './engines.ts'
import { activityBegins, activityEnds } from './live-activity.ts'
import { Recognitions } from './recognitions.ts'
import { Siprec } from './siprec.ts'
import { Streams } from './streams.ts'
import { queueCallback } from './tell.ts'

/** A leg of a call that an activity runs on. */
type Side = Pick<ScriptHost, 'call' | 'leg'>
type Start = Extract<ActivityCommand, { readonly act: 'start' }>

type ActivityServices = Omit<ScriptContext, 'voice' | 'rooms' | 'queues' | 'children' | 'sounds'>

/** Starts what the API has begun on a call, beside the document, stops it, or sends a message. Returns the outcome. */
export async function carryOutActivity(
  ctx: ActivityServices,
  call: Pick<Call, 'parties'> | undefined,
  command: ActivityCommand,
): Promise<string> {
  const { state, clock, calls } = ctx
  const [party] = call?.parties ?? []
  if (command.act === 'stop') {
    const running = calls.activities.get(command.sid)
    running?.stop()
    return running ? 'done' : 'not_live'
  }
  if (command.act === 'listen') return party ? listen(ctx, party, command) : 'not_live'
  if (command.act === 'message') return party ? send(party, command) : 'not_live'
  if (!party) {
    await state.transaction(trx => endActivity(trx, command.sid, clock.now()))
    return 'not_live'
  }
  start(ctx, party, command)
  return 'done'
}

/** The voice of the notice. */
const NOTICE = { voice: '', language: 'en-US' } as const

/** Lets a person hear both sides of the call. The control plane ends it with its own end of the stream. */
async function listen(
  { config }: ActivityServices,
  { call, leg }: Side,
  { listener_id, spoken }: Extract<ActivityCommand, { readonly act: 'listen' }>,
): Promise<string> {
  const { account_sid } = call.facts
  await leg.session.hub.request('listen.start', {
    leg_id: leg.id,
    listener_id,
    token: listenerToken(config.master_key, listener_id),
    account_sid,
    call_sid: call.sid,
    spoken: spoken === null ? null : { ...NOTICE, text: spoken },
  })
  call.event('state', null, { what: 'listening', text: spoken === null ? 'the parties hear a tone' : spoken })
  return 'done'
}

async function send({ call, leg }: Side, { sid, content }: Extract<ActivityCommand, { readonly act: 'message' }>) {
  const dialog = leg.sipDialog
  if (!dialog) return 'not_live'
  const { status } = await dialog.request('MESSAGE', { headers: { 'Content-Type': 'application/json' }, body: content })
  if (status < 300) return 'done'
  call.event('warning', null, { detail: `the client answered ${status} to the message ${sid}` })
  return 'refused'
}

/** What has media events and ends with the call. */
interface Running {
  media?(event: MediaEvent): void
  drop(): void
}

function start(ctx: ActivityServices, party: Side, command: Start): void {
  const { call } = party
  const { sid, name } = command
  let unwatch: () => void = () => undefined
  const over = (): void => unwatch()
  const follow = <R extends Running>(running: R): R => {
    unwatch = call.watchMedia(event => running.media?.(event))
    call.onEnd(() => {
      unwatch()
      running.drop()
    })
    return running
  }
  if (command.kind === 'stream') {
    const { url, track, parameters, callback: status_callback } = command
    const settings = { url, track, both_ways: false, parameters, status_callback }
    follow(new Streams(ctx, party, over)).start({ type: 'start_stream', id: sid, name, ...settings }, sid)
  } else if (command.kind === 'siprec') {
    const { track, parameters, callback: status_callback } = command
    const connector = command.connector ?? ctx.config.siprec[0]?.name ?? ''
    const settings = { connector, track, parameters, status_callback }
    follow(new Siprec(ctx, party, over)).start({ type: 'start_siprec', id: sid, name, ...settings }, sid)
  } else if (command.kind === 'subscription') subscribe(ctx, call, command)
  else if (transcribes(ctx, call, command.engine)) {
    const { act: _act, kind: _kind, engine, callback: status_callback, ...rest } = command
    const settings = { ...rest, ...(engine === null ? {} : { engine }), status_callback }
    follow(new Recognitions(ctx, party, over)).transcribe({ type: 'start_transcription', id: sid, ...settings }, sid)
  } else cannotTranscribe(call, command)
}

function cannotTranscribe(
  call: ScriptedCall,
  { sid, callback }: Extract<Start, { readonly kind: 'transcription' }>,
): void {
  const { clock } = call
  const detail = 'no transcription engine is configured'
  call.event('warning', null, { detail, transcription: sid })
  void call.persist(trx => endActivity(trx, sid, clock.now()))
  if (!callback) return
  const about = { AccountSid: call.facts.account_sid, CallSid: call.sid, TranscriptionSid: sid }
  const failed = { TranscriptionEvent: 'transcription-error', TranscriptionError: detail }
  void queueCallback(call, callback, { ...about, ...failed, Timestamp: iso(clock.now()) })
}

/** The most messages of a client that one subscription passes on. */
const MAX_MESSAGES = 1000

function subscribe(
  { calls }: ActivityServices,
  call: ScriptedCall,
  { sid, callback }: Extract<Start, { readonly kind: 'subscription' }>,
): void {
  const { clock } = call
  let left = MAX_MESSAGES
  const listener = (content: string): void => {
    if (left-- <= 0) return
    const about = { AccountSid: call.facts.account_sid, CallSid: call.sid, SubscriptionSid: sid }
    void queueCallback(call, callback, { ...about, Content: content, Timestamp: iso(clock.now()) })
  }
  const listeners = calls.messageListeners.get(call.sid) ?? new Set()
  calls.messageListeners.set(call.sid, listeners.add(listener))
  const stop = (): void => {
    listeners.delete(listener)
    if (listeners.size === 0) calls.messageListeners.delete(call.sid)
    activityEnds(calls, call, sid)
  }
  activityBegins(calls, call, { sid, kind: 'subscription', name: null, made: true, stop })
  call.onEnd(stop)
}

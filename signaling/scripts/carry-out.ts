import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { Command, Event, StartTimer } from '../../markup/interpreter/types.ts'
import type { CallRegistry, LiveRecording } from '../b2bua/registry.ts'
import type { ScriptHost } from '../b2bua/script-host.ts'
import type { Children } from './children.ts'
import { type DocumentRequester, fetchDocument, sendCallback } from './documents.ts'
import type { LegPlayer } from './player.ts'
import type { Recognitions } from './recognitions.ts'
import type { CallRecorder } from './recorder.ts'
import type { Referrals } from './referrals.ts'
import type { Relays } from './relays.ts'
import type { RunningScript } from './running-script.ts'
import type { Siprec } from './siprec.ts'
import type { Streams } from './streams.ts'

/** The handler of each command of the interpreter, by the command's type. */
export type CommandHandlers = {
  readonly [T in Command['type']]: (command: Extract<Command, { readonly type: T }>) => void
}

/** A script, and the parts that carry out its commands. */
interface Executor {
  readonly script: RunningScript
  readonly player: LegPlayer
  readonly recorder: CallRecorder
  readonly children: Children
  readonly referrals: Referrals
  readonly streams: Streams
  readonly relays: Relays
  readonly recognitions: Recognitions
  readonly siprec: Siprec
  readonly timers: Timers
  readonly pauses: Pauses
  requester(): DocumentRequester
  /** Sets whether each key is reported to the interpreter. */
  collect(on: boolean): void
  over(outcome: Extract<Command, { readonly type: 'done' }>['outcome']): void
}

export function commandHandlers(executor: Executor): CommandHandlers {
  const { script, player, recorder, children, referrals, streams, relays, recognitions, siprec, timers, pauses } =
    executor
  const { host } = script
  const { rooms, queues, visits } = script.ctx
  const emit = (event: Event): void => script.emit(event)
  return {
    fetch: command =>
      void fetchDocument(executor.requester(), command).then(fetched => {
        if (fetched.result.ok && script.kind === 'call') host.call.documentFailed(null)
        emit(fetched)
      }),
    callback: command => void sendCallback(executor.requester(), command),
    answer: ({ id }) => answer(host, () => emit({ type: 'answered', id }), emit),
    reject: ({ sip_code, status }) => host.reject(sip_code, status),
    hangup: () => host.hangup(),
    play: command => player.play(command),
    stop_play: ({ id }) => player.stop(id),
    start_timer: command => timers.start(command, () => emit({ type: 'timer', id: command.id })),
    cancel_timer: ({ id }) => timers.cancel(id),
    digits_on: () => executor.collect(true),
    digits_off: () => executor.collect(false),
    send_digits: ({ id, leg, digits }) => player.sendDigits(id, leg === 'self' ? host.leg : children.leg(leg), digits),
    record: command => recorder.record(command),
    stop_record: ({ id }) => recorder.stop(id),
    start_recording: command => recorder.start(command, command.child === null ? null : children.leg(command.child)),
    stop_recording: ({ id }) => recorder.stop(id),
    pause_recordings: command => pauses.pause(command),
    resume_recordings: ({ id }) => pauses.resume(id),
    dial_child: command => children.dial(command),
    end_child: ({ child, cause }) => children.end(child, cause),
    ring: ({ country }) => {
      children.endEarly()
      if (host.leg.hears) player.ring(country ?? children.country())
      else host.ring()
    },
    stop_ring: () => player.stopRing(),
    relay_early_media: ({ child }) => {
      player.stopRing()
      children.relayEarly(child)
    },
    whisper: command => children.whisper(command),
    bridge: ({ child }) => {
      player.stopRing()
      children.bridge(child)
    },
    transfer_child: command => children.transfer(command),
    refer: command => referrals.send(command),
    answer_refer: command => referrals.answer(command, child => children.leg(child)),
    join_conference: command => visits.enter(script, command, emit),
    leave_conference: () => {
      rooms.leave(script)
      visits.leave(script, 'leave')
    },
    enqueue: command => visits.enter(script, command, emit),
    leave_queue: ({ farewell }) => {
      const seconds = queues.leave(script, 'leave') ?? visits.leave(script, 'leave')
      if (!farewell) return
      const parameters = { ...farewell.parameters, ...(seconds === null ? {} : { QueueTime: String(seconds) }) }
      void sendCallback(executor.requester(), { ...farewell, parameters })
    },
    dequeue: command => visits.enter(script, command, emit),
    stop_dequeue: () => {
      queues.stopDequeue(script)
      visits.leave(script, 'leave')
    },
    start_stream: command => streams.start(command),
    stop_stream: ({ id }) => streams.stop(id),
    start_relay: command => relays.start(command),
    stop_relay: ({ id }) => relays.stop(id),
    recognize: command => recognitions.recognize(command),
    stop_recognize: ({ id }) => recognitions.stop(id),
    start_transcription: command => recognitions.transcribe(command),
    stop_transcription: ({ id }) => recognitions.stop(id),
    start_siprec: command => siprec.start(command),
    stop_siprec: ({ id }) => siprec.stop(id),
    start_echo: () => echo(host),
    note: ({ level, fatal, number, url, line, column, detail }) => {
      host.call.event(level, number, { url, line, column, detail })
      if (fatal && script.kind === 'call') host.call.documentFailed({ number, detail })
    },
    done: ({ outcome }) => executor.over(outcome),
  }
}

/** The pauses of a call's recordings that its document has asked for. */
export class Pauses {
  readonly call_sid: string
  readonly #calls: Pick<CallRegistry, 'recordings' | 'hushes' | 'hushed'>

  constructor(calls: Pick<CallRegistry, 'recordings' | 'hushes' | 'hushed'>, call_sid: string) {
    this.#calls = calls
    this.call_sid = call_sid
  }

  pause({ behavior, by }: Pick<Extract<Command, { readonly type: 'pause_recordings' }>, 'behavior' | 'by'>): void {
    // Recordings that begin meanwhile are silent, too.
    if (by === 'key') this.#calls.hushes.add(this)
    for (const recording of this.#live()) if (recording.paused_by === null) recording.pause(behavior, by)
  }

  resume(id: string | null): void {
    if (id !== null) this.unhush()
    else for (const recording of this.#live()) if (recording.paused_by !== null) recording.resume()
  }

  /** The secret is typed, or the script is over. What others have paused meanwhile stays paused. */
  unhush(): void {
    if (!this.#calls.hushes.delete(this)) return
    for (const recording of this.#live()) if (recording.paused_by === 'key') recording.resume()
  }

  #live(): LiveRecording[] {
    return [...this.#calls.recordings.values()].filter(({ call_sid }) => call_sid === this.call_sid)
  }
}

/** The timers of a run, by their ids. */
export class Timers {
  readonly #clock: Clock
  readonly #running = new Map<string, Timer>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  start({ id, ms }: StartTimer, due: () => void): void {
    const timer = this.#clock.after(ms, () => {
      this.#running.delete(id)
      due()
    })
    this.#running.set(id, timer)
  }

  cancel(id: string): void {
    this.#running.get(id)?.cancel()
    this.#running.delete(id)
  }

  clear(): void {
    for (const timer of this.#running.values()) timer.cancel()
    this.#running.clear()
  }
}

function answer(host: ScriptHost, answered: () => void, emit: (event: Event) => void): void {
  host.answer().then(answered, err => {
    host.call.log.info({ err }, 'the call could not be answered')
    emit({ type: 'hangup' })
  })
}

function echo(host: ScriptHost): void {
  const { leg, call } = host
  leg.session.hub.request('bridge', { a: leg.id, b: leg.id }).catch(err => {
    if (!leg.ended) call.log.warn({ err }, 'the echo of a leg could not be started')
    host.hangup()
  })
}

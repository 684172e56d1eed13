import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { handshakeSignature } from '../../core/runtime/voice-request.ts'
import type { Event, StartStream } from '../../markup/interpreter/types.ts'
import { type MediaEvent, MediaRefusal } from '../b2bua/media.ts'
import type { ScriptHost } from '../b2bua/script-host.ts'
import type { ScriptContext } from './context.ts'
import { activityBegins, activityEnds } from './live-activity.ts'
import { queueCallback } from './tell.ts'

interface Stream {
  readonly command: StartStream
  readonly stream_sid: string
}

const TRACKS = { inbound_track: 'inbound', outbound_track: 'outbound', both_tracks: 'both' } as const

/** Streams the media of one leg to WebSockets (voice-compat.md §12.5). */
export class Streams {
  readonly #ctx: Pick<ScriptContext, 'authToken' | 'calls'>
  readonly #host: Pick<ScriptHost, 'call' | 'leg'>
  readonly #emit: (event: Event) => void
  readonly #streams = new Map<string, Stream>()

  constructor(
    ctx: Pick<ScriptContext, 'authToken' | 'calls'>,
    host: Pick<ScriptHost, 'call' | 'leg'>,
    emit: (event: Event) => void,
  ) {
    this.#ctx = ctx
    this.#host = host
    this.#emit = emit
  }

  /** `made`: the sid of a stream that the API has begun. */
  start(command: StartStream, made?: string): void {
    const { call, leg } = this.#host
    const stream: Stream = { command, stream_sid: made ?? newId.sid('MZ') }
    const fork_id = stream.stream_sid
    this.#streams.set(fork_id, stream)
    // A Connect ends with its stream, which only the application ends.
    if (!command.both_ways) {
      const { id, name } = command
      const about = { sid: fork_id, kind: 'stream', name, made: made !== undefined } as const
      activityBegins(this.#ctx.calls, call, { ...about, stop: () => this.stop(id) })
    }
    const auth_token = this.#ctx.authToken(call.project_id)
    leg.session.hub
      .request('fork.start', {
        leg_id: leg.id,
        fork_id,
        url: command.url,
        tracks: command.both_ways ? 'inbound' : TRACKS[command.track],
        bidirectional: command.both_ways,
        account_sid: call.facts.account_sid,
        call_sid: call.sid,
        stream_sid: stream.stream_sid,
        parameters: { ...command.parameters },
        headers: auth_token === null ? {} : { 'X-Twilio-Signature': handshakeSignature(auth_token, command.url) },
      })
      .catch(error => {
        const detail = error instanceof MediaRefusal ? error.detail : String(error)
        this.#over(fork_id, 31901, detail)
      })
  }

  stop(id: string): void {
    const { leg, call } = this.#host
    for (const [fork_id, { command }] of this.#streams)
      if (command.id === id)
        leg.session.hub
          .request('fork.stop', { leg_id: leg.id, fork_id })
          .catch(err => call.log.debug({ err }, 'a stream was not stopped'))
  }

  media(event: MediaEvent): void {
    if (event.event === 'fork.started') this.#tell(event.fork_id, 'stream-started', null)
    else if (event.event === 'fork.warning' && this.#streams.has(event.fork_id))
      this.#host.call.event('warning', event.code, { detail: event.detail, stream: event.fork_id })
    else if (event.event === 'fork.ended') this.#over(event.fork_id, event.error_code, event.detail)
  }

  /** The leg has ended, and the worker ends its streams. Reports the end of each to the callback and the run. */
  drop(): void {
    for (const fork_id of [...this.#streams.keys()]) this.#over(fork_id, null, 'the call ended')
  }

  #over(fork_id: string, number: number | null, detail: string): void {
    const stream = this.#streams.get(fork_id)
    if (!stream) return
    this.#tell(
      fork_id,
      number === null ? 'stream-stopped' : 'stream-error',
      number === null ? null : `${number}: ${detail}`,
    )
    this.#streams.delete(fork_id)
    activityEnds(this.#ctx.calls, this.#host.call, fork_id)
    if (number !== null) this.#host.call.event('error', number, { detail, stream: fork_id })
    this.#emit({ type: 'stream_ended', id: stream.command.id, number, detail })
  }

  #tell(fork_id: string, event: string, error: string | null): void {
    const stream = this.#streams.get(fork_id)
    const callback = stream?.command.status_callback
    if (!stream || !callback) return
    const { call } = this.#host
    void queueCallback(call, callback, {
      AccountSid: call.facts.account_sid,
      CallSid: call.sid,
      StreamSid: stream.stream_sid,
      ...(stream.command.name === null ? {} : { StreamName: stream.command.name }),
      StreamEvent: event,
      ...(error === null ? {} : { StreamError: error }),
      Timestamp: iso(call.clock.now()),
    })
  }
}

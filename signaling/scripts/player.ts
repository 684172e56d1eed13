import type { Event, Play, PlayItem } from '../../markup/interpreter/types.ts'
import type { PlaySource } from '../../media/protocol/schema.ts'
import type { Leg } from '../b2bua/leg.ts'
import { type MediaEvent, MediaRefusal } from '../b2bua/media.ts'
import type { ScriptHost } from '../b2bua/script-host.ts'
import type { ScriptContext } from './context.ts'
import { type EngineServices, enginesOf } from './engines.ts'
import { missingSound } from './missing-sound.ts'
import type { LentSound } from './stored-sounds.ts'

/** One play request to the media worker: a list of sources, repeated `loop` times. Source i belongs to `items[i]`. */
interface Segment {
  readonly sources: PlaySource[]
  readonly items: number[]
  readonly loop: number
}

interface Playing {
  readonly id: string
  readonly items: readonly PlayItem[]
  readonly segments: Segment[]
  current: Segment | null
  play_id: string
  stopped: boolean
  readonly failures: { item: number; number: number; detail: string }[]
  /** Gives the sounds of the current segment back that come from the store. */
  release: () => void
}

const nothing = (): void => undefined

const RING = 'ring'
const MAX_SOURCES = 100

/** The error number of each prompt failure (voice-compat.md §15). */
const FAULTS = {
  fetch_failed: 11200,
  file_refused: 11200,
  audio_unsupported: 13420,
  speech_failed: 13512,
  voice_unknown: 13511,
} as const

type PlayerServices = EngineServices & Pick<ScriptContext, 'sounds'>

/** Plays prompts to one leg, and sends digits. */
export class LegPlayer {
  readonly #ctx: PlayerServices
  readonly #host: ScriptHost
  readonly #emit: (event: Event) => void
  readonly #prefix: string
  #playing: Playing | null = null
  #ringing = false
  #counter = 0
  readonly #sending = new Map<string, string>()

  constructor(ctx: PlayerServices, host: ScriptHost, emit: (event: Event) => void) {
    this.#ctx = ctx
    this.#host = host
    this.#emit = emit
    // Scripts may follow one another on a leg (a whisper, then the child's own), so their ids must differ.
    this.#prefix = `${host.leg.id}-${Math.random().toString(36).slice(2, 8)}`
  }

  play(command: Play): void {
    const playing: Playing = {
      id: command.id,
      items: command.items,
      segments: segmentsOf(command.items, enginesOf(this.#ctx, this.#host.call).chosen.tts),
      current: null,
      play_id: '',
      stopped: false,
      failures: [],
      release: nothing,
    }
    this.#playing = playing
    this.#next(playing)
  }

  stop(id: string): void {
    const playing = this.#playing
    if (playing?.id !== id) return
    playing.stopped = true
    if (playing.current) this.#stopNow(playing.play_id)
  }

  ring(country: string): void {
    this.loop([{ kind: 'ringback', country }])
  }

  /** Loops a ring tone, or the sound for a waiting caller, until `stopRing`. */
  loop(sources: PlaySource[]): void {
    if (this.#ringing) return
    this.#ringing = true
    this.#request({
      leg_id: this.#host.leg.id,
      play_id: `${this.#prefix}-${RING}`,
      sources,
      loop: 0,
    })
  }

  stopRing(): void {
    if (!this.#ringing) return
    this.#ringing = false
    this.#stopNow(`${this.#prefix}-${RING}`)
  }

  sendDigits(id: string, leg: Leg | null, digits: string): void {
    const done = (): void => this.#emit({ type: 'digits_sent', id })
    if (!leg || leg.ended) {
      done()
      return
    }
    const send_id = `${this.#prefix}-${id}`
    this.#sending.set(send_id, id)
    leg.sendDigits(send_id, digits).catch(err => {
      this.#host.call.log.info({ err }, 'digits could not be sent')
      if (this.#sending.delete(send_id)) done()
    })
  }

  media(event: MediaEvent): void {
    if (event.event === 'digits.sent') {
      const id = this.#sending.get(event.send_id)
      if (id !== undefined && this.#sending.delete(event.send_id)) this.#emit({ type: 'digits_sent', id })
    }
    const playing = this.#playing
    if (event.event !== 'play.ended' || !playing || event.play_id !== playing.play_id) return
    for (const { index, reason, detail } of event.failures) this.#failed(playing, index, FAULTS[reason], detail)
    if (event.reason === 'failed' && event.failures.length === 0) this.#allFailed(playing, event.detail ?? 'failed')
    this.#next(playing)
  }

  drop(): void {
    const playing = this.#playing
    this.#playing = null
    playing?.release()
    if (playing?.current && !this.#host.leg.ended) this.#stopNow(playing.play_id)
    if (!this.#host.leg.ended) this.stopRing()
  }

  #next(playing: Playing): void {
    if (this.#playing !== playing) return
    playing.release()
    playing.release = nothing
    playing.current = null
    const segment = playing.stopped ? undefined : playing.segments.shift()
    if (!segment) {
      this.#playing = null
      this.#emit({ type: 'play_ended', id: playing.id, failures: playing.failures })
    } else if (segment.sources.some(source => source.kind === 'url' && this.#ctx.sounds.isOwn(source.url)))
      void this.#fromStore(playing, segment)
    else this.#start(playing, segment)
  }

  #start(playing: Playing, segment: Segment): void {
    playing.current = segment
    playing.play_id = `${this.#prefix}-${playing.id}-${this.#counter++}`
    const { sources, loop } = segment
    this.#request({ leg_id: this.#host.leg.id, play_id: playing.play_id, sources, loop }, error => {
      this.#allFailed(playing, error)
      this.#next(playing)
    })
  }

  /** Plays a segment whose sounds are partly at our own addresses. Those that the project does not have are skipped. */
  async #fromStore(playing: Playing, segment: Segment): Promise<void> {
    const lent: LentSound[] = []
    const playable: Segment = { sources: [], items: [], loop: segment.loop }
    for (const [index, source] of segment.sources.entries()) {
      const item = segment.items[index] ?? 0
      const own = source.kind === 'url' && this.#ctx.sounds.isOwn(source.url)
      const sound = own ? await this.#ctx.sounds.lend(this.#host.call, source.url) : { source, release: nothing }
      if ('refused' in sound) this.#itemFailed(playing, item, FAULTS.fetch_failed, sound.refused)
      else {
        lent.push(sound)
        playable.sources.push(sound.source)
        playable.items.push(item)
      }
    }
    playing.release = () => {
      for (const { release } of lent.splice(0)) release()
    }
    // The script may have stopped or dropped the play meanwhile.
    if (this.#playing !== playing) playing.release()
    else if (playing.stopped || playable.sources.length === 0) this.#next(playing)
    else this.#start(playing, playable)
  }

  #allFailed(playing: Playing, detail: string): void {
    for (const [index, source] of playing.current?.sources.entries() ?? [])
      this.#failed(playing, index, FAULTS[source.kind === 'speech' ? 'speech_failed' : 'fetch_failed'], detail)
  }

  #failed(playing: Playing, index: number, number: number, detail: string): void {
    const item = playing.current?.items[index]
    if (item !== undefined) this.#itemFailed(playing, item, number, detail)
  }

  #itemFailed(playing: Playing, item: number, number: number, detail: string): void {
    if (playing.failures.some(known => known.item === item)) return
    playing.failures.push({ item, number, detail })
    const failed = playing.items[item]
    if (number === FAULTS.voice_unknown) return
    missingSound(this.#host.call, { url: failed?.kind === 'url' ? failed.url : '', number, detail })
  }

  #request(
    params: { leg_id: string; play_id: string; sources: PlaySource[]; loop: number },
    failed?: (detail: string) => void,
  ) {
    this.#host.leg.session.hub.request('play.start', params).catch(error => {
      if (!this.#host.leg.ended) this.#host.call.log.info({ err: error }, 'could not play')
      failed?.(error instanceof MediaRefusal ? error.detail : String(error))
    })
  }

  #stopNow(play_id: string): void {
    this.#host.leg.session.hub
      .request('play.stop', { leg_id: this.#host.leg.id, play_id })
      .catch(err => this.#host.call.log.debug({ err }, 'play was not stopped'))
  }
}

/** Groups consecutive items with loop 1 into one segment, which plays without gaps. Other items get their own. */
function segmentsOf(items: readonly PlayItem[], engine: string | null): Segment[] {
  const segments: Segment[] = []
  for (const [index, item] of items.entries()) {
    const loop = item.kind === 'silence' ? 1 : item.loop
    const last = segments.at(-1)
    if (last && loop === 1 && last.loop === 1 && last.sources.length < MAX_SOURCES) {
      last.sources.push(sourceOf(item, engine))
      last.items.push(index)
    } else segments.push({ sources: [sourceOf(item, engine)], items: [index], loop })
  }
  return segments
}

function sourceOf(item: PlayItem, engine: string | null): PlaySource {
  if (item.kind === 'url') return { kind: 'url', url: item.url }
  if (item.kind === 'silence') return { kind: 'silence', ms: item.ms }
  const { ssml, voice, language } = item
  return {
    kind: 'speech',
    text: ssml ?? item.text,
    ssml: ssml !== null,
    voice: voice.slice(0, 64),
    language,
    ...(engine === null ? {} : { engine }),
  }
}

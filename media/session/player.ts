import type { EngineEvent, PlayPiece, SampleRate, Stream } from '../../native/index.ts'
import type { Owner } from '../files/audio-threads.ts'
import type { Loaded, Prompts } from '../files/prompts.ts'
import type { EventFields, PlaySource } from '../protocol/schema.ts'

type Failure = EventFields<'play.ended'>['failures'][number]

interface PlayRequest {
  readonly play_id: string
  readonly sources: readonly PlaySource[]
  readonly loop: number
}

type PlayEnded = Omit<EventFields<'play.ended'>, 'leg_id'>

interface Play extends PlayRequest {
  readonly failures: Failure[]
  played_ms: number
  over: boolean
}

type NativeEnd = Extract<EngineEvent, { type: 'play_ended' }>

/**
 * Plays lists of sources on one leg, one list at a time. Each source is one play of the data plane. The next source is
 * loaded while the current one plays.
 */
export class Player {
  readonly #stream: Stream
  readonly #prompts: Prompts
  readonly #owner: Owner
  readonly #onEnded: (ended: PlayEnded) => void
  readonly #pieceEnds = new Map<string, (end: NativeEnd) => void>()
  #current: Play | null = null
  #next_piece = 1

  constructor(stream: Stream, prompts: Prompts, owner: Owner, onEnded: (ended: PlayEnded) => void) {
    this.#stream = stream
    this.#prompts = prompts
    this.#owner = owner
    this.#onEnded = onEnded
  }

  start(request: PlayRequest, rate_hz: SampleRate): void {
    this.stop()
    const play: Play = { ...request, failures: [], played_ms: 0, over: false }
    this.#current = play
    this.#run(play, rate_hz).catch((error: Error) => this.#end(play, 'failed', error.message))
  }

  /** Stops a play. Without an id, stops the current one. */
  stop(play_id?: string): void {
    const play = this.#current
    if (!play || (play_id !== undefined && play.play_id !== play_id)) return
    this.#end(play, 'stopped')
    if (!this.#stream.closed) this.#stream.stopPlay()
  }

  /** Plays one piece without emitting events. */
  sound(piece: PlayPiece, done: () => void): void {
    this.stop()
    this.#native([piece], 1).then(done, done)
  }

  pieceEnded(end: NativeEnd): void {
    this.#pieceEnds.get(end.play_id)?.(end)
    this.#pieceEnds.delete(end.play_id)
  }

  async #run(play: Play, rate_hz: SampleRate): Promise<void> {
    const alone = play.sources.length === 1
    for (let pass = 0; play.loop === 0 || pass < play.loop; pass++) {
      const before_ms = play.played_ms
      let coming = this.#load(play, 0, rate_hz)
      for (let index = 0; index < play.sources.length; index++) {
        const loaded = await coming
        coming = this.#load(play, index + 1, rate_hz)
        if (play.over) return
        if (loaded && 'refused' in loaded) {
          if (pass === 0) play.failures.push({ index, reason: loaded.refused, detail: loaded.detail })
        } else if (loaded) {
          if (pass === 0 && loaded.warning !== undefined)
            play.failures.push({ index, reason: 'voice_unknown', detail: loaded.warning })
          await this.#sound(play, loaded.pieces, alone ? play.loop : loaded.endless ? 0 : 1)
          if (play.over) return
        }
      }
      // Do not loop over a list that produces no audio.
      if (alone || play.played_ms === before_ms) break
    }
    const unplayed = play.failures.filter(({ reason }) => reason !== 'voice_unknown')
    this.#end(play, unplayed.length === play.sources.length ? 'failed' : 'finished')
  }

  #load(play: Play, index: number, rate_hz: SampleRate): Promise<Loaded | null> {
    const source = play.sources[index]
    if (!source || play.over) return Promise.resolve(null)
    return this.#prompts.load(source, rate_hz, this.#owner).catch((error: Error) => ({
      refused: 'file_refused' as const,
      detail: error.message,
    }))
  }

  async #sound(play: Play, pieces: readonly PlayPiece[], loop: number): Promise<void> {
    const heard = pieces.filter(piece => piece.kind !== 'pcm' || piece.samples.length > 0)
    if (heard.length === 0) return
    const end = await this.#native(heard, loop)
    play.played_ms += end.played_ms
    // The data plane ends a play early only when the stream is closed.
    if (end.reason !== 'finished') this.#end(play, 'stopped')
  }

  #native(pieces: readonly PlayPiece[], loop: number): Promise<NativeEnd> {
    const piece_id = `p${this.#next_piece++}`
    return new Promise(resolve => {
      this.#pieceEnds.set(piece_id, resolve)
      this.#stream.play({ play_id: piece_id, pieces, loop })
    })
  }

  #end(play: Play, reason: PlayEnded['reason'], detail?: string): void {
    if (play.over) return
    play.over = true
    if (this.#current === play) this.#current = null
    const { play_id, failures } = play
    this.#onEnded({ play_id, reason, failures, ...(detail === undefined ? {} : { detail }) })
  }
}

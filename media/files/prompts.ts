import { dirname, resolve } from 'node:path'
import type { Door } from '../../core/runtime/doors.ts'
import { openPlainFile } from '../../core/runtime/plain-file.ts'
import type { PlayPiece, SampleRate } from '../../native/index.ts'
import { MAX_SOUND_BYTES, type PlaySource, SOUNDS_FOLDER } from '../protocol/schema.ts'
import type { AudioThreads, Owner } from './audio-threads.ts'
import type { Pcm } from './pcm.ts'
import { ringbackPieces } from './ringback.ts'
import type { Speech } from './speech.ts'
import type { UrlAudio } from './url-audio.ts'

type FailureReason = 'fetch_failed' | 'audio_unsupported' | 'speech_failed' | 'file_refused'

export type Loaded =
  /** `warning`: the engine's default voice speaks, because the engine does not have the named one. */
  | { readonly pieces: readonly PlayPiece[]; readonly endless: boolean; readonly warning?: string }
  | { readonly refused: FailureReason; readonly detail: string }

export interface Prompts {
  /** Loads the audio of a source at a rate that the leg can play. The loaders of slow sources share and cache them. */
  load(source: PlaySource, rate_hz: SampleRate, owner: Owner): Promise<Loaded>
}

interface PromptOptions {
  readonly data_dir: string
  /** Leads to the recordings, and so to `SOUNDS_FOLDER`, after this process has changed users. */
  readonly recordings: Door
  readonly speech: Speech
  readonly urls: UrlAudio
  readonly audio: AudioThreads
}

type Audio = { readonly pcm: Pcm } | { readonly refused: FailureReason; readonly detail: string }

export function createPrompts({ data_dir, recordings, speech, urls, audio }: PromptOptions): Prompts {
  const file = async (path: string, owner: Owner): Promise<Audio> => {
    const bytes = dirname(path) === SOUNDS_FOLDER ? await readShared(recordings.path(resolve(data_dir, path))) : null
    if (bytes === null) return { refused: 'file_refused', detail: `the prompt is not a file of ${SOUNDS_FOLDER}` }
    return audio.decode(bytes, null, owner)
  }

  const atRate = async (heard: Audio, rate_hz: SampleRate, owner: Owner, from_ms = 0): Promise<Loaded> => {
    if ('refused' in heard) return heard
    const fitted = await audio.fit(heard.pcm, rate_hz, from_ms, owner)
    if ('refused' in fitted) return fitted
    // The rate is the requested one, or a lower one that legs can play too.
    const { samples, rate_hz: played_hz } = fitted.pcm
    return { pieces: [{ kind: 'pcm', samples, rate_hz: played_hz as SampleRate }], endless: false }
  }

  return {
    async load(source, rate_hz, owner) {
      switch (source.kind) {
        case 'tone': {
          const { hz, on_ms, off_ms, total_ms } = source
          return { pieces: [{ kind: 'tone', hz, on_ms, off_ms, total_ms }], endless: total_ms === null }
        }
        case 'silence':
          return { pieces: [{ kind: 'silence', ms: source.ms }], endless: false }
        case 'ringback':
          return { pieces: ringbackPieces(source.country), endless: true }
        case 'speech': {
          const spoken = await speech.speak({ ...source, owner })
          const loaded = await atRate(spoken, rate_hz, owner)
          if ('refused' in spoken || spoken.warning === undefined || 'refused' in loaded) return loaded
          return { ...loaded, warning: spoken.warning }
        }
        case 'url':
          return atRate(await urls.get(source.url, owner), rate_hz, owner, source.from_ms)
        case 'file':
          return atRate(await file(source.path, owner), rate_hz, owner, source.from_ms)
      }
    },
  }
}

/** Reads a file of `SOUNDS_FOLDER`; null when it is missing, too large, or no file of its own. */
async function readShared(path: string): Promise<Buffer | null> {
  try {
    const file = await openPlainFile(path)
    try {
      const { size } = await file.stat()
      return size <= MAX_SOUND_BYTES ? await file.readFile() : null
    } finally {
      await file.close()
    }
  } catch {
    // A missing or unreadable file cannot be played.
    return null
  }
}

import { readFile, realpath, stat } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { type PlayPiece, resample, type SampleRate } from '../../native/index.ts'
import type { PlaySource } from '../protocol/schema.ts'
import { decodeAudio } from './decode.ts'
import type { Mp3Decoder } from './mp3.ts'
import type { Pcm } from './pcm.ts'
import { ringbackPieces } from './ringback.ts'
import type { Speech } from './speech.ts'
import type { UrlAudio } from './url-audio.ts'

export type FailureReason = 'fetch_failed' | 'audio_unsupported' | 'speech_failed' | 'file_refused'

export type Loaded =
  | { readonly pieces: readonly PlayPiece[]; readonly endless: boolean }
  | { readonly refused: FailureReason; readonly detail: string }

export interface Prompts {
  /** What a source sounds like, at a rate that suits the leg. Slow sources are shared and cached below. */
  load(source: PlaySource, rate_hz: SampleRate): Promise<Loaded>
}

export interface PromptOptions {
  readonly data_dir: string
  readonly speech: Speech
  readonly urls: UrlAudio
  readonly mp3: Mp3Decoder
}

const MAX_FILE_BYTES = 48 * 1024 * 1024

export function createPrompts({ data_dir, speech, urls, mp3 }: PromptOptions): Prompts {
  const file = async (path: string): Promise<{ pcm: Pcm } | { refused: FailureReason; detail: string }> => {
    const found = await insideFolder(data_dir, path)
    if (found === null) return { refused: 'file_refused', detail: 'the prompt is not a file inside the data folder' }
    return decodeAudio(await readFile(found), null, mp3)
  }

  return {
    async load(source, rate_hz) {
      switch (source.kind) {
        case 'tone': {
          const { hz, on_ms, off_ms, total_ms } = source
          return { pieces: [{ kind: 'tone', hz, on_ms, off_ms, total_ms }], endless: total_ms === null }
        }
        case 'silence':
          return { pieces: [{ kind: 'silence', ms: source.ms }], endless: false }
        case 'ringback':
          return { pieces: ringbackPieces(source.country), endless: true }
        case 'speech':
          return atRate(await speech.speak(source), rate_hz)
        case 'url':
          return atRate(await urls.get(source.url), rate_hz, source.from_ms)
        case 'file':
          return atRate(await file(source.path), rate_hz, source.from_ms)
      }
    },
  }
}

function atRate(
  audio: { pcm: Pcm } | { refused: FailureReason; detail: string },
  rate_hz: SampleRate,
  from_ms = 0,
): Loaded {
  if ('refused' in audio) return audio
  const { pcm } = audio
  const rest = pcm.samples.subarray(Math.round((from_ms * pcm.rate_hz) / 1000))
  return { pieces: [{ kind: 'pcm', samples: resample(rest, pcm.rate_hz, rate_hz), rate_hz }], endless: false }
}

/** The real path of a file inside `folder`, links followed; null when it is elsewhere, missing, or too large. */
async function insideFolder(folder: string, path: string): Promise<string | null> {
  try {
    const real = await realpath(resolve(folder, path))
    const inside = real.startsWith(join(await realpath(folder), sep))
    const about = await stat(real)
    return inside && about.isFile() && about.size <= MAX_FILE_BYTES ? real : null
  } catch {
    // Missing or unreadable: both mean that there is nothing to play.
    return null
  }
}

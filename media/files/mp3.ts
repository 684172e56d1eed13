import { MPEGDecoder } from 'mpg123-decoder'
import { type Decoded, MAX_SECONDS, unsupported } from './pcm.ts'

const PIECE_BYTES = 64 * 1024

export interface Mp3Decoder {
  decode(bytes: Uint8Array): Promise<Decoded>
}

/**
 * Decodes MPEG audio to mono PCM. A long file takes seconds, so only the threads of audio-threads.ts and tests use it.
 */
export const mp3Decoder: Mp3Decoder = {
  async decode(bytes) {
    const decoder = new MPEGDecoder()
    try {
      await decoder.ready
      const pcm = decodeAll(decoder, bytes)
      return pcm.rate_hz === 0 ? unsupported('the file holds no MPEG audio') : { pcm }
    } catch (error) {
      return unsupported(`the MPEG audio cannot be decoded: ${(error as Error).message}`)
    } finally {
      decoder.free()
    }
  },
}

function decodeAll(decoder: MPEGDecoder, bytes: Uint8Array): { samples: Int16Array; rate_hz: number } {
  const pieces: Int16Array[] = []
  let length = 0
  let rate_hz = 0
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const { channelData, samplesDecoded, sampleRate } = decoder.decode(bytes.subarray(at, at + PIECE_BYTES))
    if (samplesDecoded === 0) continue
    rate_hz = sampleRate
    pieces.push(mixed(channelData, samplesDecoded))
    length += samplesDecoded
    if (length >= MAX_SECONDS * rate_hz) break
  }
  const samples = new Int16Array(length)
  let at = 0
  for (const piece of pieces) {
    samples.set(piece, at)
    at += piece.length
  }
  return { samples, rate_hz }
}

function mixed(channels: readonly Float32Array[], length: number): Int16Array {
  const samples = new Int16Array(length)
  for (let index = 0; index < length; index++) {
    let sum = 0
    for (const channel of channels) sum += channel[index] ?? 0
    samples[index] = Math.max(-32_768, Math.min(32_767, Math.round((sum / channels.length) * 32_767)))
  }
  return samples
}

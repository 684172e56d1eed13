/** The format of the samples that become an MP3 file: 16 bits, the channels in turn. */
export interface Mp3Format {
  readonly rate_hz: number
  readonly channels: 1 | 2
  readonly kbps: number
}

/** What is known of an MP3 file before one of its bytes is made. */
export interface Mp3Shape extends Mp3Format {
  readonly seconds: number
  readonly bytes: number
}

/** Bytes before the samples in the WAV files that the media worker writes. */
export const WAV_HEAD_BYTES = 44

/** Bits per second of a channel at each rate. With these every frame has a whole number of bytes, so none is padded. */
const KBPS: Readonly<Record<number, number>> = { 8000: 32, 16000: 64, 24000: 64, 32000: 64, 48000: 64 }

/** The encoder begins with this much silence. */
const DELAY_SAMPLES = 576

/**
 * Returns the shape of the MP3 of a recording, from the head of its WAV file; null when the media worker did not write
 * that head. Layer III frames of one bit rate are equally long (ISO/IEC 11172-3 §2.4.3.1, ISO/IEC 13818-3 §2.4.3.1), so
 * that the length is known without encoding, which ranges and Content-Length need.
 */
export function mp3Shape(head: Buffer, wav_bytes: number): Mp3Shape | null {
  if (head.length < WAV_HEAD_BYTES || wav_bytes < WAV_HEAD_BYTES) return null
  const named = head.toString('latin1', 0, 4) === 'RIFF' && head.toString('latin1', 8, 16) === 'WAVEfmt '
  const pcm = head.readUInt16LE(20) === 1 && head.readUInt16LE(34) === 16
  if (!named || !pcm || head.toString('latin1', 36, 40) !== 'data') return null
  const channels = head.readUInt16LE(22)
  const rate_hz = head.readUInt32LE(24)
  const channel_kbps = KBPS[rate_hz]
  if ((channels !== 1 && channels !== 2) || channel_kbps === undefined) return null
  const samples = Math.floor((wav_bytes - WAV_HEAD_BYTES) / (2 * channels))
  const kbps = channel_kbps * channels
  const frame_samples = rate_hz >= 32_000 ? 1152 : 576
  const frame_bytes = (frame_samples / 8) * ((kbps * 1000) / rate_hz)
  return { rate_hz, channels, kbps, seconds: samples / rate_hz, bytes: framesOf(samples, frame_samples) * frame_bytes }
}

/** Counts the frames of LAME: after the last sample come at least 576 samples of silence, which decoders need. */
function framesOf(samples: number, frame_samples: number): number {
  const begun = samples + DELAY_SAMPLES
  const rest = frame_samples - (begun % frame_samples)
  return (begun + (rest < DELAY_SAMPLES ? rest + frame_samples : rest)) / frame_samples
}

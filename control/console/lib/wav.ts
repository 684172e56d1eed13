/** The loudness of a recording over time. Each channel has a list of values between 0 and 1. */
export interface Wave {
  readonly channels: readonly Float32Array[]
  readonly seconds: number
}

/** Computes the peaks of a RIFF/WAVE file with 16-bit PCM; null for other encodings, which the browser decodes. */
export function peaksOf(bytes: ArrayBuffer, columns: number): Wave | null {
  const view = new DataView(bytes)
  const tag = (at: number): string => String.fromCharCode(...new Uint8Array(bytes, at, 4))
  if (bytes.byteLength < 44 || tag(0) !== 'RIFF' || tag(8) !== 'WAVE') return null
  let at = 12
  let format: { coding: number; channels: number; rate: number; bits: number } | null = null
  while (at + 8 <= bytes.byteLength) {
    const name = tag(at)
    const size = view.getUint32(at + 4, true)
    if (name === 'fmt ')
      format = {
        coding: view.getUint16(at + 8, true),
        channels: view.getUint16(at + 10, true),
        rate: view.getUint32(at + 12, true),
        bits: view.getUint16(at + 22, true),
      }
    if (name === 'data') {
      if (format?.coding !== 1 || format.bits !== 16 || format.channels < 1) return null
      return peaks(
        new Int16Array(bytes.slice(at + 8, at + 8 + Math.min(size, bytes.byteLength - at - 8) - (size % 2))),
        format,
        columns,
      )
    }
    at += 8 + size + (size % 2)
  }
  return null
}

function peaks(samples: Int16Array, { channels, rate }: { channels: number; rate: number }, columns: number): Wave {
  const frames = Math.floor(samples.length / channels)
  const found = Array.from({ length: channels }, () => new Float32Array(columns))
  for (let frame = 0; frame < frames; frame += 1) {
    const column = Math.min(columns - 1, Math.floor((frame / frames) * columns))
    for (let channel = 0; channel < channels; channel += 1) {
      const value = Math.abs(samples[frame * channels + channel] ?? 0) / 32_768
      const lane = found[channel]
      if (lane && value > (lane[column] ?? 0)) lane[column] = value
    }
  }
  return { channels: found, seconds: frames / rate }
}

export function peaksOfAudio(audio: AudioBuffer, columns: number): Wave {
  const channels = Array.from({ length: audio.numberOfChannels }, (_, index) => {
    const samples = audio.getChannelData(index)
    const lane = new Float32Array(columns)
    for (const [at, value] of samples.entries()) {
      const column = Math.min(columns - 1, Math.floor((at / samples.length) * columns))
      lane[column] = Math.max(lane[column] ?? 0, Math.abs(value))
    }
    return lane
  })
  return { channels, seconds: audio.duration }
}

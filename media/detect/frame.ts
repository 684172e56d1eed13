/** Measures of one short frame of 8 kHz PCM. */

const FULL_SCALE = 32_767
const RATE_HZ = 8000

/** Returns the level in dBm0 (a full-scale sine has 3.14 dBm0, ITU-T G.711); -90 for digital silence. */
export function frameLevelDbm0(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  if (sum === 0 || samples.length === 0) return -90
  return Math.max(-90, 10 * Math.log10((2 * sum) / samples.length / FULL_SCALE ** 2) + 3.14)
}

/**
 * Returns the frequency of a tone from 400 to 2300 Hz that holds most of the energy, as fax and answering machines send
 * it. Returns null for other audio.
 */
export function pureTone(samples: Int16Array): number | null {
  const hz = crossingHz(samples)
  if (hz < 380 || hz > 2320) return null
  let energy = 0
  for (const sample of samples) energy += sample * sample
  // Zero crossings are accurate only to a few hertz, so take the best of three neighbours.
  const best = Math.max(...[-15, 0, 15].map(offset => toneEnergy(samples, hz + offset)))
  return best / energy > 0.85 ? hz : null
}

/** Returns the frequency from zero crossings, with linear interpolation between samples. */
function crossingHz(samples: Int16Array): number {
  let first = -1
  let last = -1
  let count = 0
  for (let index = 1; index < samples.length; index++) {
    const before = samples[index - 1] ?? 0
    const here = samples[index] ?? 0
    if (before < 0 === here < 0) continue
    last = index - here / (here - before)
    if (first < 0) first = last
    count++
  }
  return count < 3 ? 0 : ((count - 1) / 2 / (last - first)) * RATE_HZ
}

/** Returns the energy of a sine of this frequency in the frame (Goertzel's algorithm). */
function toneEnergy(samples: Int16Array, hz: number): number {
  const coefficient = 2 * Math.cos((2 * Math.PI * hz) / RATE_HZ)
  let before = 0
  let last = 0
  for (const sample of samples) {
    const next = sample + coefficient * last - before
    before = last
    last = next
  }
  const power = last * last + before * before - coefficient * last * before
  return (2 * power) / samples.length
}

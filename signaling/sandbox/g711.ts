/** ITU-T G.711. `PCMU` is µ-law, `PCMA` is A-law. */
export type Law = 'PCMU' | 'PCMA'

const BIAS = 0x84
const CLIP = 32_635

/** Returns the position (0 to 7) of the highest bit that is set in the eight bits from `lowest_bit`. */
function segment(value: number, lowest_bit: number): number {
  let exponent = 7
  for (let mask = 1 << (lowest_bit + 7); exponent > 0 && (value & mask) === 0; mask >>= 1) exponent--
  return exponent
}

function muLaw(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0
  const magnitude = Math.min(sample < 0 ? ~sample : sample, CLIP) + BIAS
  const exponent = segment(magnitude, 7)
  return ~(sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 0x0f)) & 0xff
}

function aLaw(sample: number): number {
  const sign = sample >= 0 ? 0x80 : 0
  const magnitude = Math.min(sample < 0 ? ~sample : sample, 32_767)
  const exponent = segment(magnitude, 7)
  const mantissa = (magnitude >> (exponent === 0 ? 4 : exponent + 3)) & 0x0f
  return (sign | (exponent << 4) | mantissa) ^ 0x55
}

const ENCODE = { PCMU: muLaw, PCMA: aLaw } as const
export const SILENCE_BYTE: Readonly<Record<Law, number>> = { PCMU: 0xff, PCMA: 0xd5 }

/** G.711 codes of this segment and above stand for magnitudes over about 400 of 32,768: sound, and no idle noise. */
const SOUND_SEGMENT = 2
/** The exclusive or that turns a code into sign, segment and mantissa. */
const INVERTED = { PCMU: 0xff, PCMA: 0x55 } as const

/** Whether a sample of the payload is louder than the noise of a line on which nobody speaks. */
export const hasSound = (law: Law, payload: Buffer): boolean =>
  payload.some(code => (((code ^ INVERTED[law]) >> 4) & 7) >= SOUND_SEGMENT)

/** Encodes each sample as one byte. */
export function encode(law: Law, samples: Int16Array): Buffer {
  const bytes = Buffer.alloc(samples.length)
  const one = ENCODE[law]
  for (let i = 0; i < samples.length; i++) bytes[i] = one(samples[i] ?? 0)
  return bytes
}

import type { CodecName } from '../../core/domain/codecs/codec.ts'
import { codecByName } from '../../core/domain/codecs/registry.ts'

/**
 * The inputs of the E-model (ITU-T G.107) with its default values, reduced to what a gateway can observe: codec, loss
 * and delay. Wide-band codecs are rated on the narrow-band scale, where they cannot exceed G.711.
 */
interface Impairments {
  readonly codec: CodecName
  /** The share of packets that were lost or too late, 0 to 1. */
  readonly loss: number
  /** The mean length of loss bursts divided by that of random loss; 1 when losses are random. */
  readonly burst_ratio: number
  /** One way, mouth to ear. */
  readonly delay_ms: number
}

/** Ro - Is of G.107 with default values for room noise, loudness and quantisation. */
const BASIC = 93.2

/** Returns the transmission rating R, 0 to 93.2. */
export function rFactor({ codec, loss, burst_ratio, delay_ms }: Impairments): number {
  const { ie, bpl } = codecByName(codec).impairment
  const loss_percent = Math.min(Math.max(loss, 0), 1) * 100
  const burst = Math.max(1, burst_ratio)
  // G.107 §3.5: Ie,eff = Ie + (95 - Ie) · Ppl / (Ppl / BurstR + Bpl)
  const equipment = ie + ((95 - ie) * loss_percent) / (loss_percent / burst + bpl)
  return Math.min(Math.max(BASIC - delayImpairment(delay_ms) - equipment, 0), BASIC)
}

/**
 * Returns Id by the piecewise approximation of G.107's curve that is customary under echo control (Cole and Rosenbluth
 * 2001).
 */
function delayImpairment(delay_ms: number): number {
  const delay = Math.max(delay_ms, 0)
  return 0.024 * delay + (delay > 177.3 ? 0.11 * (delay - 177.3) : 0)
}

/** Converts a rating R to a mean opinion score, 1 to 4.5 (G.107 annex B). */
export function mosOfR(r: number): number {
  if (r <= 0) return 1
  if (r >= 100) return 4.5
  return Math.max(1, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)
}

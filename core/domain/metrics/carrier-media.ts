import { type LegFigures, SUMMED } from '../calls/leg-figures.ts'
import { meanJitter, meanMos } from './present.ts'
import { HOUR_MS, KEPT_MS } from './steps.ts'

/** The media that passed between us and a carrier: sums over the final figures of its legs, answered or not. */
export type CarrierMedia = Readonly<
  Record<(typeof SUMMED)[number] | 'legs' | 'jitter_legs' | 'jitter_us' | 'mos_legs' | 'mos_thousandths', number>
>

export const CARRIER_MEDIA_NAMES = [
  'legs',
  ...SUMMED,
  'jitter_legs',
  'jitter_us',
  'mos_legs',
  'mos_thousandths',
] as const satisfies readonly (keyof CarrierMedia)[]

/** Returns the contribution of one leg. Sums of integers are exact in any order. */
export function carrierMediaOf(figures: LegFigures): CarrierMedia {
  const { jitter_ms, mos } = figures
  return {
    legs: 1,
    ...(Object.fromEntries(SUMMED.map(name => [name, figures[name]])) as Record<(typeof SUMMED)[number], number>),
    jitter_legs: jitter_ms === null ? 0 : 1,
    jitter_us: Math.round((jitter_ms ?? 0) * 1000),
    mos_legs: mos === null ? 0 : 1,
    mos_thousandths: Math.round((mos ?? 0) * 1000),
  }
}

/** Whether all steps of a day (UTC) are still kept. */
export const hasCarrierMedia = (day: string, now_ms: number): boolean => Date.parse(day) >= now_ms - KEPT_MS[HOUR_MS]

/** Adds up media, and computes the means over the legs that measured them; null without one. */
export function presentCarrierMedia(all: readonly CarrierMedia[]) {
  const sum = (name: keyof CarrierMedia): number => all.reduce((total, media) => total + media[name], 0)
  const sums = Object.fromEntries(CARRIER_MEDIA_NAMES.map(name => [name, sum(name)])) as CarrierMedia
  const { jitter_legs, jitter_us, mos_legs, mos_thousandths, ...counts } = sums
  return { ...counts, jitter_ms: meanJitter({ jitter_legs, jitter_us }), mos: meanMos({ mos_legs, mos_thousandths }) }
}

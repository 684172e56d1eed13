import { type LegFigures, SUMMED } from '../calls/leg-figures.ts'

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

import type { LegFigures } from '../../../domain/calls/leg-figures.ts'
import { beginOf, CARRIER_MEDIA_NAMES, carrierMediaOf, STEPS_MS } from '../../../domain/metrics/index.ts'
import type { Query } from '../query.ts'

export const CARRIER_KEY = ['carrier_id', 'step_ms', 'begin_ms'] as const

const COLUMNS = [...CARRIER_KEY, ...CARRIER_MEDIA_NAMES]
const ADD = `insert into carrier_media_step (${COLUMNS.join(', ')})
  values ${STEPS_MS.map(() => `(${COLUMNS.map(() => '?').join(', ')})`).join(', ')}
  on conflict (${CARRIER_KEY.join(', ')}) do update
  set ${CARRIER_MEDIA_NAMES.map(name => `${name} = carrier_media_step.${name} + excluded.${name}`).join(', ')}`

/** Adds the final figures of a leg to the sums of its carrier, by minute and by hour. */
export function addCarrierMedia(query: Query, carrier_id: string, figures: LegFigures): void {
  const media = carrierMediaOf(figures)
  const ended_ms = Date.parse(figures.ended_at)
  const values = CARRIER_MEDIA_NAMES.map(name => media[name])
  query(ADD, ...STEPS_MS.flatMap(step_ms => [carrier_id, step_ms, beginOf(ended_ms, step_ms), ...values]))
}

import type { CarrierWish } from '../../core/domain/carriers/plan.ts'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { insertCarrier } from '../../core/state/configuration/carriers.ts'
import type { State } from '../../core/state/index.ts'

/** Adds a carrier. Signaling nodes apply it at their next look at the configuration. Returns its id. */
export const addCarrier = (state: State, carrier: Omit<CarrierWish, 'enabled'>, now: string): Promise<string> =>
  state.transaction(async trx => {
    const id = await insertCarrier(trx, { ...carrier, enabled: true }, now)
    await bumpConfiguration(trx)
    return id
  })

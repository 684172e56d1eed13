import { boundedMap } from '../../core/domain/bounded-map.ts'
import { addressKey } from '../../core/domain/identity/index.ts'
import { type Clock, iso } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { noteDigestProof } from '../../core/state/configuration/sources.ts'
import type { State } from '../../core/state/index.ts'

const MAX_NOTED = 50_000

/**
 * Records the addresses from which a trunk's peers have proved a password, so that no other tenant can claim one of
 * them. Each pair of trunk and address is written once a day, concurrently with the call: it must not delay or fail it.
 */
export function digestProofs(around: { readonly state: State; readonly clock: Clock; readonly log: Log }) {
  const { state, clock, log } = around
  const noted = boundedMap<string, true>(MAX_NOTED)
  let of_day = ''
  return (trunk_id: string, address: string): void => {
    const day = iso(clock.now()).slice(0, 10)
    if (day !== of_day) noted.clear()
    of_day = day
    const key = `${trunk_id} ${address}`
    const address_key = addressKey(address)
    if (noted.has(key) || address_key === null) return
    noted.set(key, true)
    noteDigestProof(state.db, { trunk_id, address, address_key, day }).catch(err => {
      noted.delete(key)
      log.warn({ err, trunk_id }, 'the address of an authenticated peer could not be saved')
    })
  }
}

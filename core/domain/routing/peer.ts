import { parseAddress } from '../identity/address.ts'
import { holdsAddress, type SourceIndex } from '../identity/sources.ts'
import { hostOf } from '../sip/address.ts'

/**
 * Reports whether a target is the calling peer itself: its address, configured or last seen, is one of the trunk's
 * sources (design section 4, "Egress").
 */
export function isPeer<Owner>(sources: SourceIndex<Owner>, sip_uri: string, seen_at: string | null): boolean {
  const host = hostOf(sip_uri)
  const address = parseAddress(host) ? host : seen_at
  return address !== null && holdsAddress(sources, address)
}

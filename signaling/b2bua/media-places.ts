import { readSdp } from '../../core/domain/codecs/sdp.ts'
import type { PeerAddresses } from '../trunks/peer-addresses.ts'
import { MediaRefusal } from './media.ts'

/** The most host names of one SDP that we resolve. */
const MAX_HOSTS = 2

/** The peer whose SDP names hosts. */
interface Named {
  readonly carrier_id: string | null
  /** The source address of its SIP; null when unknown. */
  readonly came_from: string | null
  /** Whether its media may come from where its SIP came from. */
  readonly relaxed: boolean
}

/** Addresses by host name of a c= line; '' for a missing one. */
type Places = Record<string, string>

/** Asks the media worker about an SDP; again with the addresses of host names in its c= lines, when it needs them. */
export async function askPlaced<T>(
  peer_addresses: Pick<PeerAddresses, 'mediaAddress'>,
  sdp: string,
  peer: () => Named,
  ask: (places: { places?: Places }) => Promise<T>,
): Promise<T> {
  try {
    return await ask({})
  } catch (error) {
    if (!(error instanceof MediaRefusal) || error.reason !== 'address_unknown') throw error
    return ask({ places: await placesOf(peer_addresses, sdp, peer()) })
  }
}

/**
 * Returns addresses for the host names of an SDP: those that `PeerAddresses` allows, else, for a relaxed peer, where
 * its SIP came from. The media itself then decides, as for any peer behind a NAT (design section 4).
 */
async function placesOf(
  peer_addresses: Pick<PeerAddresses, 'mediaAddress'>,
  sdp: string,
  { carrier_id, came_from, relaxed }: Named,
): Promise<Places> {
  const reading = readSdp(sdp)
  const unplaced = 'refused' in reading ? [] : reading.sdp.unplaced.slice(0, MAX_HOSTS)
  const asked = { carrier_id, ...(came_from === null ? {} : { proven_host: came_from }) }
  const places: Places = {}
  for (const { host, port } of unplaced) {
    const named = host === '' ? null : await peer_addresses.mediaAddress(host, port, asked)
    const address = named ?? (relaxed ? came_from : null)
    if (address !== null) places[host] = address
  }
  return places
}

import { readAddresses, type SipAddress } from './address.ts'
import { unquoted } from './uri.ts'

/** The caller in a Remote-Party-ID, a predecessor of P-Asserted-Identity and Privacy that is still in use. */
interface RemoteParty {
  readonly address: SipAddress
  /** The number must not be shown: `privacy=full` or `privacy=uri`. */
  readonly restricted: boolean
}

/**
 * Returns the first value for the calling party; null when there is none. A missing `party` means the calling party.
 * A name that must not be shown (`privacy=name`) is left out.
 */
export function readRemoteParty(header: string | null): RemoteParty | null {
  for (const address of readAddresses(header)) {
    if (parameter(address, 'party', 'calling') !== 'calling') continue
    const privacy = parameter(address, 'privacy', 'off')
    const shown = privacy === 'name' ? { ...address, name: null } : address
    return { address: shown, restricted: privacy === 'full' || privacy === 'uri' }
  }
  return null
}

const parameter = ({ params }: SipAddress, name: string, missing: string): string =>
  unquoted(params.get(name) ?? missing).toLowerCase()

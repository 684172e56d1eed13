import { parseAddress } from './address.ts'
import { compileSources, holdsAddress } from './sources.ts'

/** What is known of the peer of a dialog. */
interface DialogPeer {
  /** Addresses from which it set the dialog up: its INVITE, or its answers to ours. */
  readonly set_up_from: readonly string[]
  /** Enabled sources of its trunk or carrier, CIDRs. */
  readonly sources: readonly string[]
  /** Hosts of the targets of its trunk or carrier: its other machines. */
  readonly target_hosts: readonly string[]
  /**
   * A peer that is known by its password and not by its address may move: a relaxed digest trunk, a browser, a SIP
   * address that a script dialled.
   */
  readonly roams: boolean
}

/**
 * Whether a request within a dialog (BYE, re-INVITE, REFER …) may come from this address. Its Call-ID and tags can be
 * seen or guessed by others; what a trunk's INVITE must not do, its other requests must not do either (design section
 * 4).
 */
export function mayActInDialog(peer: DialogPeer, address: string): boolean {
  if (peer.roams) return true
  const given = plain(address)
  if (peer.set_up_from.some(known => plain(known) === given)) return true
  if (peer.target_hosts.some(host => plain(host) === given)) return true
  const index = compileSources(peer.sources.map(cidr => ({ cidr, selector_precedence: 0, owner: cidr })))
  return holdsAddress(index, address.replace(/^\[|\]$/g, ''))
}

/** One spelling of an address: IPv4 within IPv6 and upper case are the same as without. */
const plain = (address: string): string => {
  const bare = address.replace(/^\[|\]$/g, '')
  const parsed = parseAddress(bare)
  return parsed ? parsed.words.join('.') + (parsed.words.length === 1 ? '' : ' v6') : bare.toLowerCase()
}

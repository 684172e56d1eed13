import { parseAddress } from './address.ts'
import { compileSources, holdsAddress } from './sources.ts'

/** What is known of the peer of a dialog. */
interface DialogPeer {
  /** Addresses from which the peer set up the dialog: those of its INVITE, or of its responses to ours. */
  readonly set_up_from: readonly string[]
  /** CIDRs of the enabled sources of its trunk or carrier. */
  readonly sources: readonly string[]
  /** Hosts of the targets of its trunk or carrier: its other machines. */
  readonly target_hosts: readonly string[]
  /**
   * The peer's address may change, because its address does not identify it: a relaxed digest trunk, a browser, or a
   * SIP address that a script dialled.
   */
  readonly roams: boolean
}

/**
 * Reports whether a request within a dialog (BYE, re-INVITE, REFER …) may come from this address. Others can see or
 * guess the dialog's Call-ID and tags, so in-dialog requests obey the same source rules as INVITEs (design section 4).
 */
export function mayActInDialog(peer: DialogPeer, address: string): boolean {
  if (peer.roams) return true
  const given = plain(address)
  if (peer.set_up_from.some(known => plain(known) === given)) return true
  if (peer.target_hosts.some(host => plain(host) === given)) return true
  const index = compileSources(peer.sources.map(cidr => ({ cidr, selector_precedence: 0, owner: cidr })))
  return holdsAddress(index, address.replace(/^\[|\]$/g, ''))
}

/** Canonicalizes an address: unwraps IPv4-mapped IPv6, removes brackets and folds case. */
const plain = (address: string): string => {
  const bare = address.replace(/^\[|\]$/g, '')
  const parsed = parseAddress(bare)
  return parsed ? parsed.words.join('.') + (parsed.words.length === 1 ? '' : ' v6') : bare.toLowerCase()
}

import { sameTenant, type Tenant } from '../identity/claims.ts'

/**
 * Whether a call is told as one from the network is: another tenant's peer calls, and its trunk, addresses and headers
 * are none of who is called. A project knows its subaccounts, which do not know it, nor each other. `caller` is null
 * for carriers.
 */
export const isForeign = (caller: Tenant | null, owner: Tenant): boolean =>
  caller !== null && !sameTenant(caller, owner) && !(owner.subaccount_id === null && ofOneProject(caller, owner))

const ofOneProject = (a: Tenant, b: Tenant): boolean => a.project_id === b.project_id

/** The Call-ID that a call is told with: that of a foreign caller's dialog is written by its PBX. */
export const toldCallId = (call: { readonly foreign_caller: 0 | 1 | null; readonly sip_call_id: string | null }) =>
  call.foreign_caller === 1 ? null : call.sip_call_id

interface Addresses {
  readonly remote_address: string | null
  readonly remote_port: number | null
  readonly signalled_address: string | null
  readonly signalled_port: number | null
}

/** Figures of a leg without where its peer is. */
export const withoutAddresses = <Stats extends Addresses>(stats: Stats): Stats => ({
  ...stats,
  remote_address: null,
  remote_port: null,
  signalled_address: null,
  signalled_port: null,
})

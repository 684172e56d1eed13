import { sameTenant, type Tenant } from '../identity/claims.ts'

/**
 * Reports whether the called tenant sees a call as one from the network: another tenant's peer placed it, whose trunk,
 * addresses and headers stay hidden. A project may see its subaccounts; they may see neither the project nor each
 * other. `caller` is null for carriers.
 */
export const isForeign = (caller: Tenant | null, owner: Tenant): boolean =>
  caller !== null && !sameTenant(caller, owner) && !(owner.subaccount_id === null && ofOneProject(caller, owner))

const ofOneProject = (a: Tenant, b: Tenant): boolean => a.project_id === b.project_id

/** Returns the Call-ID to report. That of a foreign caller's dialog is hidden, because its PBX chose it. */
export const shownCallId = (call: { readonly foreign_caller: 0 | 1 | null; readonly sip_call_id: string | null }) =>
  call.foreign_caller === 1 ? null : call.sip_call_id

interface Addresses {
  readonly remote_address: string | null
  readonly remote_port: number | null
  readonly signalled_address: string | null
  readonly signalled_port: number | null
}

/** Returns the statistics of a leg without the addresses of its peer. */
export const withoutAddresses = <Stats extends Addresses>(stats: Stats): Stats => ({
  ...stats,
  remote_address: null,
  remote_port: null,
  signalled_address: null,
  signalled_port: null,
})

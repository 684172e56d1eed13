import type { OfferFacts, Over, ServiceType, Transport, Verdict } from '../../../domain/admission/index.ts'
import type { CallerOwnership } from '../../../domain/identity/caller.ts'
import type { ParsedNumber } from '../../../domain/numbers/parse.ts'

/** A call that asks to be admitted. */
export interface AdmissionRequest {
  /** Key of the slots that are taken; any text for a dry run. */
  readonly call_sid: string
  /**
   * `outbound`: to the world. `inbound`: to one of our numbers, as its route sees it. `on_net`: from a trunk peer to
   * one of our numbers, as the peer's trunk sees it; the number's side is a request of its own, with part `inbound`.
   */
  readonly part: 'outbound' | 'inbound' | 'on_net'
  /** What an outbound leg goes over; unset: the network. */
  readonly over?: Over
  readonly node_id: string
  readonly project_id: string
  /**
   * Outbound and on_net: the peer's trunk, or the voice service. Inbound: what the number is routed to. A trunk stands
   * for its subtrunk too: the one that its number (the caller's outwards, the called one inwards) is delegated to.
   */
  readonly service: Readonly<{ type: ServiceType; id: string }>
  /** As given: national formats of the trunk's country are understood. Of a SIP URI its user part. */
  readonly called: string
  readonly caller: string
  /** The caller of the inbound call that a Dial sends on (design section 4). */
  readonly forwarded_caller?: boolean
  /** How the peer's INVITE came; null when no peer sent it. */
  readonly transport: Transport | null
  readonly offer: OfferFacts | null
  /** Targets of the trunk that are usable, when the caller has left out those that are the peer itself. */
  readonly own_targets?: number | null
  /** Wall time, epoch ms. */
  readonly now_ms: number
  /** For tests alone: what the store's clock reads. */
  readonly store_ms?: number
}

export interface AdmissionContext {
  readonly called: ParsedNumber | null
  /** The caller as it may be presented, with plus; null when it is no number. */
  readonly caller_e164: string | null
  readonly caller_ownership: CallerOwnership
  /** The trunk whose targets the call leaves by: the peer's, or that of the caller's number; null for none. */
  readonly trunk_id: string | null
  readonly subtrunk_id: string | null
  readonly subaccount_id: string | null
  readonly policy_id: string | null
  /** What the policy says of recording; null when nothing applies. `consented` false: nothing is recorded. */
  readonly recording: Readonly<{
    mode: 'off' | 'all'
    consented: boolean
    channels: number
    retention_days: number
  }> | null
  /** Of everything that had a part in the decision, for the call's explanation. */
  readonly revisions: Readonly<Record<string, number>>
  readonly price: Readonly<{
    price_book_id: string
    rate_prefix: string
    label: string
    rate_minor: number
    rate_unit: 'minute' | 'second'
    increment_initial_seconds: number
    increment_additional_seconds: number
    currency: string
  }> | null
  /** Seconds after the answer that the money held pays for; null when the call costs nothing. */
  readonly paid_until_seconds: number | null
}

export type AdmissionOutcome = Verdict & AdmissionContext

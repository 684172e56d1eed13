import type { OfferFacts, Service, Transport, Verdict, WayName } from '../../../domain/admission/index.ts'
import type { CallerOwnership } from '../../../domain/identity/caller.ts'
import type { ParsedNumber } from '../../../domain/numbers/parse.ts'

/** A call for admission to decide on. */
export interface AdmissionRequest {
  /** Key of the slots to take; any text for a dry run. */
  readonly call_sid: string
  /**
   * `outbound`: to the public network. `inbound`: to one of our numbers, for its route. `on_net`: from a trunk peer to
   * one of our numbers, for the peer's trunk; a separate request with part `inbound` covers the number's side.
   */
  readonly part: 'outbound' | 'inbound' | 'on_net'
  /** How an outbound leg leaves; null for the other parts. */
  readonly way: WayName | null
  /** An inbound part for the second route of a number. Its slots are held beside those of the first. */
  readonly second_route?: boolean
  /** A carrier brings this inbound call: the number's project pays its inbound price (docs/http.md). */
  readonly from_carrier?: boolean
  readonly node_id: string
  readonly project_id: string
  /**
   * Outbound and on_net: the peer's trunk or the voice service. Inbound: the target of the number's route. A trunk also
   * stands for the subtrunk that its number is delegated to: the called one of an inbound call, else the diverting
   * one, else the caller's.
   */
  readonly service: Service
  /** The number as given, also in a national format of the trunk's country, or the user part of a SIP URI. */
  readonly called: string
  readonly caller: string
  /** A Dial forwards the caller of the inbound call (design section 4). */
  readonly forwarded_caller?: boolean
  /** Our number whose peer transfers the call by REFER. The caller may be a number of the network then. */
  readonly diverting?: string | null
  /** Transport of the peer's INVITE; null when no peer sent it. */
  readonly transport: Transport | null
  readonly offer: OfferFacts | null
  /** Number of usable targets of the trunk, when signaling has excluded those that are the peer itself. */
  readonly own_targets?: number | null
  /** Wall time, epoch ms. */
  readonly now_ms: number
  /** Only for tests: the store's time, epoch ms. */
  readonly store_ms?: number
}

export interface DecisionFacts {
  readonly called: ParsedNumber | null
  /** The caller number to present, with plus; null when the caller is not a number. */
  readonly caller_e164: string | null
  readonly caller_ownership: CallerOwnership
  /** The trunk whose targets carry the call: the peer's, or that of the caller's number; null for none. */
  readonly trunk_id: string | null
  readonly subtrunk_id: string | null
  readonly subaccount_id: string | null
  readonly policy_id: string | null
  /** The policy's recording settings; null when none apply. Without consent (`consented` false) nothing is recorded. */
  readonly recording: Readonly<{
    mode: 'off' | 'all'
    consented: boolean
    channels: number
    retention_days: number
  }> | null
  /** Revisions of all resources that the decision used, for its explanation. */
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
  /** Seconds after the answer that the reserved money pays for; null when the call costs nothing. */
  readonly paid_until_seconds: number | null
}

export type AdmissionOutcome = Verdict & DecisionFacts

/** The measured facts of each kind of alert. The control plane gathers them; judge.ts evaluates them. */

import type { AlertSubject } from './types.ts'

interface Named {
  readonly id: string
  readonly name: string
}

export interface BalanceFacts {
  /** Null for a project that does not prepay. */
  readonly account: (Named & { readonly balance_minor: number; readonly held_minor: number }) | null
  readonly currency: string
}

/** A level's spend in a day or month, including the reservations of running calls. */
export interface SpendFacts {
  readonly currency: string
  /** `2026-03-02` or `2026-03`. */
  readonly period: string
  readonly levels: readonly (Named & {
    readonly level: 'project' | 'subaccount' | 'trunk' | 'subtrunk' | 'policy'
    /** The subject of the alert: the trunk of a subtrunk; the project of a policy, which services share. */
    readonly subject: AlertSubject
    readonly spent_minor: number
    /** Of a day; null in the facts of a month. */
    readonly cap_minor: number | null
  })[]
}

/** Totals of a service's calls in a window to the destinations of one rate. */
export interface DestinationGroup {
  /** Digits of the rate that priced them. */
  readonly rate_prefix: string
  readonly label: string
  /** Digits that all called numbers have in common. */
  readonly common_digits: string
  readonly rate_minor_per_minute: number
  readonly calls: number
  readonly settled: number
  /** Settled calls shorter than six seconds, including unanswered ones. */
  readonly short: number
  readonly live: number
  /** Charges, plus the reservations of running calls. */
  readonly spend_minor: number
  readonly held_minor: number
  /** When the service first called this destination; null: in this window. */
  readonly first_seen_at: string | null
  /** The number of earlier nights (midnight to five o'clock) with calls there. */
  readonly earlier_nights: number
}

export interface SourceSeen {
  readonly address: string
  readonly first_seen_at: string
  readonly calls: number
  /** Spend of its calls in the window. */
  readonly spend_minor: number
  /** When it was blocked after wrong passwords of the trunk; null for a source of calls alone. */
  readonly blocked_at: string | null
}

/**
 * Traffic of one trunk, or of a project's voice account with its applications, in the window of a policy. The id is the
 * trunk's or the project's.
 */
export interface ServiceTraffic extends Named {
  /** Null for the voice account. */
  readonly trunk_id: string | null
  readonly currency: string
  readonly window_seconds: number
  readonly spend_minor: number
  readonly held_minor: number
  readonly calls: number
  /** Spend in the window of the platform's ceiling. */
  readonly ceiling_spend_minor: number
  readonly destinations: readonly DestinationGroup[]
  /** Sources whose first call came within the window, except the first source that a trunk ever had. */
  readonly new_sources: readonly SourceSeen[]
  /** Whether it is night (midnight to five) in the organization's time zone. */
  readonly night: boolean
}

interface TargetFacts extends Named {
  readonly trunk: Named
  readonly enabled_targets: number
  readonly degraded_targets: number
  readonly state: 'unknown' | 'healthy' | 'degraded'
  readonly misses: number
  readonly last_code: number | null
  readonly checked_at: string
}

/** A webhook endpoint, of which deliveries failed. */
interface EndpointFacts extends Named {
  /** When the oldest delivery was queued that was tried in vain and still waits; null for none. */
  readonly failing_since: string | null
  /** The most tries that one of these had, and when the last was; null for none. */
  readonly misses: number
  readonly failed_at: string | null
  readonly last_error: string | null
  /** When it last took a delivery; null for never. */
  readonly delivered_at: string | null
}

export interface HealthFacts {
  /** False while no signaling node is alive to probe the targets. */
  readonly available: boolean
  readonly targets: readonly TargetFacts[]
  /** The project's enabled webhook endpoints. */
  readonly endpoints: readonly EndpointFacts[]
  readonly now: string
}

export interface ApplyFacts {
  readonly available: boolean
  readonly trunks: readonly (Named & {
    readonly revision: number
    readonly effective_revision: number
    readonly failed: boolean
    readonly error: string | null
  })[]
  /** Sources of trunks that a carrier overrules (design section 10, "Sources"). */
  readonly overruled: readonly {
    readonly id: string
    readonly cidr: string
    readonly trunk: Named & { readonly revision: number }
    readonly signaling_fqdn: string
  }[]
}

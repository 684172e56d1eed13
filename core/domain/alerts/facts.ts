/** What is measured for each kind of alert; gathered by the control plane, judged by judge.ts. */

interface Named {
  readonly id: string
  readonly name: string
}

export interface BalanceFacts {
  /** Null: the project does not pay in advance. */
  readonly account: (Named & { readonly balance_minor: number; readonly held_minor: number }) | null
  readonly currency: string
}

/** What a level spent in a day or month, money that running calls hold included. */
export interface SpendFacts {
  readonly currency: string
  /** `2026-03-02` or `2026-03`. */
  readonly period: string
  readonly levels: readonly (Named & {
    readonly type: 'organization' | 'subaccount' | 'trunk'
    readonly spent_minor: number
    readonly cap_minor: number | null
  })[]
}

/** What a trunk's calls of a window to the destinations of one rate came to. */
export interface DestinationGroup {
  /** Digits of the rate that priced them. */
  readonly rate_prefix: string
  readonly label: string
  /** Digits that all called numbers have in common. */
  readonly common_digits: string
  readonly rate_minor_per_minute: number
  readonly calls: number
  readonly answered: number
  readonly settled: number
  /** Settled calls of less than six seconds, unanswered ones too. */
  readonly short: number
  readonly live: number
  /** Charged, and held by calls in progress. */
  readonly spend_minor: number
  readonly held_minor: number
  /** When the trunk's project called there first; null: in this window. */
  readonly first_seen_at: string | null
  /** Nights (midnight to five o'clock) before this one with calls there. */
  readonly earlier_nights: number
}

export interface SourceSeen {
  readonly address: string
  readonly first_seen_at: string
  readonly calls: number
  /** Spend of its calls in the window. */
  readonly spend_minor: number
}

/** Traffic of one trunk in the window of a policy. */
export interface TrunkTraffic extends Named {
  readonly currency: string
  readonly window_seconds: number
  readonly spend_minor: number
  readonly held_minor: number
  readonly calls: number
  /** Spend in the window of the platform's ceiling. */
  readonly ceiling_spend_minor: number
  readonly destinations: readonly DestinationGroup[]
  /** Sources whose first call came within the window; none for the first source that a trunk ever had. */
  readonly new_sources: readonly SourceSeen[]
  /** It is night (midnight to five) where the organization is. */
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

export interface HealthFacts {
  /** False: no signaling node is alive, so that nobody asks the targets. */
  readonly available: boolean
  readonly targets: readonly TargetFacts[]
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

import type { CallerFacts } from '../identity/caller.ts'
import type { CalledNumber } from '../numbers/parse.ts'
import type { ApplicableRules } from '../policies/destinations.ts'
import type { Rate } from '../rating/types.ts'
import type { Reason, ReasonFacts } from '../reasons/index.ts'

/** What a policy can be attached to. The calls of each leave by the ways of ways.ts that name it. */
export const SERVICE_TYPES = ['trunk', 'subtrunk', 'voice_application', 'automation'] as const
export type ServiceType = (typeof SERVICE_TYPES)[number]
export type Level = 'subtrunk' | 'trunk' | 'policy' | 'subaccount' | 'project'
export type Transport = 'udp' | 'tcp' | 'tls' | 'ws' | 'wss'

/**
 * `outbound`: to the telephone network. `inbound`: to one of our numbers, for the trunk or application that receives
 * it. `on_net`: from a trunk peer to one of our numbers, for the peer's trunk. Only `outbound` has a destination.
 * Outbound legs and inbound calls that a carrier brings have a price; calls that stay on the platform have none.
 */
type Direction = 'outbound' | 'inbound' | 'on_net'

/**
 * How an outbound leg is delivered. `network`: to a telephone number, through a trunk's targets or a carrier. `sip`:
 * to a SIP URI in a document. `client`: to a registered browser or telephone. Only `network` needs a number, a route
 * and an owned caller. A number in a SIP URI is checked as well.
 */
export type Over = 'network' | 'sip' | 'client'

/** A limit and its current use. Null means no ceiling; 0 admits nothing. */
interface Ceiling {
  readonly limit: number | null
  readonly used: number
}

/** A level whose ceilings this call counts against. */
export interface LevelFacts {
  readonly level: Level
  readonly id: string
  readonly name: string
  readonly concurrency: Ceiling
  readonly cps: Ceiling
  /** Minor units: settled charges of calls admitted today, plus the reservations of running calls. */
  readonly daily_spend: Ceiling
  /** Minor units of the rolling hour, counted in the same way. */
  readonly velocity: Ceiling
  readonly max_destination_rate_minor: number | null
  readonly max_call_duration_seconds: number | null
}

/** An owner that must be enabled: the project, its subaccount, trunk or subtrunk. */
export interface HolderFacts {
  readonly kind: 'project' | 'subaccount' | 'trunk' | 'subtrunk'
  readonly id: string
  readonly name: string
  readonly status: string
  readonly enabled: boolean
}

export interface TrunkFacts {
  readonly name: string
  readonly direction: 'inbound' | 'outbound' | 'both'
  readonly require_tls: boolean
  readonly media_security: 'rtp' | 'sdes_srtp_required'
  readonly codecs: readonly string[]
}

export interface OfferFacts {
  /** Names in our spelling, without telephone-event. */
  readonly codecs: readonly string[]
  /** Whether the offer has RTP/SAVP with a=crypto that we can answer. */
  readonly sdes_srtp: boolean
}

export interface PolicyFacts extends ApplicableRules {
  readonly id: string
  readonly name: string
}

interface ContainmentFacts {
  readonly id: string
  /** Digits after the plus. */
  readonly prefix: string
  readonly case_ref: string
}

export interface AdmissionFacts {
  readonly direction: Direction
  readonly over: Over
  readonly service: Readonly<{ type: ServiceType; id: string; name: string }>
  /** Those that the call has, in the order project, subaccount, trunk, subtrunk. */
  readonly holders: readonly HolderFacts[]
  /** The policy whose attachment to the service has outbound calls switched off; null when none has. */
  readonly switched_off_by: string | null
  /** The first policy in whose calling hours the moment is not, and that moment; null when all have it. */
  readonly closed_by: Readonly<{ policy: string; local_time: string }> | null
  /** The trunk that the call comes from or goes to; null without one. */
  readonly trunk: TrunkFacts | null
  /** The transport of the peer's INVITE; null for a call without one (REST, markup). */
  readonly transport: Transport | null
  /** The peer's offer; null for none (REST, markup, late offer). */
  readonly offer: OfferFacts | null
  readonly called: CalledNumber
  readonly caller: CallerFacts
  /** The class of a destination that is worth stealing, and whether an operator opened it; null for any other. */
  readonly risk: Readonly<{ name: string; label: string; open: boolean }> | null
  /** Parent first: for a subtrunk the policy of its trunk, then its own. */
  readonly policies: readonly PolicyFacts[]
  /** Currently in force, for the trunk or the whole project. */
  readonly containments: readonly ContainmentFacts[]
  /** `free`: a sandbox project or test call. A missing rate does not refuse it, and no money is held. */
  readonly billing: 'rated' | 'free'
  readonly price_book: Readonly<{ id: string; name: string }> | null
  /** What the call costs the project of this side; null for a side without a price. */
  readonly rate: Rate | null
  /** Targets and carrier routes that the call could take. */
  readonly routes: number
  /** In the order subtrunk, trunk, policy, subaccount, project. */
  readonly levels: readonly LevelFacts[]
  /** Minor units that the payer has left, without those that running calls hold; null means no ceiling. */
  readonly balance: Readonly<{ name: string; available_minor: number | null }>
}

export interface LevelFinding {
  readonly level: Level
  readonly id: string
  readonly limit: number | null
  readonly used: number
}

/** The result of one check. */
export interface CheckResult {
  readonly result: 'passed' | 'refused' | 'skipped'
  readonly reason?: Reason
  /** The expected and the actual value. */
  readonly limit: string | number | null
  readonly used: string | number | null
  readonly sentence: string
  /** Values of the reason's sentence, when refused. */
  readonly facts?: ReasonFacts
  /** Every level that was compared, when the check compares levels. */
  readonly levels?: readonly LevelFinding[]
}

export interface TracedFinding extends CheckResult {
  readonly check: string
}

export interface Check {
  readonly name: string
  /** The reasons that this check can refuse with. */
  readonly reasons: readonly Reason[]
  /** The kinds of call that this check applies to. */
  readonly asked: readonly Direction[]
  decide(facts: AdmissionFacts): CheckResult
}

export interface Admitted {
  readonly admitted: true
  /** The call ends when it reaches this duration; null means no limit. */
  readonly max_duration_seconds: number | null
  /** The reason with which the call would end there. */
  readonly max_duration_reason: 'max_duration' | 'spend_exhausted' | null
  /** Money to hold for the first increment, minor units. */
  readonly reserve_minor: number
  readonly trace: readonly TracedFinding[]
}

export interface RefusedCall {
  readonly admitted: false
  readonly reason: Reason
  readonly sentence: string
  readonly facts: ReasonFacts
  readonly trace: readonly TracedFinding[]
}

export type Verdict = Admitted | RefusedCall

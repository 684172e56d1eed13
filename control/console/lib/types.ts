import type { TrunkDetail } from './api-types.ts'

/** The objects of the management API, by the names that the pages use. */

export type {
  CallAttempt as Attempt,
  CallDetail as Call,
  CallEvent,
  CallSummary,
  DigestCredential,
  DigestCredentialSecret,
  IpCredential,
  NumberBlock,
  OutboundPolicyDetail as Policy,
  OutboundPolicySummary as PolicySummary,
  PhoneNumber,
  Recording,
  SipMessage as LadderMessage,
  SubtrunkDetail as Subtrunk,
  TerminationTargetInput as TargetInput,
  TrunkDetail as Trunk,
  TrunkMetrics,
  TrunkRoute as Target,
  TrunkSummary,
  TrunkTestCheck,
  TrunkTestDetail,
  TrunkTestHistory,
  VoiceAccount,
  VoiceApplication as Application,
} from './api-types.ts'

export type Codec = TrunkDetail['media']['codecs'][number]

export interface ListOf<T> {
  readonly data: readonly T[]
}

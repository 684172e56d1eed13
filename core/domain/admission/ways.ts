import type { Over, ServiceType } from './types.ts'

/** A way in which a call leaves the platform. */
interface Way {
  /** What its leg goes over. */
  readonly over: Over
  /** The services that may use it. A trunk also stands for its subtrunks. */
  readonly services: readonly ServiceType[]
}

const TRUNKS = ['trunk', 'subtrunk'] as const
const VOICE = ['voice_application', 'automation'] as const

/**
 * Every way in which a call leaves the platform. Admission decides on each by the policy of its service (design
 * sections 4 and 10), and on no outbound leg without a way. A test admits a call of each way and service under each
 * ceiling.
 */
export const WAYS = {
  /** A trunk peer's INVITE. */
  peer: { over: 'network', services: TRUNKS },
  /** A REFER of a trunk peer, which we carry out. */
  transfer: { over: 'network', services: TRUNKS },
  /** A test call to a destination of a trunk. */
  trunk_test: { over: 'network', services: TRUNKS },
  /** A test call to a target of a trunk. */
  target_test: { over: 'sip', services: TRUNKS },
  /** The INVITE of a browser or of another client of the project. */
  client: { over: 'network', services: VOICE },
  /** A call that a program creates. */
  create: { over: 'network', services: VOICE },
  dial_number: { over: 'network', services: VOICE },
  dial_sip: { over: 'sip', services: VOICE },
  dial_client: { over: 'client', services: VOICE },
  /** The Refer verb: the peer of a leg is asked to call somebody else. */
  refer: { over: 'sip', services: VOICE },
} as const satisfies Readonly<Record<string, Way>>

export type WayName = keyof typeof WAYS

/** A service: what a policy is attached to, and what a call belongs to. */
export interface Service {
  readonly type: ServiceType
  readonly id: string
}

/**
 * Returns the service of a call that a script or a program makes: the application, or else the project's automation. It
 * is never a trunk, even when the call presents the trunk's number (design section 10).
 */
export const voiceService = (project_id: string, application_id: string | null): Service =>
  application_id === null ? { type: 'automation', id: project_id } : { type: 'voice_application', id: application_id }

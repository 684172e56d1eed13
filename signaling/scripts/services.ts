import type { CallContext } from '../b2bua/context.ts'

/** The services of the node that scripts use. */
export type ScriptServices = Pick<
  CallContext,
  | 'node_id'
  | 'machine_id'
  | 'config'
  | 'clock'
  | 'state'
  | 'bus'
  | 'calls'
  | 'sip'
  | 'peer_addresses'
  | 'metrics'
  | 'snapshot'
>

import type { Applied } from '../../core/state/configuration/apply.ts'
import type { presentAlert, presentContainments } from '../v1/alert-present.ts'
import type { presentCall } from '../v1/call-present.ts'
import type { presentCheck } from '../v1/trunk-tests.ts'

/** An event in a project, as /v1/events sends it. `trunk_id` decides which restricted keys may see it. */
export type LiveEvent =
  | { readonly type: 'call'; readonly trunk_id: string | null; readonly call: ReturnType<typeof presentCall> }
  | { readonly type: 'alert'; readonly trunk_id: string | null; readonly alert: ReturnType<typeof presentAlert> }
  | {
      readonly type: 'containment'
      readonly trunk_id: string | null
      readonly containment: Awaited<ReturnType<typeof presentContainments>>[number]
    }
  | {
      readonly type: 'trunk_apply'
      readonly trunk_id: string
      readonly revision: number
      readonly apply: Applied & { readonly desired_revision: number }
    }
  | {
      readonly type: 'trunk_test'
      readonly trunk_id: string
      readonly run_id: string
      readonly result: 'running' | 'passed' | 'failed'
      readonly finding: string | null
      /** Null when the run has ended. */
      readonly check: ReturnType<typeof presentCheck> | null
    }
  | {
      readonly type: 'node'
      readonly trunk_id: null
      readonly node: {
        readonly id: string
        readonly kind: string
        readonly state: 'up' | 'lost'
        readonly heartbeat_at: string | null
      }
    }

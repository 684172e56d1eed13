import { endActivity, insertActivity, type NewActivity } from '../../core/state/calls/activities.ts'
import type { CallRegistry } from '../b2bua/registry.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'

/** Makes an activity known, so that the API can stop it. `made`: the API has begun it and has written its row. */
export function activityBegins(
  calls: Pick<CallRegistry, 'activities'>,
  call: ScriptedCall,
  { stop, made, ...about }: Omit<NewActivity, 'call_sid' | 'project_id'> & { stop(): void; readonly made: boolean },
): void {
  const { sid: call_sid, project_id, clock } = call
  calls.activities.set(about.sid, { call_sid, stop })
  if (!made) void call.persist(trx => insertActivity(trx, { ...about, call_sid, project_id }, clock.now()))
}

/** Does nothing for what is over already. */
export function activityEnds(calls: Pick<CallRegistry, 'activities'>, call: ScriptedCall, sid: string): void {
  const { clock } = call
  if (calls.activities.delete(sid)) void call.persist(trx => endActivity(trx, sid, clock.now()))
}

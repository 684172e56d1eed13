import { endActivity, insertActivity, type NewActivity } from '../../core/state/calls/activities.ts'
import type { Call } from '../b2bua/call.ts'

/** Makes an activity known, so that the API can stop it. `made`: the API has begun it and has written its row. */
export function activityBegins(
  call: Call,
  { stop, made, ...about }: Omit<NewActivity, 'call_sid' | 'project_id'> & { stop(): void; readonly made: boolean },
): void {
  const { sid: call_sid, project_id, ctx } = call
  ctx.calls.activities.set(about.sid, { call_sid, stop })
  if (!made) void call.persist(trx => insertActivity(trx, { ...about, call_sid, project_id }, ctx.clock.now()))
}

/** Does nothing for what is over already. */
export function activityEnds(call: Call, sid: string): void {
  const { calls, clock } = call.ctx
  if (calls.activities.delete(sid)) void call.persist(trx => endActivity(trx, sid, clock.now()))
}

import { ending } from '../../core/domain/calls/endings.ts'
import { type CallRow, writeCall } from '../../core/state/calls/running-calls.ts'
import type { AdmissionContext } from './context.ts'

/** Ends a call that has no legs yet. */
export async function endUnplaced(
  ctx: AdmissionContext,
  row: CallRow,
  facts: Omit<Parameters<typeof ending>[0], 'answered'>,
): Promise<void> {
  const final = ending({ ...facts, answered: false })
  const end = { ending: final, ended_ms: ctx.clock.now(), pdd_ms: null, media: null }
  const { queued } = await writeCall(ctx.state.db, row.sid, [{ step: 'end', facts: end }])
  if (queued > 0) ctx.bus.ring('outbox')
}

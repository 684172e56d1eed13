import { ending } from '../../core/domain/calls/endings.ts'
import { admitCall, writeCall } from '../../core/state/calls/running-calls.ts'
import type { State } from '../../core/state/index.ts'
import { callOf, NOW_MS, requestOf, type Sizes, sidOf } from '../admission/data.ts'

export const STATE_SIZES: Sizes = { trunks: 100, sources: 1_000, rules: 1_000, rates: 2_000 }

/** Runs calls from their admission to their record, so many at a time. */
export async function runCalls(state: State, first: number, count: number, at_once: number): Promise<void> {
  let next = first
  const one = async (): Promise<void> => {
    while (next < first + count) await call(state, next++)
  }
  await Promise.all(Array.from({ length: at_once }, one))
}

async function call({ db }: State, i: number): Promise<void> {
  const request = requestOf(i, STATE_SIZES)
  const { decided } = await admitCall(db, {
    call: callOf(request),
    requests: [request],
    verstat: null,
    now_ms: NOW_MS + i,
  })
  if (!decided.admitted) throw new Error(`call ${i} was refused: ${decided.sentence}`)
  await writeCall(db, sidOf(i), [{ step: 'answered', at_ms: NOW_MS + i }])
  const facts = { ending: ending({ cause: 'caller_hung_up', answered: true }), pdd_ms: 840, media: null }
  const end = { ...facts, duration_seconds: 30, ended_ms: NOW_MS + i + 30_000 }
  await writeCall(db, sidOf(i), [{ step: 'end', facts: end }])
}

import { ending } from '../../core/domain/calls/endings.ts'
import { admitCall, writeCall } from '../../core/state/calls/running-calls.ts'
import { openState } from '../../core/state/index.ts'
import { callOf, requestOf } from '../admission/data.ts'
import { CEILING_SIZES } from './ceilings.ts'

// One of the processes of `ceilings.ts`: it admits the calls that it is told of, all at once, and ends those that were.

export type Order = { readonly admit: readonly number[] } | { readonly end: true }

export interface Done {
  readonly admitted: number
  readonly refused: Readonly<Record<string, number>>
  /** Calls that failed, or could not be ended. */
  readonly failed: readonly string[]
}

const [, , database_url = ''] = process.argv
// Whether calls are admitted in time is another question, and one for a machine that does nothing else.
const state = await openState({ data_dir: '', database_url, busy_timeout_ms: 30_000 })
const running = new Set<string>()

async function admit(calls: readonly number[]): Promise<Done> {
  const refused: Record<string, number> = {}
  const failed: string[] = []
  let admitted = 0
  await Promise.all(
    calls.map(async i => {
      const { store_ms: _, ...request } = { ...requestOf(i, CEILING_SIZES), now_ms: Date.now() }
      try {
        const input = { call: callOf(request), requests: [request], verstat: null, now_ms: request.now_ms }
        const { decided } = await admitCall(state.db, input)
        if (decided.admitted) {
          admitted++
          running.add(request.call_sid)
        } else refused[decided.reason] = (refused[decided.reason] ?? 0) + 1
      } catch (error) {
        failed.push((error as Error).message)
      }
    }),
  )
  return { admitted, refused, failed }
}

async function end(): Promise<Done> {
  const failed: string[] = []
  const ended_ms = Date.now()
  const facts = { ending: ending({ cause: 'caller_hung_up', answered: false }), pdd_ms: null, media: null, ended_ms }
  await Promise.all(
    [...running].map(async sid => {
      try {
        await writeCall(state.db, sid, [{ step: 'end', facts }])
        running.delete(sid)
      } catch (error) {
        failed.push((error as Error).message)
      }
    }),
  )
  return { admitted: 0, refused: {}, failed }
}

process.on('message', async (order: Order) => {
  process.send?.('admit' in order ? await admit(order.admit) : await end())
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')

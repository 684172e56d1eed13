import { openState } from '../../core/state/index.ts'
import { runCalls } from './state-calls.ts'

// One of the nodes of `state.ts`: it runs the calls that `state.ts` asks for, and reports the CPU time that they took.

export interface CallsToRun {
  readonly first: number
  readonly calls: number
  readonly at_once: number
}

const [, , database_url = ''] = process.argv
const state = await openState({ data_dir: '', database_url, busy_timeout_ms: 60_000 })

process.on('message', async ({ first, calls, at_once }: CallsToRun) => {
  const before = process.cpuUsage()
  await runCalls(state, first, calls, at_once)
  const { user, system } = process.cpuUsage(before)
  process.send?.((user + system) / 1000)
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')

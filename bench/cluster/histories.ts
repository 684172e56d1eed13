import { spawn } from 'node:child_process'
import { once } from 'node:events'

// The long form of a test: random histories of calls, ceilings and money on both stores, whose verdicts, counters,
// ledgers, CDRs and callbacks must be equal. `npm test` runs two short ones.

const TEST = 'build/test/unit/core/state/postgres/histories.test.js'
const STEPS = 500

/** Runs histories of so many steps together, each from a seed of its own. */
export async function histories(steps: number) {
  const count = Math.ceil(steps / STEPS)
  const began = performance.now()
  const child = spawn(process.execPath, ['build/test/support/harness/main.js', TEST], {
    env: { ...process.env, TEST_HISTORIES: String(count), TEST_HISTORY_STEPS: String(STEPS) },
    stdio: 'inherit',
  })
  const [code] = await once(child, 'exit')
  const seconds = (performance.now() - began) / 1000
  console.log(
    `${count * STEPS} random steps in ${count} histories on both stores: ` +
      `${code === 0 ? 'all equal' : 'NOT EQUAL, as above'} (${seconds.toFixed(0)} s)`,
  )
  return { steps: count * STEPS, within_limits: code === 0 }
}

import { createPace } from '../../../../control/exports/pace.ts'
import t from '../../../support/harness/index.ts'

// An export beside calls, in simulated time: how many rows a second it reads, and what is left to the calls.

const ROWS = 250
const PACE = 50_000

interface Machine {
  /** How long a read of ROWS takes. */
  readonly read_ms: number
  /** A call is set up at such intervals. */
  readonly calls_every_ms: number
  /** Its set-up takes so long, in which its processes have a core. */
  readonly set_up_ms: number
  /** Rows that each read finds. */
  readonly found?: number
}

/** Reads for ten seconds. Returns the rows a second, and the share of the calls' time in which a read ran. */
async function simulated({ read_ms, calls_every_ms, set_up_ms, found = ROWS }: Machine) {
  let now_ms = 0
  let reading_ms = 0
  let disturbed_ms = 0
  const inCall = (at_ms: number): boolean => at_ms % calls_every_ms < set_up_ms
  const surroundings = {
    now_ms: () => now_ms,
    wait: async (ms: number) => {
      now_ms += ms
    },
    disturbed: () => inCall(now_ms),
  }
  const pace = createPace(PACE, surroundings)
  let rows = 0
  while (now_ms < 10_000) {
    for (let ms = 0; ms < read_ms; ms++) if (inCall(now_ms + ms)) disturbed_ms++
    now_ms += read_ms
    reading_ms += read_ms
    rows += found
    await pace({ rows: found, full: found === ROWS, took_ms: read_ms })
  }
  const in_calls_ms = now_ms * (set_up_ms / calls_every_ms)
  return { rows_a_second: rows / (now_ms / 1000), disturbed: disturbed_ms / in_calls_ms, busy: reading_ms / now_ms }
}

t.test('an export reads as many rows a second as it should, in the time between calls', async t => {
  const { rows_a_second, disturbed } = await simulated({ read_ms: 2, calls_every_ms: 40, set_up_ms: 15 })
  t.ok(Math.abs(rows_a_second / PACE - 1) < 0.02, `${rows_a_second} rows a second`)
  t.ok(disturbed < 0.15, `reads took ${disturbed} of the time of calls`)
})

t.test('an export goes on at its pace while calls come in all the time', async t => {
  const { rows_a_second, busy } = await simulated({ read_ms: 2, calls_every_ms: 10, set_up_ms: 10 })
  t.ok(Math.abs(rows_a_second / PACE - 1) < 0.02, `${rows_a_second} rows a second`)
  t.ok(busy < 0.41, `it read for ${busy} of the time`)
})

t.test('an export that is slower than its pace does not wait', async t => {
  const { busy } = await simulated({ read_ms: 8, calls_every_ms: 40, set_up_ms: 15 })
  t.ok(busy > 0.98, `it read for ${busy} of the time`)
})

t.test('reads that find next to nothing leave half of the time to others', async t => {
  const { busy } = await simulated({ read_ms: 20, calls_every_ms: 40, set_up_ms: 15, found: 3 })
  t.ok(Math.abs(busy - 0.5) < 0.02, `it read for ${busy} of the time`)
})

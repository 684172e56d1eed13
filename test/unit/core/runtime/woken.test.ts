import { sleepWithoutWork } from '../../../../core/runtime/woken.ts'
import t from '../../../support/harness/index.ts'

const MINUTE_MS = 60_000

t.test('a process sleeps after five minutes without work, and asks again while it is not ended', async t => {
  let now_ms = 0
  let look = (): void => undefined
  let works = false
  const slept: number[] = []
  const clock = {
    monotonic_ms: () => now_ms,
    every(_period_ms: number, run: () => void) {
      look = run
      return { cancel: () => undefined }
    },
  }
  sleepWithoutWork(clock, { works: () => works, sleep: () => slept.push(now_ms / MINUTE_MS) })
  const minutes = (count: number): void => {
    for (let minute = 0; minute < count; minute++) {
      now_ms += MINUTE_MS
      look()
    }
  }
  minutes(4)
  works = true
  minutes(20)
  works = false
  minutes(4)
  t.same(slept, [])
  minutes(2)
  t.same(slept, [29, 30])
})

import { FollowedClock } from '../../../../core/runtime/followed-clock.ts'
import { standingClock } from '../../../support/clock.ts'
import t, { type Test } from '../../../support/harness/index.ts'

const HOUR_MS = 3_600_000

/** A server that is an hour ahead, whose answers take a while each way, and a machine whose wall clock stands still. */
async function following(t: Test) {
  const machine = { ...standingClock(), now: () => 0, every: () => ({ cancel: () => undefined }) }
  const server = { ahead_ms: HOUR_MS, there_ms: 0, back_ms: 0 }
  const clock = await FollowedClock.follow(async () => {
    machine.move(server.there_ms)
    const time_ms = machine.monotonic_ms() + server.ahead_ms
    machine.move(server.back_ms)
    return time_ms
  }, machine)
  t.teardown(() => clock.stop())
  return { machine, server, clock, ahead: () => clock.now() - machine.monotonic_ms() }
}

t.test('a clock that follows a server shows its time, whatever the wall clock of the machine says', async t => {
  const { machine, clock, ahead } = await following(t)
  t.equal(clock.now(), HOUR_MS)
  machine.move(90_000)
  t.equal(clock.now(), HOUR_MS + 90_000, 'between two readings it runs on')
  await clock.look()
  t.equal(ahead(), HOUR_MS)
})

t.test('a slow answer moves it only when the server must have another time', async t => {
  const { server, clock, ahead } = await following(t)
  Object.assign(server, { there_ms: 4000, back_ms: 0 })
  await clock.look()
  t.equal(ahead(), HOUR_MS, 'the whole difference may be that of the way')
  server.ahead_ms = HOUR_MS - 60_000
  await clock.look()
  t.equal(ahead(), HOUR_MS - 60_000 + 2000, 'the clock of the server was set back')
  Object.assign(server, { there_ms: 0, back_ms: 0 })
  await clock.look()
  t.equal(ahead(), HOUR_MS - 60_000, 'a fast answer is better')
})

t.test('without an answer it goes on as it was', async t => {
  const machine = { ...standingClock(), every: () => ({ cancel: () => undefined }) }
  let answers = true
  const clock = await FollowedClock.follow(async () => {
    if (!answers) throw new Error('the server is away')
    return 5000
  }, machine)
  answers = false
  machine.move(1000)
  await t.rejects(clock.look(), { message: 'the server is away' })
  t.equal(clock.now(), 6000)
  clock.stop()
})

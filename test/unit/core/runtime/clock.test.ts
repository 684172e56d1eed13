import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { systemClock } from '../../../../core/runtime/clock.ts'
import t from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

/** Keeps this process from doing anything for a time, as a paused virtual machine does. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

t.test('after a process stood still, what arrived meanwhile comes before the timers that fell due', async t => {
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  socket.connect(socket.address().port, '127.0.0.1')
  await once(socket, 'connect')
  const came: string[] = []
  socket.on('message', answer => came.push(String(answer)))

  systemClock.after(20, () => came.push('timer'))
  systemClock.after(20, () => came.push('canceled')).cancel()
  socket.send('the answer')
  standStill(200)
  await until('both came', () => came.length >= 2)
  t.same(came, ['the answer', 'timer'])

  // The answer cancels the timer that waits for it, also when that is due.
  const late = systemClock.after(20, () => came.push('too late'))
  socket.once('message', () => late.cancel())
  socket.send('another answer')
  standStill(200)
  await until('it came', () => came.includes('another answer'))
  t.same(came.slice(2), ['another answer'])

  // A timer that repeats looks for what has come since it last ran.
  const looks = systemClock.every(20, () => came.push('look'))
  t.teardown(() => looks.cancel())
  socket.send('the third answer')
  standStill(200)
  await until('it looks', () => came.includes('look'))
  t.same(came.slice(3, 5), ['the third answer', 'look'])
})

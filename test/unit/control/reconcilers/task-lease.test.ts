import t from 'tap'
import { TaskLease } from '../../../../control/reconcilers/task-lease.ts'
import { standingClock } from '../../../support/clock.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import { MACHINE } from '../../../support/machine.ts'

// What one process does for all is done by one process, and by another one when that ends.

const THERE = { machine_id: 'mac_2', boot_id: 'boot_1' }

t.test('one process of two holds a task; the other takes it when the first ends, or is silent', async t => {
  const clock = { ...standingClock(), every: () => ({ cancel: () => undefined }) }
  const w = await controlPlane(t, { clock })
  const lease = (machine: typeof MACHINE) => new TaskLease({ ...w, name: 'reconcilers', machine })
  const here = lease(MACHINE)
  const there = lease(THERE)
  await here.renew()
  await there.renew()
  t.same([here.held, there.held], [true, false])
  await here.stop()
  await there.renew()
  t.same([here.held, there.held], [false, true], 'given up')
  clock.move(10_000)
  t.notOk(there.held, 'a process that stood still does not count on it')
  const next = lease(MACHINE)
  await next.renew()
  t.notOk(next.held, 'but it may come back and renew it')
  clock.move(5000)
  await next.renew()
  t.ok(next.held, 'the first is silent')
  await next.stop()
})

t.test('a predecessor of this machine that was killed is not waited for', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  await w.state.db
    .insertInto('task_lease')
    .values({
      ...{ name: 'reconcilers', holder: `${MACHINE.machine_id} boot_0 1` },
      until: new Date(w.clock.now() + 15_000).toISOString(),
    })
    .execute()
  const lease = new TaskLease({ ...w, name: 'reconcilers', machine: MACHINE })
  await lease.renew()
  t.ok(lease.held)
  await lease.stop()
})

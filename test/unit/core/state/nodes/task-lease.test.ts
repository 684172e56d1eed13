import { TaskLease } from '../../../../../core/state/nodes/task-lease.ts'
import { standingClock } from '../../../../support/clock.ts'
import { controlPlane } from '../../../../support/control-plane.ts'
import t from '../../../../support/harness/index.ts'
import { MACHINE } from '../../../../support/machine.ts'

// A task lease: one process holds it, and another takes it over when that process ends.

const THERE = { machine_id: 'mac_2', boot_id: 'boot_1' }

t.test('one of two processes holds a lease; the other takes it when the first releases it or falls silent', async t => {
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
  t.same([here.held, there.held], [false, true], 'the first released it')
  clock.move(10_000)
  t.notOk(there.held, 'a process that was suspended no longer relies on its lease')
  const next = lease(MACHINE)
  await next.renew()
  t.notOk(next.held, 'the holder may still renew it')
  clock.move(5000)
  await next.renew()
  t.ok(next.held, 'the lease of a silent holder is taken over')
  await next.stop()
})

t.test('the lease of a process from before a reboot of this machine is taken over at once', async t => {
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

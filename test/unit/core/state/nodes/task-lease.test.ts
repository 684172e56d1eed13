import { noteReportedUpTo } from '../../../../../core/state/delivery/reported-events.ts'
import type { Trx } from '../../../../../core/state/index.ts'
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

t.test('a holder that stood still writes nothing once another process has its task', async t => {
  const clock = { ...standingClock(), every: () => ({ cancel: () => undefined }) }
  const w = await controlPlane(t, { clock })
  const lease = (machine: typeof MACHINE) => new TaskLease({ ...w, name: 'reconcilers', machine })
  const [here, there] = [lease(MACHINE), lease(THERE)]
  const told = (name: string, position: number) => (trx: Trx) => noteReportedUpTo(trx, name, position)
  const rows = () => w.state.db.selectFrom('told_event').selectAll().where('name', 'like', 'test%').execute()
  await t.rejects(here.state.transaction(told('test', 1)), { message: /another process/ }, 'it has never had it')
  await here.renew()
  await here.state.transaction(told('test', 1))
  await here.state.db.updateTable('told_event').set({ position: 2 }).where('name', '=', 'test').execute()
  t.same(await rows(), [{ name: 'test', position: 2 }], 'the holder writes')
  // It stands still in the middle of its task.
  clock.move(20_000)
  await there.renew()
  await t.rejects(here.state.transaction(told('test', 3)), { message: /another process/ })
  await t.rejects(here.state.shortTransaction(told('test', 3)), { message: /another process/ })
  await here.state.db.updateTable('told_event').set({ position: 3 }).where('name', '=', 'test').execute()
  await here.state.db.deleteFrom('told_event').where('name', '=', 'test').execute()
  t.same(await rows(), [{ name: 'test', position: 2 }])
  await there.state.db.updateTable('told_event').set({ position: 4 }).execute()
  t.match(await rows(), [{ position: 4 }])
  // Both release it in turn: a term never comes back.
  await there.stop()
  await here.renew()
  await here.stop()
  await there.renew()
  const term = await w.state.db.selectFrom('task_lease').select('term').where('name', '=', 'reconcilers').execute()
  t.same(term, [{ term: 4 }])
  await there.stop()
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

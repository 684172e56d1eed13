import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isGone, machineOf, processName, processNamed } from '../../../../core/runtime/machine.ts'
import t from '../../../support/harness/index.ts'

// A pid identifies a process only on its own machine and until the next boot.

t.test('isGone checks pids of this machine and boot, and never those of another machine', async t => {
  const own = { machine_id: 'mac_1', boot_id: 'boot_2' }
  const child = spawn(process.execPath, ['-e', ''])
  const pid = child.pid ?? 0
  await once(child, 'exit')
  t.ok(isGone({ ...own, pid }, own))
  t.notOk(isGone({ ...own, pid: process.ppid }, own))
  t.ok(isGone({ ...own, pid: process.pid }, own), 'an earlier process had our pid')
  t.ok(isGone({ ...own, boot_id: 'boot_1', pid: process.ppid }, own), 'no process outlives a reboot')
  for (const there of [pid, process.pid, process.ppid])
    t.notOk(isGone({ machine_id: 'mac_2', boot_id: 'boot_1', pid: there }, own))
  t.notOk(isGone(processNamed(processName({ ...own, pid: process.ppid })), own))
})

t.test('a machine keeps its unique id', async t => {
  const [one, two] = [t.testdir(), t.testdir({ other: {} })]
  const made = machineOf(one)
  t.match(made, { machine_id: /^mac_[0-9a-f]{16}$/, boot_id: /^[0-9a-f-]{36}$/ })
  t.same(machineOf(one), made)
  t.not(machineOf(join(two, 'other')).machine_id, made.machine_id)
  t.equal((await stat(join(one, 'machine.id'))).mode & 0o777, 0o600)
})

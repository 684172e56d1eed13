import { refuseTwin } from '../../../bin/this-machine.ts'
import { registerNode } from '../../../core/state/nodes/nodes.ts'
import { admissionWorld, NOW_MS } from '../../support/admission-world.ts'
import t from '../../support/harness/index.ts'

const OWN = { machine_id: 'mac_1', boot_id: 'boot_2' }

t.test('refuses to start beside a machine of the same id that lives; one of an earlier boot does not', async t => {
  const { state, close } = await admissionWorld()
  t.teardown(close)
  let waits = 0
  const silent = async () => {
    waits++
  }
  await refuseTwin(state, OWN, silent)
  const node = { kind: 'signaling', pid: 1 } as const
  await registerNode(state.db, { ...node, id: 'before', machine_id: 'mac_1', boot_id: 'boot_2' }, NOW_MS)
  await registerNode(state.db, { ...node, id: 'other', machine_id: 'mac_2', boot_id: 'boot_1' }, NOW_MS)
  await refuseTwin(state, OWN, silent)
  t.equal(waits, 0, 'neither a predecessor of this boot nor another machine is waited for')
  await registerNode(state.db, { ...node, id: 'twin', machine_id: 'mac_1', boot_id: 'boot_1' }, NOW_MS)
  await refuseTwin(state, OWN, silent)
  t.equal(waits, 1)
  const beats = async () => {
    const heartbeat_at = new Date(NOW_MS + 2000).toISOString()
    await state.db.updateTable('node').set({ heartbeat_at }).where('id', '=', 'twin').execute()
  }
  await t.rejects(refuseTwin(state, OWN, beats), { message: /another machine runs as mac_1/ })
})

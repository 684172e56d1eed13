import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { registerNode, removeNode } from '../../../../core/state/nodes/nodes.ts'
import { StoredSounds } from '../../../../signaling/scripts/stored-sounds.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import { ranCall } from '../../../support/ended-calls.ts'
import t from '../../../support/harness/index.ts'
import { addRecording } from '../../../support/recordings.ts'

t.test('nodes that share a folder leave each other’s copies; those of a node that is gone are removed', async t => {
  const w = await controlPlane(t)
  const { data_dir } = w.settings
  const recording = await addRecording(w, await ranCall(w, { seconds: 2 }))
  const asker = { project_id: w.demo.project_id, facts: { account_sid: w.demo.account_sid } }
  const node = async (node_id: string) => {
    const known = { id: node_id, kind: 'signaling', machine_id: 'mac_1', boot_id: 'b', pid: 1 } as const
    await registerNode(w.state.db, known, w.clock.now())
    const store = { settings: w.settings, objects: null }
    return new StoredSounds({ node_id, base_url: w.base_url, store, db: w.state.db, log: w.log })
  }
  const first = await node('node_1')
  const lent = await first.lend(asker, `${w.base_url}/v1/recordings/${recording}.wav`)
  const copies = () => readdirSync(join(data_dir, 'recordings/.sounds'))
  if ('refused' in lent) throw new Error(lent.refused)
  t.equal(copies().length, 1)

  const second = await node('node_2')
  await second.sweep()
  await first.sweep()
  t.equal(copies().length, 1, 'the first node still plays it')
  await w.state.transaction(trx => removeNode(trx, 'node_1'))
  await second.sweep()
  t.strictSame(copies(), [])
})

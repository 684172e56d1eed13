import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { environmentOf } from '../../../../bin/child-environment.ts'
import { recordingSealing, recordingUpload } from '../../../../control/reconcilers/recordings.ts'
import { loadConfig } from '../../../../core/runtime/config.ts'
import { createObjectStore } from '../../../../core/runtime/object-store.ts'
import { registerNode, removeNode } from '../../../../core/state/nodes/nodes.ts'
import { StoredSounds } from '../../../../signaling/scripts/stored-sounds.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import { ranCall } from '../../../support/ended-calls.ts'
import t from '../../../support/harness/index.ts'
import { s3Server } from '../../../support/object-store.ts'
import { addRecording, WAV } from '../../../support/recordings.ts'

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

t.test('a call plays a recording that the platform has moved to the object store', async t => {
  const s3 = await s3Server(t)
  const w = await controlPlane(t, { s3: s3.config })
  const { data_dir } = w.settings
  const recording = await addRecording(w, await ranCall(w, { seconds: 2 }))
  await recordingSealing.run(w)
  await recordingUpload().run(w)
  t.equal(s3.keys().length, 1)
  t.notOk(existsSync(join(data_dir, `${s3.keys()[0]}`)), 'only the object store has it')

  // The settings as the supervisor gives them to signaling.
  const { s3: settings } = loadConfig(
    environmentOf('signaling', {
      STROWGER_DATA: data_dir,
      STROWGER_S3_ENDPOINT: s3.config.endpoint,
      STROWGER_S3_BUCKET: s3.config.bucket,
      STROWGER_S3_REGION: s3.config.region,
      STROWGER_S3_ACCESS_KEY: s3.config.access_key,
      STROWGER_S3_SECRET_KEY: s3.config.secret_key,
    }),
  )
  const objects = settings && createObjectStore(settings, w.log)
  t.teardown(() => objects?.close())
  const store = { settings: w.settings, objects }
  const sounds = new StoredSounds({ node_id: 'node_1', base_url: w.base_url, store, db: w.state.db, log: w.log })
  const asker = { project_id: w.demo.project_id, facts: { account_sid: w.demo.account_sid } }
  const lent = await sounds.lend(asker, `${w.base_url}/v1/recordings/${recording}.wav`)
  if ('refused' in lent || lent.source.kind !== 'file') throw new Error(JSON.stringify(lent))
  t.same(readFileSync(join(data_dir, 'recordings', lent.source.path.replace(/^recordings\//, ''))), WAV)
  lent.release()
})

import pino from 'pino'
import { registerOwnNode } from '../../../../signaling/presence.ts'
import { Configuration } from '../../../../signaling/trunks/configuration.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import { standingClock } from '../../../support/clock.ts'
import t from '../../../support/harness/index.ts'

t.test('a trunk is reported as applied once the SIP edge has been told of it', async t => {
  const { state, trunk_id, close } = await admissionWorld()
  t.teardown(close)
  const clock = standingClock()
  await registerOwnNode(state, 'node_1', { machine_id: 'mac_1', boot_id: 'boot_1' }, clock)
  const reported = () =>
    state.db.selectFrom('apply_report').where('resource_id', '=', trunk_id).select('state').execute()

  let tell = (): void => undefined
  let ask = (): void => undefined
  const told = new Promise<void>(resolve => {
    tell = resolve
  })
  const asked = new Promise<void>(resolve => {
    ask = resolve
  })
  const edgeTold = () => {
    ask()
    return told
  }
  const configuration = new Configuration({
    ...{ state, node_id: 'node_1', machine_id: 'mac_1', clock, edgeTold, log: pino({ level: 'silent' }) },
    bus: { on: () => () => undefined, ring: () => undefined, close: async () => undefined },
  })
  t.teardown(() => configuration.stop())
  const applied = configuration.refresh()
  await asked
  t.ok(configuration.current.trunks.has(trunk_id), 'the node knows it')
  t.same(await reported(), [])
  tell()
  await applied
  t.same(await reported(), [{ state: 'applied' }])
})

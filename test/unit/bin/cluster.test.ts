import { machineOf } from '../../../core/runtime/machine.ts'
import { putMachine } from '../../../core/state/nodes/machines.ts'
import { registerNode } from '../../../core/state/nodes/nodes.ts'
import { tasksOf } from '../../../core/state/nodes/task-lease-rows.ts'
import { runCommand } from '../../support/command-line.ts'
import { controlPlane } from '../../support/control-plane.ts'
import t from '../../support/harness/index.ts'

t.test('two edges with one address are named, and not a predecessor that runs no more', async t => {
  const w = await controlPlane(t)
  const { db } = w.state
  const own = machineOf(w.settings.data_dir).machine_id
  const put = (id: string) =>
    putMachine(
      db,
      {
        ...{ id, host: '203.0.113.7', hosts: '203.0.113.7', base_url: '', sip_port: 5060, takes_calls: 1 },
        ...{ roles: 'edge signaling media control', version: '', contracts: '', settings: '{}' },
      },
      w.clock.now(),
    )
  const starts = async (id: string) => {
    const until = new Date(w.clock.now() + 3_600_000).toISOString()
    const lease = { name: tasksOf({ machine_id: id }), holder: `${id} boot_1 1`, until, term: 1 }
    await db.insertInto('task_lease').values(lease).execute()
  }
  const env = { STROWGER_DATA: w.settings.data_dir, STROWGER_MASTER_KEY: '07'.repeat(32) }
  const said = async () => {
    const status = await runCommand(['cluster', 'status'], { env, state: w.state })
    const doctor = await runCommand(['doctor'], { env, state: w.state })
    return [status, doctor].map(({ stdout }) => /mac_\w+ and mac_\w+ have one address, .*/.exec(stdout)?.[0] ?? '')
  }
  for (const id of [own, 'mac_0']) await put(id)
  await starts(own)
  t.same(await said(), ['', ''])
  await starts('mac_0')
  const both = `mac_0 and ${own} have one address, 203.0.113.7: set STROWGER_HOST of each edge`
  t.same(await said(), [both, both])
})

t.test('a drain is for the living signaling process of a machine; a silent one alone hears of it later', async t => {
  const w = await controlPlane(t)
  const { db } = w.state
  const env = { STROWGER_DATA: w.settings.data_dir, STROWGER_MASTER_KEY: '07'.repeat(32) }
  const run = (...words: string[]) => runCommand(['cluster', 'drain', ...words], { env, state: w.state })
  const node = (id: string, at_ms: number) =>
    registerNode(db, { id, kind: 'signaling', machine_id: 'mac_9', boot_id: 'boot_1', pid: 1 }, at_ms)
  const draining = async () =>
    (await db.selectFrom('node').select('id').where('draining_at', 'is not', null).execute()).map(({ id }) => id)
  await node('node_dead', w.clock.now() - 60_000)
  const alone = await run('mac_9')
  t.match(alone, {
    code: 0,
    stdout: /mac_9 gives no sign of life: its signaling process hears of this when it is back/,
  })
  t.match(await run('mac_9', '--cancel'), { code: 0 })
  await node('node_lives', w.clock.now())
  const both = await run('mac_9')
  t.equal(both.code, 0, both.stderr)
  t.notMatch(both.stdout, /no sign of life|node_dead/)
  t.same(await draining(), ['node_lives'])
})

import t, { type Test } from '../../support/harness/index.ts'
import { openSoftphone } from '../../support/softphone.ts'
import { until } from '../../support/wait.ts'
import { type World, world } from '../../support/world.ts'
import { linphone } from './telephone.ts'

// Debian's linphone as a registered telephone: it is called, presses keys, holds, and transfers its caller.

t.test('linphone', async t => {
  const w = await world(t)
  await t.test('registers, is called, presses keys, holds and resumes, and transfers its caller, who hears it', t =>
    called(t, w),
  )
})

async function called(t: Test, w: World): Promise<void> {
  const { body: platform } = await w.manage('GET', '/platform/endpoints')
  const trunk = await w.addDigestTrunk()
  const [own, other] = [w.numbers[5] ?? '', w.numbers[6] ?? '']
  await w.routeToTrunk(own, trunk.id)
  await until('the trunk is applied', async () => {
    const { body: detail } = await w.manage('GET', `/trunks/${trunk.id}`)
    return detail.apply.state === 'applied' && detail.apply.effective_revision === detail.revision
  })
  const { body: detail } = await w.manage('GET', `/trunks/${trunk.id}`)
  const server = {
    ...{ host: platform.signaling_nodes[0], port: platform.signaling_port },
    ...{ username: trunk.username, password: trunk.password },
    realm: detail.authentication.digest_identities[0].realm,
  }
  const phone = await linphone(t, { host: '127.0.7.2', user: own, tone_hz: 900, server })
  await until('it is registered', () =>
    w.state.db.selectFrom('registration').selectAll().where('trunk_id', '=', trunk.id).executeTakeFirst(),
  )

  const [caller, target] = [await openSoftphone(t, '127.0.7.3'), await openSoftphone(t, '127.0.7.4')]
  await w.addTrunk(caller.address)
  const sip_uri = `sip:${target.address}:${target.port}`
  const targets = [{ sip_uri, transport: 'udp', priority: 1, weight: 1 }]
  await w.routeToTrunk(other, await w.addTrunk(target.address, { targets }))
  const near = await caller.dial(`sip:${own}@${w.sip.host}:${w.sip.port}`, { from: w.numbers[3] ?? '' })
  await near.answered()
  const stop = near.hum(500)
  await near.hears(900)
  phone.command('5')
  await near.hearsKeys('5')
  phone.command('pause')
  await until('the caller does not hear the telephone', () => near.level(900) < -40)
  phone.command('resume')
  await near.hears(900)

  phone.command(`transfer sip:${other}@${server.host}:${server.port}`)
  const line = await target.incoming(other)
  await line.answer()
  const stop_line = line.hum(1200)
  await Promise.all([near.hears(1200), line.hears(500)])
  await Promise.all([stop(), stop_line()])
  t.equal(near.ended, null, 'the transfer has kept the caller')
  near.hangUp()
  t.equal(await line.over(), 'peer')
}

import { levelDbm0, sounding, strongestHz, trimmed } from '../../support/audio.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { openSoftphone, type Softphone } from '../../support/softphone.ts'
import { until } from '../../support/wait.ts'
import { type World, world } from '../../support/world.ts'
import { type Account, CODECS, type LinphoneCodec, linphone, type Transport } from './telephone.ts'

// Debian's linphone as a registered telephone: it is called, presses keys, holds, and transfers its caller. Over each
// transport, with and without SRTP, and with each codec that both have, it calls and is called, and what both sides
// hear is measured.

const CODEC_NAMES = Object.keys(CODECS) as LinphoneCodec[]
/** The level of the tones that both sides send. What is heard may differ by `OFF_DB`. */
const SENT_DBM0 = -10
const OFF_DB = 3
/**
 * Linphone's G.722 reads and writes samples at half the scale of other implementations: FFmpeg's decodes ours with the
 * level that we encoded.
 */
const G722_OFF_DB = 6

interface Way {
  readonly transport: Transport
  readonly encrypted: boolean
  readonly codecs: readonly LinphoneCodec[]
}
const WAYS: readonly Way[] = [
  { transport: 'udp', encrypted: false, codecs: CODEC_NAMES },
  { transport: 'udp', encrypted: true, codecs: ['PCMA', 'opus'] },
  { transport: 'tcp', encrypted: false, codecs: ['PCMU'] },
  { transport: 'tcp', encrypted: true, codecs: ['G722'] },
  { transport: 'tls', encrypted: false, codecs: ['PCMA'] },
  { transport: 'tls', encrypted: true, codecs: ['PCMU', 'opus'] },
]

t.test('linphone', async t => {
  const w = await world(t)
  await t.test('registers, is called, presses keys, holds and resumes, and transfers its caller, who hears it', t =>
    called(t, w),
  )
  const desk = await openDesk(t, w)
  for (const way of WAYS) {
    const name = `${way.transport.toUpperCase()} and ${way.encrypted ? 'SRTP' : 'RTP'}`
    await t.test(`${name}: it calls and is called with ${way.codecs.join(', ')}`, t => talks(t, w, desk, way))
  }
})

/** Makes a trunk with this number for a telephone. Resolves with what the telephone must know once it is applied. */
async function trunkFor(w: World, own: string, over: Record<string, unknown>, transport: Transport) {
  const { body: platform } = await w.manage('GET', '/platform/endpoints')
  const trunk = await w.addDigestTrunk(over)
  await w.routeToTrunk(own, trunk.id)
  const detail = await until('the trunk is applied', async () => {
    const { body } = await w.manage('GET', `/trunks/${trunk.id}`)
    return body.apply.state === 'applied' && body.apply.effective_revision === body.revision && body
  })
  const server: Account['server'] = {
    host: platform.signaling_nodes[0],
    port: transport === 'tls' ? w.sip.tls_port : platform.signaling_port,
    username: trunk.username,
    password: trunk.password,
    realm: detail.authentication.digest_identities[0].realm,
    certificates: `${w.data_dir}/tls/cert.pem`,
  }
  return { id: trunk.id, server }
}

const registrationOf = (w: World, trunk_id: string) =>
  until('it is registered', () =>
    w.state.db.selectFrom('registration').selectAll().where('trunk_id', '=', trunk_id).executeTakeFirst(),
  )

/** A telephone with PCMU on a trunk of its own, which has a number. */
interface Desk {
  readonly phone: Softphone
  readonly number: string
}

async function openDesk(t: Test, w: World): Promise<Desk> {
  const phone = await openSoftphone(t, '127.0.7.5')
  const number = w.numbers[7] ?? ''
  const targets = [{ sip_uri: `sip:${phone.address}:${phone.port}`, transport: 'udp', priority: 1, weight: 1 }]
  await w.routeToTrunk(number, await w.addTrunk(phone.address, { targets }))
  return { phone, number }
}

async function talks(t: Test, w: World, desk: Desk, { transport, encrypted, codecs }: Way): Promise<void> {
  const own = w.numbers[8] ?? ''
  const over = {
    codecs: CODEC_NAMES.map(name => name.toUpperCase()),
    ...{ media_security: encrypted ? 'sdes_srtp_required' : 'rtp', require_tls: transport === 'tls' },
  }
  const { id, server } = await trunkFor(w, own, over, transport)
  const phone = await linphone(t, { host: '127.0.7.6', user: own, tone_hz: 900, transport, encrypted, server })
  t.equal((await registrationOf(w, id)).transport, transport)
  for (const codec of codecs) {
    phone.restrictTo(codec)
    for (const direction of ['called', 'calls'] as const) {
      const tape = phone.tape(codec)
      const before = await ended(w)
      const near = await (direction === 'called' ? calling() : awaited())
      const stop = near.hum(500)
      await near.hears(900)
      await tape.plays(3000)
      await stop()
      const louder_db = codec === 'G722' ? G722_OFF_DB : 0
      t.ok(
        Math.abs(near.level(900) - (SENT_DBM0 - louder_db)) < OFF_DB,
        `${codec}, ${direction}: the desk hears ${near.level(900)} dBm0`,
      )
      near.hangUp()
      const { samples, rate_hz } = await tape.heard()
      const sound = sounding(trimmed(samples))
      const heard = `${sound.length / rate_hz} s, ${levelDbm0(sound)} dBm0`
      t.equal(strongestHz(sound, rate_hz), 500, `${codec}, ${direction}: linphone hears the desk (${heard})`)
      t.ok(sound.length > rate_hz && Math.abs(levelDbm0(sound) - (SENT_DBM0 + louder_db)) < OFF_DB, heard)
      const [record] = await until('the record', async () => {
        const rows = (await ended(w)).slice(before.length)
        return rows.length > 0 && rows
      })
      t.equal(record?.status, 'completed')
      const leg = Object.values(JSON.parse(record?.media ?? '{}')).find(
        part => (part as { signalled_address?: string } | null)?.signalled_address === '127.0.7.6',
      )
      t.match(leg, { codec: codec.toUpperCase(), secured: encrypted }, `${record?.media}`)
    }
  }
  await phone.stop()

  async function calling() {
    const line = await desk.phone.dial(`sip:${own}@${w.sip.host}:${w.sip.port}`, { from: desk.number })
    await line.answered()
    return line
  }
  async function awaited() {
    phone.command(`call sip:${desk.number}@${server.host}`)
    const line = await desk.phone.incoming(desk.number)
    await line.answer()
    return line
  }
}

const ended = (w: World) =>
  w.state.db
    .selectFrom('cdr')
    .select(['status', 'media'])
    .where('project_id', '=', w.project_id)
    .orderBy('ended_at')
    .execute()

async function called(t: Test, w: World): Promise<void> {
  const [own, other] = [w.numbers[5] ?? '', w.numbers[6] ?? '']
  const transport = 'udp'
  const { id, server } = await trunkFor(w, own, {}, transport)
  const account = { host: '127.0.7.2', user: own, tone_hz: 900, transport, encrypted: false, server } as const
  const phone = await linphone(t, account)
  await registrationOf(w, id)

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

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { processNamed } from '../../core/runtime/machine.ts'
import t from '../support/harness/index.ts'
import { openPhone, registerPhone } from '../support/phone.ts'
import { openSoftphone } from '../support/softphone.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { type World, world } from '../support/world.ts'

// Two machines over one database, each with a whole platform. A process that starts, stops or dies on one machine does
// not affect the calls, recordings, deliveries and registrations of the other.

const CALLED = '+2348030004711'
const PHONE = '127.0.0.73'

/** The processes of a platform by name, including the supervisor. */
const pidsOf = ({ data_dir }: World): Map<string, number> =>
  new Map(
    readdirSync(join(data_dir, 'run'))
      .filter(name => name.endsWith('.pid'))
      .map(name => [name.slice(0, -4), Number(readFileSync(join(data_dir, 'run', name), 'utf8'))]),
  )

const runs = (pid: number): boolean => existsSync(`/proc/${pid}`)

/**
 * Simulates a power loss. The supervisor is first, because it would restart the others. All stop before any is killed,
 * because a process without a supervisor hangs its calls up and leaves.
 */
async function losesPower(w: World): Promise<void> {
  const pids = [...pidsOf(w)].sort(([name]) => (name === 'supervisor' ? -1 : 1)).map(([, pid]) => pid)
  for (const signal of ['SIGSTOP', 'SIGKILL'] as const) for (const pid of pids) process.kill(pid, signal)
  await until('every process is gone', () => pids.every(pid => !runs(pid)))
}

t.test('two machines over one database', async t => {
  const settings = { STROWGER_SANDBOX: 'off' }
  const a = await world(t, settings)
  const { db } = a.state
  let answer = (): void => undefined
  /** Who sent the slow callback in each attempt. A sender may repeat its request; any machine may try again later. */
  const senders = new Map<number, Set<number>>()
  /** Senders that were killed. Another machine makes their attempt again. */
  const killed = new Set<number>()
  const held = new Promise<void>(resolve => {
    answer = resolve
  })
  const web = await webServer(t, {
    '/record':
      '<Response><Record maxLength="3600" timeout="600" playBeep="false" trim="do-not-trim" ' +
      'recordingStatusCallback="/slow" recordingStatusCallbackEvent="in-progress"/></Response>',
    '/slow': async () => {
      const sent = db.selectFrom('outbox').select(['lease_by', 'lease_until', 'attempts'])
      const row = await sent.where('url', 'like', '%/slow').executeTakeFirstOrThrow()
      const { lease_by, lease_until, attempts } = row
      if (lease_by !== null && lease_until !== null)
        senders.set(attempts, (senders.get(attempts) ?? new Set()).add(processNamed(lease_by).pid))
      await held
      return ''
    },
  })
  const [number = '', own = '', ringing = '', ringing_there = ''] = a.numbers
  const desk = await openSoftphone(t, '127.0.0.71')
  const world_phone = await openSoftphone(t, '127.0.0.72')
  const target = { sip_uri: `sip:${world_phone.address}:${world_phone.port}`, transport: 'udp', priority: 1, weight: 1 }
  await a.addTrunk(desk.address, { targets: [target] })
  const callBy = async (w: World) => {
    const near = await desk.dial(`sip:${CALLED}@${w.sip.host}:${w.sip.port}`, { from: own })
    const far = await world_phone.incoming(CALLED)
    await far.answer()
    await near.answered()
    near.hum(440)
    far.hum(880)
    return { near, far }
  }
  type Talk = Awaited<ReturnType<typeof callBy>>
  const heard = async ({ near, far }: Talk, why: string): Promise<void> => {
    for (const line of [near, far]) line.rtp.received.length = 0
    await Promise.all([near.hears(880), far.hears(440)])
    t.equal(near.ended ?? far.ended, null, why)
  }

  // On the first machine: a call of two legs, a recorded one, a registration, and a pending callback.
  const talk = await callBy(a)
  await a.routeToApplication(number, `${web.url}/record`)
  const recorded = await desk.dial(`sip:${number}@${a.sip.host}:${a.sip.port}`, { from: own })
  await recorded.answered()
  recorded.hum(700)
  const tape = await until('it is recorded', () => db.selectFrom('recording').selectAll().executeTakeFirst())
  // Each of the two has a trunk whose telephone registers at one machine.
  const telephone = await openSoftphone(t, PHONE)
  const [of_first, of_third] = [await a.addDigestTrunk(), await a.addDigestTrunk()]
  await a.routeToTrunk(ringing, of_first.id)
  await a.routeToTrunk(ringing_there, of_third.id)
  const registers = async ({ sip }: World, { username, password }: typeof of_first): Promise<void> => {
    const phone = await openPhone(t, { host: sip.host, port: sip.port, local_ip: PHONE })
    await registerPhone(phone, sip, { username, password, contact: `sip:phone@${PHONE}:${telephone.port}` })
  }
  await registers(a, of_first)
  /** The telephone rings by a call to the machine at which it has registered. */
  const rings = async ({ sip }: World, called: string, why: string): Promise<void> => {
    const call = await desk.dial(`sip:${called}@${sip.host}:${sip.port}`, { from: own })
    const rung = await telephone.incoming('phone')
    await rung.answer()
    await call.answered()
    call.hangUp()
    await rung.over()
    t.pass(why)
  }
  await until('its callback is sent', () => senders.size > 0)
  const undisturbed = async (why: string): Promise<void> => {
    await heard(talk, why)
    t.equal(recorded.ended, null, `${why}: the recorded call goes on`)
    await rings(a, ringing, `${why}: the registered telephone rings`)
    const living = (pids: Set<number>): number[] => [...pids].filter(pid => !killed.has(pid))
    const disturbed = [...senders.values()].map(living).filter(({ length }) => length > 1)
    t.same(disturbed, [], `${why}: no other machine sends the callback`)
  }

  const b = await world(t, settings, a)
  t.not(b.data_dir, a.data_dir)
  await undisturbed('another machine has started')
  const lost = await callBy(b)
  await heard(lost, 'a call by the other machine')
  const lost_sid = (await db.selectFrom('call').select('sid').orderBy('position', 'desc').executeTakeFirstOrThrow()).sid
  // It is heard before its answer is written.
  await until('its row says that it talks', () =>
    db
      .selectFrom('call')
      .select('sid')
      .where('sid', '=', lost_sid)
      .where('status', '=', 'in-progress')
      .executeTakeFirst(),
  )

  killed.add(b.pid('control'))
  await losesPower(b)
  await undisturbed('the other machine has lost its power')
  // Its sender would soon time out and retry.
  answer()
  const c = await world(t, settings, a)
  const kept = await callBy(c)
  const ended = await until('the lost call is ended', () =>
    db
      .selectFrom('cdr')
      .select(['reason', 'status'])
      .where('call_sid', '=', lost_sid)
      .execute()
      .then(rows => rows[0] && rows),
  )
  t.match(ended, [{ reason: 'node_lost', status: 'completed' }], 'once')
  t.same(
    await db.selectFrom('lease').selectAll().where('call_sid', '=', lost_sid).where('ended_at', 'is', null).execute(),
    [],
  )
  await undisturbed('its call is ended, and a third machine has started')

  const spoken_ms = Date.now() - Date.parse(tape.created_at)
  recorded.hangUp()
  talk.near.hangUp()
  const file = await until('the recording is whole', async () => {
    const row = await db.selectFrom('recording').selectAll().where('sid', '=', tape.sid).executeTakeFirst()
    return row?.status === 'completed' && row
  })
  const most_ms = Date.now() - Date.parse(tape.created_at) + 1_000
  const duration_ms = file.duration_ms ?? 0
  t.ok(duration_ms > spoken_ms / 2 && duration_ms < most_ms, `${duration_ms} of ${spoken_ms} ms`)
  t.equal((await a.voice('GET', `/Recordings/${tape.sid}.wav`)).bytes.subarray(0, 4).toString(), 'RIFF')

  // The tasks of the installation run on the first machine. The files of the third are its own.
  const taped = await desk.dial(`sip:${number}@${c.sip.host}:${c.sip.port}`, { from: own })
  await taped.answered()
  taped.hum(600)
  const begun = await until('the third machine records', () =>
    db.selectFrom('recording').select(['sid', 'file']).where('sid', '!=', tape.sid).executeTakeFirst(),
  )
  // What was only sent may not have been heard when the call ends, and a recording of nothing is absent.
  await until('a second of it is written', () => {
    const { size } = statSync(join(c.data_dir, begun.file), { throwIfNoEntry: false }) ?? { size: 0 }
    return size > 16_000
  })
  taped.hangUp()
  await until('the third machine has encrypted its recording', async () => {
    const row = await db.selectFrom('recording').select('file').where('sid', '=', begun.sid).executeTakeFirst()
    return row?.file.endsWith('.sealed') && existsSync(join(c.data_dir, row.file))
  })
  const there = await c.voice('GET', `/Recordings/${begun.sid}.wav`)
  t.equal(there.bytes.subarray(0, 4).toString(), 'RIFF')
  t.equal(
    (await a.voice('GET', `/Recordings/${begun.sid}.wav`)).status,
    503,
    'another machine says that it has no file',
  )

  // The first machine stops while the third records, and has a telephone of its own.
  await registers(c, of_third)
  const last = await desk.dial(`sip:${number}@${c.sip.host}:${c.sip.port}`, { from: own })
  await last.answered()
  last.hum(500)
  const running = await until('the third machine records again', () =>
    db.selectFrom('recording').select(['sid', 'file']).where('sid', 'not in', [tape.sid, begun.sid]).executeTakeFirst(),
  )
  const sizeOf = (): number => statSync(join(c.data_dir, running.file), { throwIfNoEntry: false })?.size ?? 0
  await until('it is written', () => sizeOf() > 8_000)

  const supervisor = pidsOf(a).get('supervisor') ?? 0
  process.kill(supervisor, 'SIGTERM')
  await until('the first machine has stopped', () => !runs(supervisor))
  await heard(kept, 'the call of the third machine outlives the stop of the first')
  await rings(c, ringing_there, 'the telephone of the third machine rings after the stop of the first')
  const size = sizeOf()
  await until('the recording of the third machine goes on', () => sizeOf() > size + 8_000)
  last.hangUp()
  await until('it is completed', async () => {
    const row = await db.selectFrom('recording').select('status').where('sid', '=', running.sid).executeTakeFirst()
    return row?.status === 'completed'
  })
  const heard_there = await c.voice('GET', `/Recordings/${running.sid}.wav`)
  t.equal(heard_there.bytes.subarray(0, 4).toString(), 'RIFF', 'and can be heard')
  kept.near.hangUp()
  await kept.far.over()
  await until('every call has its CDR', async () => {
    const open = await db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()
    return open.length === 0
  })
  const charges = await db.selectFrom('cdr').select('call_sid').execute()
  t.equal(new Set(charges.map(({ call_sid }) => call_sid)).size, charges.length, 'one CDR each')
})

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DRACHTIO_PROGRAM } from '../../bench/drachtio-server.ts'
import { wrongClock } from '../../bench/wrong-clock.ts'
import { LOST_AFTER_MS } from '../../core/state/nodes/nodes.ts'
import { sidOf } from '../support/busy.ts'
import { runCommand } from '../support/command-line.ts'
import t from '../support/harness/index.ts'
import { linkedAt } from '../support/ports.ts'
import { postgresDatabase } from '../support/postgres.ts'
import { refusal } from '../support/refusal.ts'
import { requested } from '../support/requested.ts'
import { openSoftphone } from '../support/softphone.ts'
import { until } from '../support/wait.ts'
import { wire } from '../support/wires.ts'
import { type World, world } from '../support/world.ts'

// Two whole machines share one PostgreSQL. A call lives on one of them; ceilings, money, configuration and commands are
// those of both. Their wall clocks are two hours apart. One of them falls silent, loses its way to the database and to
// the other one, comes back, and at last loses its power.

const NO_LINKS = 'left out: a drachtio-server has no links to other machines'
const CALLED = '+2348030004711'
const CEILING = 3
const A_SECOND = 2
/** The server counts whole milliseconds. */
const SECOND_MS = 990

const HOUR_MS = 3_600_000
/** Observers look every 5 s. */
const LOOKS_MS = 7_000

/** The processes of a platform by name, including the supervisor. */
const pidsOf = ({ data_dir }: World): (readonly [name: string, pid: number])[] =>
  readdirSync(join(data_dir, 'run'))
    .filter(name => name.endsWith('.pid'))
    .map(name => [name.slice(0, -4), Number(readFileSync(join(data_dir, 'run', name), 'utf8'))])

/** Simulates a power loss. Kills the supervisor first, because it would restart the others. */
async function losesPower(w: World): Promise<void> {
  const pids = pidsOf(w)
    .sort(([name]) => (name === 'supervisor' ? -1 : 1))
    .map(([, pid]) => pid)
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  await until('every process is gone', () => pids.every(pid => !existsSync(`/proc/${pid}`)))
}

t.test('two machines on one PostgreSQL', async t => {
  const database = await postgresDatabase()
  const way = await wire(t, Number(new URL(database).port))
  const settingsOf = async (host: string, clock_ms: number) => ({
    STROWGER_SANDBOX: 'off',
    ...(await linkedAt(host)),
    NODE_OPTIONS: wrongClock(clock_ms),
  })
  const a = await world(t, { ...(await settingsOf('127.0.0.2', -HOUR_MS)), STROWGER_DATABASE_URL: database })
  const to_database = { STROWGER_DATABASE_URL: database.replace(/:\d+\//, `:${way.port}/`) }
  const b = await world(t, { ...(await settingsOf('127.0.0.3', HOUR_MS)), ...to_database }, a)
  const { db } = a.state
  const [own = ''] = a.numbers
  const desk = await openSoftphone(t, '127.0.0.81')
  const far_end = await openSoftphone(t, '127.0.0.82')
  const target = { sip_uri: `sip:${far_end.address}:${far_end.port}`, transport: 'udp', priority: 1, weight: 1 }

  const dial = (w: World) => desk.dial(`sip:${CALLED}@${w.sip.host}:${w.sip.port}`, { from: own })
  const callBy = async (w: World) => {
    const near = await dial(w)
    const far = await far_end.incoming(CALLED)
    await far.answer()
    await near.answered()
    near.hum(440)
    far.hum(880)
    const sid = await sidOf(db, near)
    const row = db.selectFrom('call').select('answered_at').where('sid', '=', sid)
    await until('the answer is written', async () => (await row.executeTakeFirstOrThrow()).answered_at !== null)
    return { near, far, sid }
  }
  type Talk = Awaited<ReturnType<typeof callBy>>
  const heard = async ({ near, far }: Talk, why: string): Promise<void> => {
    for (const line of [near, far]) line.rtp.received.length = 0
    await Promise.all([near.hears(880), far.hears(440)])
    t.equal(near.ended ?? far.ended, null, why)
  }
  const running = () => db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()
  const cdrsOf = (sid: string) =>
    db.selectFrom('cdr').select(['reason', 'status']).where('call_sid', '=', sid).execute()
  const heldBy = (sid: string) =>
    db.selectFrom('lease').select('call_sid').where('call_sid', '=', sid).where('ended_at', 'is', null).execute()
  const stateOf = async (): Promise<{ readonly machines: readonly string[]; readonly code: number | null }> => {
    const env = { STROWGER_DATA: a.data_dir, STROWGER_HOST: '127.0.0.2', STROWGER_DATABASE_URL: database }
    const { stdout, code } = await runCommand(['cluster', 'status', '--json'], { env, state: a.state })
    const machines: { host: string; state: string; live_calls: number }[] = JSON.parse(stdout)
    return { code, machines: machines.map(({ host, state, live_calls }) => `${host} ${state} ${live_calls}`).sort() }
  }

  const ready = (w: World) =>
    until('it says whether it is ready', async () => {
      // Its control process may just start again.
      const answer = await requested(`${w.base_url}/readyz/machine`, { method: 'GET' }).catch(() => null)
      return answer?.status !== 429 && answer?.status
    })
  /** A machine that says that it is ready may be too busy when the call comes, but not again and again. */
  const TRIES = 5
  /** Places a call at a machine that has just said that it takes calls. */
  const callOnceReady = async (w: World): Promise<Talk> => {
    for (let tries = 1; ; tries++) {
      await until('the machine is ready', async () => (await ready(w)) === 200)
      const talk = await callBy(w)
      if (talk.near.refused === 0 || tries === TRIES) {
        t.equal(talk.near.refused, 0, 'a machine that says that it is ready takes the first call')
        return talk
      }
      talk.near.hangUp()
      await until('the call that was placed again has ended', async () => (await cdrsOf(talk.sid)).length > 0)
    }
  }

  // What one machine writes, both have applied when the API says so.
  const trunk_id = await a.addTrunk(desk.address, { targets: [target] })
  const talk = await callBy(b)
  await heard(talk, 'the other machine takes the calls of a trunk that one machine has written')
  await until(
    'each shows what the other runs',
    async () => (await stateOf()).machines.join() === '127.0.0.2 running 0,127.0.0.3 running 1',
  )
  const ended = await a.manage('POST', `/live-calls/${talk.sid}/hang-up`)
  t.equal(ended.status, 200)
  await Promise.all([talk.near.over(), talk.far.over()])
  await until('its slot is back', async () => (await running()).length === 0)
  t.pass('a request to one machine ends a call of the other')

  t.test('a trunk’s ceiling holds for both together: none over, none under', async t => {
    await a.state.transaction(trx =>
      trx.updateTable('trunk').set({ concurrency: CEILING }).where('id', '=', trunk_id).execute(),
    )
    const dialled = await Promise.all([a, b, a, b, a, b, a, b].map(dial))
    const answered = new Set<string>()
    for (let calls = 0; calls < CEILING; calls++) {
      const far = await far_end.incoming(CALLED)
      await far.answer()
      answered.add(far.header('call-id') ?? '')
    }
    await until('each call is answered or refused', () => dialled.every(({ final }) => final !== null))
    const finals = dialled.map(({ final }) => final)
    t.same(finals.filter(final => final === 200).length, CEILING)
    t.same(new Set(finals), new Set([200, 503]))
    t.equal((await running()).length, CEILING)
    t.equal(answered.size, CEILING)
    dialled.find(({ final }) => final === 200)?.hangUp()
    await until('a slot is back', async () => (await running()).length === CEILING - 1)
    const next = await callBy(b)
    t.equal(next.near.final, 200, 'who comes next has the slot, on whichever machine')
    for (const line of [next.near, ...dialled.filter(({ final }) => final === 200)]) line.hangUp()
    await until('all have ended', async () => (await running()).length === 0)
  })

  t.test('no second has more calls of a trunk than it may, of both machines together', async t => {
    const set = (limits: { readonly concurrency: number; readonly cps: number }) =>
      a.state.transaction(trx => trx.updateTable('trunk').set(limits).where('id', '=', trunk_id).execute())
    const limits = db.selectFrom('trunk').select(['concurrency', 'cps']).where('id', '=', trunk_id)
    const before = await limits.executeTakeFirstOrThrow()
    await set({ concurrency: 1000, cps: A_SECOND })
    // The calls of the test before are none of the first second.
    await a.state.transaction(trx => trx.updateTable('level_use').set({ takes: '' }).execute())
    const from_ms = performance.now()
    const earlier = far_end.calls.length
    const dialled = await Promise.all([a, b, a, b, a, b, a, b].map(dial))
    const arrived: number[] = []
    await until('each call is answered or refused', async () => {
      while (far_end.calls.length > earlier + arrived.length) {
        const far = await far_end.incoming(CALLED)
        arrived.push(performance.now() - from_ms)
        await far.answer()
      }
      return dialled.every(({ final }) => final !== null)
    })
    t.ok(arrived.length >= A_SECOND, 'those of the first second are admitted')
    // The first ones were counted after `from_ms`, and each later one a second after the one two before it.
    t.same(
      arrived.filter((ms, at) => ms < Math.floor(at / A_SECOND) * SECOND_MS),
      [],
    )
    t.equal(dialled.filter(({ final }) => final === 200).length, arrived.length)
    for (const line of dialled.filter(({ final }) => final === 200)) line.hangUp()
    await until('all have ended', async () => (await running()).length === 0)
    await set(before)
  })

  t.test('a machine that falls silent loses its calls once, and ends them itself when it comes back', async t => {
    const [kept, lost] = [await callBy(a), await callBy(b)]
    const silent = b.pid('signaling')
    process.kill(silent, 'SIGSTOP')
    t.teardown(() => process.kill(silent, 'SIGCONT'))
    const cdr = await until('another machine ends its call', async () => {
      const rows = await cdrsOf(lost.sid)
      return rows.length > 0 && rows
    })
    t.match(cdr, [{ reason: 'node_lost', status: 'completed' }])
    t.same(await heldBy(lost.sid), [], 'its slots are back')
    t.equal(lost.near.ended, null, 'while it is silent, its telephones go on')
    process.kill(silent, 'SIGCONT')
    await Promise.all([lost.near.over(), lost.far.over()])
    t.match(await cdrsOf(lost.sid), [{ reason: 'node_lost' }], 'one CDR')
    await until('it takes part again', async () => (await stateOf()).code === 0)
    const again = await callOnceReady(b)
    await heard(again, 'it takes calls')
    await heard(kept, 'the call of the other machine was not disturbed')
    for (const { near } of [kept, again]) near.hangUp()
    await until('all have ended', async () => (await running()).length === 0)
  })

  t.test('kill -9 of each process of a machine: its calls alone fail, and none stays in progress', async t => {
    const kept = await callBy(a)
    for (const name of ['control', 'media', 'edge', 'signaling'] as const) {
      const call = await callOnceReady(b)
      await b.kill(name, async () => {
        if (name !== 'control') await until(`it says so without ${name}`, async () => (await ready(b)) === 503)
      })
      if (name === 'control') {
        await heard(call, 'no call needs the control plane')
        call.near.hangUp()
      }
      await until(`the call ends after ${name} was killed`, async () => (await cdrsOf(call.sid)).length > 0)
      t.same(await heldBy(call.sid), [], 'its slots are back')
      // A drachtio-server that was killed knows no dialog any more.
      if (name !== 'edge' || DRACHTIO_PROGRAM === null) await call.far.over()
      else call.far.hangUp()
      await heard(kept, `the call of the other machine does not need ${name}`)
      await until('the machine is whole', async () => (await stateOf()).code === 0)
    }
    kept.near.hangUp()
    await until('all have ended', async () => (await running()).length === 0)
  })

  t.test('a machine that is cut off from the database keeps its calls while the other one hears it', async t => {
    if (DRACHTIO_PROGRAM !== null) return t.comment(NO_LINKS)
    const [kept, leaves] = [await callOnceReady(b), await callBy(b)]
    way.blackhole()
    t.teardown(() => way.mend())
    const refused = await refusal(t, desk.address, `sip:${CALLED}@${b.sip.host}:${b.sip.port}`, own)
    t.match(refused, { status: 503, retry_after: /^\d+$/ })
    await until('whoever balances load sees which machine takes calls', async () => (await ready(a)) === 200)
    t.equal(await ready(b), 503, 'and which one does not')
    leaves.near.hangUp()
    await leaves.far.over()
    const node = () =>
      db
        .selectFrom('node')
        .innerJoin('call', 'call.node_id', 'node.id')
        .select(['node.heartbeat_at', 'node.attested_at', 'node.lost_at'])
        .where('call.sid', '=', kept.sid)
        .executeTakeFirst()
    const cut_off = await until('it would be lost if nobody heard it', async () => {
      const row = await node()
      if (!row) return 'it is lost'
      return a.state.clock.now() - Date.parse(row.heartbeat_at) > LOST_AFTER_MS + LOOKS_MS && row
    })
    t.match(cut_off, { lost_at: null, attested_at: String })
    t.ok((await stateOf()).machines.includes('127.0.0.3 cut_off 2'), 'operators see it; one of its ends waits')
    t.same(await cdrsOf(kept.sid), [])
    t.equal((await heldBy(kept.sid)).length, 1, 'it keeps its slots')
    await heard(kept, 'it goes on')
    await way.mend()
    const written = async () => {
      const rows = await cdrsOf(leaves.sid)
      return rows.length > 0 && rows
    }
    t.match(await until('the end of the other call is written', written), [{ reason: null, status: 'completed' }])
    const next = await callOnceReady(b)
    await heard(next, 'it takes calls again')
    // The connections are lost, but the machine still uses them. It finds the loss, perhaps between two of our looks.
    way.halfOpen()
    const after = await callOnceReady(b)
    await heard(after, 'it has found that its connections were lost')
    after.near.hangUp()
    await heard(kept, 'the call was not disturbed')
    for (const { near } of [kept, next]) near.hangUp()
    await until('all have ended', async () => (await running()).length === 0)
    t.match(await cdrsOf(kept.sid), [{ reason: null, status: 'completed' }])
  })

  t.test('a machine that reaches neither the database nor the other one ends its calls itself', async t => {
    if (DRACHTIO_PROGRAM !== null) return t.comment(NO_LINKS)
    const [kept, lost] = [await callBy(a), await callBy(b)]
    const links = await Promise.all(
      (await db.selectFrom('edge_link').selectAll().execute()).map(async row => {
        const between = await wire(t, row)
        await db
          .updateTable('edge_link')
          .set({ host: between.host, port: between.port })
          .where('machine_id', '=', row.machine_id)
          .execute()
        return between
      }),
    )
    await until('the machines hear each other by the links of the test', () => links.every(({ open }) => open > 0))
    for (const link of links) link.blackhole()
    t.teardown(() => Promise.all([way, ...links].map(one => one.mend())))
    for (const w of [a, b]) {
      const apart = await callBy(w)
      await heard(apart, 'machines that only miss each other take calls')
      apart.near.hangUp()
      await until('it has ended', async () => (await running()).length === 2)
    }
    way.blackhole()
    await Promise.all([lost.near.over(), lost.far.over()])
    const cdr = await until('the other machine ends it, too', async () => {
      const rows = await cdrsOf(lost.sid)
      return rows.length > 0 && rows
    })
    t.match(cdr, [{ reason: 'node_lost', status: 'completed' }])
    t.same(await heldBy(lost.sid), [], 'its slots are back')
    await Promise.all([way, ...links].map(one => one.mend()))
    await until('it takes part again', async () => (await stateOf()).code === 0)
    const again = await callOnceReady(b)
    await heard(again, 'it takes calls')
    await heard(kept, 'the call of the other machine was not disturbed')
    t.match(await cdrsOf(lost.sid), [{ reason: 'node_lost' }], 'one CDR')
    for (const { near } of [kept, again]) near.hangUp()
    await until('all have ended', async () => (await running()).length === 0)
  })

  t.test('kill -9 of a machine: its calls alone fail, and the other one closes them', async t => {
    const [kept, lost] = [await callBy(a), await callBy(b)]
    await losesPower(b)
    const cdr = await until('its call is ended', async () => {
      const rows = await cdrsOf(lost.sid)
      return rows.length > 0 && rows
    })
    t.match(cdr, [{ reason: 'node_lost', status: 'completed' }])
    t.same(await heldBy(lost.sid), [])
    await until(
      'its processes are forgotten',
      async () => (await stateOf()).machines.join() === '127.0.0.2 running 1,127.0.0.3 down 0',
    )
    t.equal((await stateOf()).code, 1, 'a program sees that a machine is down')
    await heard(kept, 'the call of the other machine goes on')
    const { near } = await callBy(a)
    for (const line of [near, kept.near]) line.hangUp()
    await until('nothing stays in progress', async () => (await running()).length === 0)
    const charged = await db.selectFrom('cdr').select('call_sid').execute()
    t.equal(new Set(charged.map(({ call_sid }) => call_sid)).size, charged.length, 'one CDR each')
  })
})

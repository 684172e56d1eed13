import { insertCommand } from '../../core/state/calls/calls.ts'
import { wrongCounters } from '../../core/state/calls/counters.ts'
import type { UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import { openAgent, place, sdpOf } from '../support/agents.ts'
import { fillDisk, lockState } from '../support/faults.ts'
import t, { type Test } from '../support/harness/index.ts'
import { rated } from '../support/rated.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'

// Unavailable storage, and a killed signaling process: no call is wrongly admitted, and no running call and no money is
// lost.

const WORLD = '+2348030004711'
const PEER = '127.0.0.61'
const TARGET = '127.0.0.62'
const KILLED_CALLS = 200

t.test('admission during faults', async t => {
  const w = await sharedWorld(t)
  const { db } = w.state
  await rated(w)
  let take = (call: UserAgentCall): void => call.answer({ body: sdpOf(TARGET) })
  const target = await openAgent(t, { ip: TARGET, take: call => take(call) })
  const limits = { concurrency: 1000, cps: 1000, max_call_duration_seconds: 3600 }
  const targets = [{ sip_uri: `sip:${TARGET}:${target.port}`, transport: 'udp', priority: 10, weight: 100 }]
  await w.addTrunk(PEER, { targets, limits })
  const peer = await openAgent(t, { ip: PEER })
  const own = w.numbers[1] ?? ''
  const to = { to: w.sip, caller: own }
  const call = () => place(peer, `sip:${WORLD}@${w.sip.host}`, { ...to, once: true })
  const answered = async () => {
    const placed = await place(peer, `sip:${WORLD}@${w.sip.host}`, to)
    if (placed.status !== 200) throw new Error(`a call was answered ${placed.status}`)
    return placed.call
  }
  const newest = () => db.selectFrom('call').selectAll().orderBy('position', 'desc').executeTakeFirstOrThrow()
  const record = (sid: string) =>
    until(`the CDR of ${sid}`, () => db.selectFrom('cdr').selectAll().where('call_sid', '=', sid).executeTakeFirst())
  const charged = async (sid: string) => {
    const { charge_minor } = await db
      .selectFrom('reservation')
      .selectAll()
      .where('call_sid', '=', sid)
      .executeTakeFirstOrThrow()
    return charge_minor
  }
  const rows = async () => {
    const { n } = await db
      .selectFrom('call')
      .select(eb => eb.fn.countAll<number>().as('n'))
      .executeTakeFirstOrThrow()
    return n
  }
  const nothingIsTaken = async (t: Test) => {
    t.same(await wrongCounters(db), [])
    const held = await db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute()
    t.same(held, [], 'no slot is held')
    const unsettled = await db.selectFrom('reservation').select('call_sid').where('settled_at', 'is', null).execute()
    t.same(unsettled, [], 'no money is held')
  }

  t.test('refuses calls with 503 while the state is locked, and saves events of running calls after it', async t => {
    const running = await answered()
    const { sid: running_sid } = await newest()
    // This call is answered while the state cannot be written.
    let answer: (() => void) | undefined
    take = leg => {
      leg.ring(180)
      answer = () => leg.answer({ body: sdpOf(TARGET) })
    }
    const late = answered()
    await until('it rings', () => answer !== undefined)
    const { sid: late_sid } = await until('its ringing is saved', async () => {
      const row = await newest()
      return row.ringing_at !== null && row
    })
    const before = await rows()
    const lock = await lockState(t, w)
    answer?.()
    const late_call = await late
    const asked_ms = performance.now()
    const refused = await Promise.all([call(), call()])
    const waited_ms = performance.now() - asked_ms
    t.comment(`refused after ${Math.round(waited_ms)} ms, while the lock is held`)
    for (const { status, response } of refused) {
      t.equal(status, 503)
      t.match(response?.get('reason'), /state_unavailable/)
      t.match(response?.get('warning'), /the state cannot be written: .*(locked|waited|busy)/)
      t.match(response?.get('retry-after'), /\d/)
    }
    await until('a log line says so', () => /an INVITE could not be admitted/.test(w.log()))
    t.equal(running.state, 'answered', 'the calls that ran go on')
    t.equal(late_call.state, 'answered')
    late_call.hangUp()
    await lock.release()
    const cdr = await record(late_sid)
    t.ok(cdr.answered_at !== null && cdr.duration_seconds >= 1, `${cdr.duration_seconds} s`)
    t.match(cdr, { status: 'completed', reason: null, sip_code: 200 })
    t.equal(await charged(late_sid), Math.ceil(Number(cdr.duration_seconds) / 10) * 10, 'the whole call is paid for')
    t.equal(await rows(), before, 'the refused calls left nothing behind')
    take = leg => leg.answer({ body: sdpOf(TARGET) })
    const next = await until('calls are admitted again', async () => {
      const placed = await call()
      return placed.status === 200 && placed.call
    })
    for (const each of [next, running]) each.hangUp()
    t.match(await record(running_sid), { status: 'completed', reason: null })
    await until('everything is given back', async () => {
      const held = await db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute()
      return held.length === 0
    })
    await nothingIsTaken(t)
  })

  t.test('a full disk refuses with 503, ends no call, and admission resumes when there is room', async t => {
    const running = await answered()
    const { sid } = await newest()
    const before = await rows()
    const disk = fillDisk(w, 'signaling')
    t.teardown(() => disk.room())
    for (let calls = 0; calls < 3; calls++) {
      const { status, response } = await call()
      t.equal(status, 503)
      t.match(response?.get('warning'), /the state cannot be written/)
    }
    t.equal(running.state, 'answered')
    running.hangUp()
    disk.room()
    t.match(await record(sid), { status: 'completed', reason: null })
    t.equal(await rows(), before)
    const next = await answered()
    next.hangUp()
    await record((await newest()).sid)
    await nothingIsTaken(t)
  })

  t.test('a call that a command ends while its media opens does not begin', async t => {
    const first = (await newest()).position
    const rung = target.invites.length
    const media = w.pid('media')
    process.kill(media, 'SIGSTOP')
    try {
      const placed = place(peer, `sip:${WORLD}@${w.sip.host}`, to)
      const { sid } = await until('it is admitted', async () => {
        const row = await newest()
        return row.position > first && row
      })
      await w.state.transaction(trx => insertCommand(trx, sid, 'hangup', { reason: 'contained' }, Date.now()))
      await record(sid)
      process.kill(media, 'SIGCONT')
      t.equal((await placed).status, 487, 'its caller is told')
      t.equal(target.invites.length, rung, 'and its target never rang')
      t.match(await record(sid), { status: 'canceled', ended_by: 'api', answered_at: null })
      await w.untilNone('media_ports_in_use')
      await nothingIsTaken(t)
    } finally {
      process.kill(media, 'SIGCONT')
    }
  })

  t.test(`kill -9 of signaling with ${KILLED_CALLS} calls up: everything is back within 30 s`, async t => {
    let left = KILLED_CALLS
    const line = async () => {
      while (left-- > 0) await answered()
    }
    await Promise.all(Array.from({ length: 10 }, line))
    // Calls that the platform was too busy to decide have rows, too. They were placed again.
    const sids = await until('every answer is saved', async () => {
      const open = await db.selectFrom('call').select('sid').where('status', '=', 'in-progress').execute()
      return open.length === KILLED_CALLS && open.map(({ sid }) => sid)
    })
    const killed_ms = performance.now()
    await w.kill('signaling')
    const cdrs = await until('every call has a CDR', async () => {
      const found = await db.selectFrom('cdr').selectAll().where('call_sid', 'in', sids).execute()
      return found.length === KILLED_CALLS && found
    })
    await w.untilNone('media_ports_in_use')
    t.comment(`${Math.round(performance.now() - killed_ms)} ms after the kill`)
    for (const { status, reason, answered_at } of cdrs)
      if (status !== 'completed' || reason !== 'node_lost' || answered_at === null) t.fail(`${status} ${reason}`)
    await nothingIsTaken(t)
    const charges = await db.selectFrom('ledger').select('call_sid').where('call_sid', 'in', sids).execute()
    t.equal(charges.length, KILLED_CALLS, 'each is charged')
    t.equal(new Set(charges.map(({ call_sid }) => call_sid)).size, KILLED_CALLS, 'once')
    const settled = await db.selectFrom('reservation').selectAll().where('call_sid', 'in', sids).execute()
    const owed = settled.reduce((sum, row) => sum + Number(row.charge_minor), 0)
    const day = await db.selectFrom('spend_day').select('spent_minor').where('level', '=', 'project').execute()
    const all = await db.selectFrom('reservation').select('charge_minor').execute()
    t.equal(
      day.reduce((sum, row) => sum + row.spent_minor, 0),
      all.reduce((sum, row) => sum + Number(row.charge_minor), 0),
      'the spend of the day is the sum of the charges',
    )
    t.ok(owed >= KILLED_CALLS * 10, 'at least an increment each')
    const next = await until('a new call is admitted', async () => {
      const placed = await call()
      return placed.status === 200 && placed.call
    })
    next.hangUp()
  })
})

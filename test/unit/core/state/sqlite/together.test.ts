import { wrongCounters } from '../../../../../core/state/calls/counters.ts'
import { takeAdmission } from '../../../../../core/state/calls/leases.ts'
import { findCall, insertCall, type NewCall, writeCall } from '../../../../../core/state/calls/running-calls.ts'
import { openState } from '../../../../../core/state/index.ts'
import { callProcedure } from '../../../../../core/state/port.ts'
import { patience } from '../../../../../core/state/sqlite/steps.ts'
import { type AdmissionWorld, admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import t, { type Test } from '../../../../support/harness/index.ts'

// Waiting procedures share a commit, and each is still atomic.

async function world(test: Test, options: Parameters<typeof admissionWorld>[0] = {}): Promise<AdmissionWorld> {
  const made = await admissionWorld(options)
  test.teardown(() => made.close())
  return made
}

const AT = new Date(NOW_MS).toISOString()
const call = (w: AdmissionWorld, sid: string): NewCall => ({
  ...{ sid, project_id: w.project_id, origin: 'trunk', direction: 'outbound', status: 'ringing', queued_at: AT },
  ...{ from_number: '+2342010000001', to_number: '+2348031234567' },
})
const sids = async ({ state }: AdmissionWorld): Promise<string[]> =>
  (await state.db.selectFrom('call').select('sid').orderBy('position').execute()).map(row => row.sid)

t.test('waiting procedures run in order and share a commit', async t => {
  const w = await world(t)
  const names = Array.from({ length: 40 }, (_, i) => `CA${i}`)
  const before = w.state.work()
  await Promise.all(names.map(name => insertCall(w.state.db, call(w, name), NOW_MS)))
  const after = w.state.work()
  t.same(await sids(w), names)
  t.equal(after.commits - before.commits, 1)
  t.equal(after.messages - before.messages, 1)
})

t.test('a failing procedure does not roll back others in its commit', async t => {
  const w = await world(t)
  const names = ['CA1', 'CA2', 'CA1', 'CA3']
  const written = await Promise.allSettled(names.map(name => insertCall(w.state.db, call(w, name), NOW_MS)))
  t.same(
    written.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
  )
  t.match(written[2], { reason: { code: /CONSTRAINT/ } })
  t.same(await sids(w), ['CA1', 'CA2', 'CA3'])
})

t.test('procedures wait for an open transaction, and run once it ends', async t => {
  const w = await world(t)
  const { state } = w
  let waiting: Promise<unknown> = Promise.resolve()
  await state.transaction(async trx => {
    await insertCall(trx, call(w, 'CA1'), NOW_MS)
    waiting = Promise.all(['CA2', 'CA3'].map(name => insertCall(state.db, call(w, name), NOW_MS)))
    for (let looks = 0; looks < 3; looks++) {
      const { n } = await trx
        .selectFrom('call')
        .select(eb => eb.fn.countAll<number>().as('n'))
        .executeTakeFirstOrThrow()
      t.equal(Number(n), 1)
    }
  })
  await waiting
  t.same(await sids(w), ['CA1', 'CA2', 'CA3'])
  await t.rejects(
    state.transaction(async trx => {
      waiting = insertCall(state.db, call(w, 'CA4'), NOW_MS)
      await insertCall(trx, call(w, 'CA4'), NOW_MS)
      throw new Error('never mind')
    }),
    /never mind/,
  )
  await waiting
  t.same(await sids(w), ['CA1', 'CA2', 'CA3', 'CA4'], 'the rollback preceded the other call')
})

t.test('on a full disk all procedures of a commit fail, and none is half-written', async t => {
  const w = await world(t)
  const { state } = w
  const [pages] = (await w.pragma('page_count')) as { page_count: number }[]
  await w.pragma(`max_page_count = ${pages?.page_count ?? 1}`)
  const requests = Array.from({ length: 400 }, () => w.request())
  const taken = await Promise.allSettled(requests.map(request => takeAdmission(state.db, request)))
  const refused = taken.filter(each => each.status === 'rejected')
  t.ok(refused.length > 0, 'the disk was full')
  for (const { reason } of refused) if (!/FULL/.test(reason.code)) t.fail(reason.message)
  const leases = await state.db.selectFrom('lease').select('call_sid').execute()
  t.same(
    leases.map(lease => lease.call_sid),
    requests.filter((_, i) => taken[i]?.status === 'fulfilled').map(request => request.call_sid),
    'those that were told so hold their slots, no others',
  )
  t.same(await wrongCounters(state.db), [])
  await w.pragma('max_page_count = 1000000')
  t.equal((await takeAdmission(state.db, w.request())).admitted, true)
})

t.test('after a lock timeout later waits are short until work succeeds again', async t => {
  let now_ms = 0
  let locked = true
  const waiting = patience(5000, { monotonic_ms: () => now_ms })
  const waits = (): number => {
    const begun_ms = now_ms
    const look = () => {
      now_ms += 20
      if (locked) throw Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
    }
    if (locked) t.throws(() => waiting(look), { code: 'SQLITE_BUSY' })
    else waiting(look)
    return now_ms - begun_ms
  }
  t.equal(waits(), 5000)
  t.equal(waits(), 500)
  locked = false
  t.equal(waits(), 20)
  locked = true
  t.equal(waits(), 5000)
})

t.test('refuses a write while the lock is held, and does the next one after its release', async t => {
  const w = await world(t, { busy_timeout_ms: 100 })
  const { state } = w
  const other = await openState({ data_dir: w.data_dir })
  t.teardown(() => other.close())
  await other.transaction(async trx => {
    // The first statement begins the transaction.
    await trx.selectFrom('node').select('id').execute()
    for (const name of ['CA1', 'CA2'])
      await t.rejects(insertCall(state.db, call(w, name), NOW_MS), { code: 'SQLITE_BUSY' })
  })
  await insertCall(state.db, call(w, 'CA3'), NOW_MS)
  t.same(await sids(w), ['CA3'])
})

/** The deadline has passed before the request. */
const OVER_MS = -1000

t.test('refuses a procedure that cannot begin before its deadline, and never runs it', async t => {
  const w = await world(t)
  const { state } = w
  const other = await openState({ data_dir: w.data_dir })
  t.teardown(() => other.close())
  const insert = (name: string, within_ms: number) =>
    callProcedure(state.db, 'insert_call', { call: call(w, name), now_ms: NOW_MS }, within_ms)
  await other.transaction(async trx => {
    await trx.selectFrom('node').select('id').execute()
    await t.rejects(insert('CA1', 50), { code: 'SQLITE_BUSY' })
  })
  const together = await Promise.allSettled([insert('CA2', OVER_MS), insert('CA3', 5000)])
  t.match(together, [{ status: 'rejected', reason: { code: 'SQLITE_BUSY' } }, { status: 'fulfilled' }])
  t.same(await sids(w), ['CA3'])
})

t.test('steps of a call commit atomically, and an ended call takes none', async t => {
  const w = await world(t)
  const { db } = w.state
  await insertCall(db, call(w, 'CA1'), NOW_MS)
  const attempt = {
    step: 'attempt',
    attempt: { sequence: 1, target: 'sip:x', transport: 'udp' },
    at_ms: NOW_MS,
  } as const
  const ringing = { step: 'ringing', at_ms: NOW_MS } as const
  // No such column exists: the whole write fails.
  const wrong = { step: 'attempt_changed', sequence: 1, changes: { nonsense: 1 } } as never
  await t.rejects(writeCall(db, 'CA1', [attempt, ringing, wrong]), /nonsense/)
  t.match(await findCall(db, 'CA1'), { ringing_at: null })
  t.same(await db.selectFrom('call_attempt').selectAll().execute(), [])
  const written = await writeCall(db, 'CA1', [
    attempt,
    { step: 'attempt_changed', sequence: 1, changes: { sip_code: 200, result: 'answered', ended_at: AT } },
    { step: 'answered', at_ms: NOW_MS },
  ])
  t.match(written, { running: true, end: null })
  t.match(await db.selectFrom('call_attempt').selectAll().execute(), [{ sequence: 1, result: 'answered' }])
  t.match(await findCall(db, 'CA1'), { status: 'in-progress', answered_at: AT })
})

import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { wrongCounters } from '../../../../../core/state/calls/counters.ts'
import { insertMessages } from '../../../../../core/state/calls/ladder.ts'
import { releaseAdmission, takeAdmission } from '../../../../../core/state/calls/leases.ts'
import { insertCall, type NewCall } from '../../../../../core/state/calls/running-calls.ts'
import { openState } from '../../../../../core/state/index.ts'
import { LocalConnection } from '../../../../../core/state/sqlite/local.ts'
import { LONG_LOG_PAGES } from '../../../../../core/state/sqlite/log-index.ts'
import { CHECKPOINT_PAGES } from '../../../../../core/state/sqlite/steps.ts'
import { type AdmissionWorld, admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import t, { type Test } from '../../../../support/harness/index.ts'

// A single procedure runs on the calling thread (decision 0002) with the same outcome as on the state's thread. The
// number of messages to that thread shows which one ran it.

/** `later` advances the clock. Otherwise it stands still, so that nothing is slow, however busy the machine is. */
async function world(test: Test): Promise<AdmissionWorld & { later(ms: number): void }> {
  let now_ms = 0
  const made = await admissionWorld({ inline_here: { monotonic_ms: () => now_ms } })
  test.teardown(() => made.close())
  return {
    ...made,
    later(ms) {
      now_ms += ms
    },
  }
}

const messagesOf = async ({ state }: AdmissionWorld, work: () => Promise<unknown>): Promise<number> => {
  const before = state.work().messages
  await work()
  return state.work().messages - before
}

const AT = new Date(NOW_MS).toISOString()
const call = (w: AdmissionWorld, sid: string): NewCall => ({
  ...{ sid, project_id: w.project_id, origin: 'trunk', direction: 'outbound', status: 'ringing', queued_at: AT },
  ...{ from_number: '+2342010000001', to_number: '+2348031234567' },
})

t.test('runs a single procedure here and concurrent ones on the thread, and counts all of them', async t => {
  const w = await world(t)
  const { state } = w
  await w.trunk({ concurrency: 5 })
  const take = () => takeAdmission(state.db, w.request())
  const commits = state.work().commits
  t.equal(await messagesOf(w, async () => t.equal((await take()).admitted, true)), 0)
  t.equal(state.work().commits - commits, 1)
  t.equal(await messagesOf(w, () => Promise.all([take(), take()])), 1)
  t.equal(await messagesOf(w, async () => t.equal((await take()).admitted, true)), 1, 'concurrent ones predict more')
  w.later(11)
  t.equal(await messagesOf(w, async () => t.equal((await take()).admitted, true)), 0)
  t.match(await take(), { admitted: false, reason: 'concurrency_exceeded' })
  const leases = await state.db.selectFrom('lease').select('call_sid').execute()
  t.equal(leases.length, 5)
  for (const { call_sid } of leases)
    await releaseAdmission(state.db, { call_sid, answered: true, duration_seconds: 7, now_ms: NOW_MS })
  t.same(await wrongCounters(state.db), [])
  const { live } = await state.db.selectFrom('level_use').select('live').executeTakeFirstOrThrow()
  t.equal(live, 0)
})

t.test('another process’s commit takes effect with the next decision', async t => {
  const w = await world(t)
  const other = await openState({ data_dir: w.data_dir })
  t.teardown(() => other.close())
  t.equal((await takeAdmission(w.state.db, w.request())).admitted, true)
  await other.db.updateTable('trunk').set({ concurrency: 0 }).where('id', '=', w.trunk_id).execute()
  t.match(await takeAdmission(w.state.db, w.request()), { admitted: false, reason: 'concurrency_exceeded' })
})

t.test('while another process writes, the thread waits and the event loop keeps running', async t => {
  const w = await world(t)
  const other = await openState({ data_dir: w.data_dir })
  t.teardown(() => other.close())
  let decided = false
  let taken: Promise<unknown> = Promise.resolve()
  const messages = await messagesOf(w, async () => {
    await other.transaction(async trx => {
      await trx.selectFrom('node').select('id').execute()
      taken = takeAdmission(w.state.db, w.request()).then(outcome => {
        decided = true
        t.equal(outcome.admitted, true)
      })
      // The inline attempt is over by now. This event loop answers a statement, so it does not wait for a lock.
      await turn()
      await trx.selectFrom('node').select('id').execute()
      t.equal(decided, false)
    })
    await taken
  })
  t.equal(messages, 1)
  t.same(await wrongCounters(w.state.db), [])
})

t.test('earlier requests to the thread run first', async t => {
  const w = await world(t)
  const { db } = w.state
  const first = Promise.all([insertCall(db, call(w, 'CA1'), NOW_MS), insertCall(db, call(w, 'CA2'), NOW_MS)])
  await turn()
  const second = insertCall(db, call(w, 'CA3'), NOW_MS)
  await Promise.all([first, second])
  const rows = await db.selectFrom('call').select('sid').orderBy('position').execute()
  t.same(
    rows.map(({ sid }) => sid),
    ['CA1', 'CA2', 'CA3'],
  )
})

t.test('rolls back a failing procedure and reports its code, as on the thread', async t => {
  const w = await world(t)
  const { db } = w.state
  await insertCall(db, call(w, 'CA1'), NOW_MS)
  t.equal(await messagesOf(w, () => t.rejects(insertCall(db, call(w, 'CA1'), NOW_MS), { code: /CONSTRAINT/ })), 0)
  const unknown = { service: { type: 'trunk', id: 'trk_1' }, project_id: 'prj_none' } as const
  await t.rejects(takeAdmission(db, w.request(unknown)), { name: 'StateError', message: /no project prj_none/ })
  t.same(await db.selectFrom('lease').selectAll().execute(), [])
  t.equal((await takeAdmission(db, w.request())).admitted, true, 'no transaction was left open')
})

t.test('runs a long procedure on the thread, and those concurrent with it and after it here', async t => {
  const w = await world(t)
  const { db } = w.state
  const one = { sip_call_id: 'a', at_ms: NOW_MS, direction: 'in', protocol: 'udp', local: 'b', remote: 'c' } as const
  const keep = () => insertMessages(db, { edge_id: 'mac_1', messages: [{ ...one, retransmission: 0, text: 'INVITE' }] })
  const take = () => takeAdmission(db, w.request())
  t.equal(await messagesOf(w, take), 0)
  t.equal(await messagesOf(w, () => Promise.all([keep(), take()])), 1, 'only the long one goes to the thread')
  const other = await openState({ data_dir: w.data_dir })
  t.teardown(() => other.close())
  const messages = await messagesOf(w, async () => {
    let both: Promise<unknown> = Promise.resolve()
    // The long procedure is in progress until this transaction ends.
    await other.transaction(async trx => {
      await trx.selectFrom('node').select('id').execute()
      const kept = keep()
      await turn()
      both = Promise.all([kept, take()])
      await turn()
    })
    await both
  })
  t.equal(messages, 2, 'procedures that arrive meanwhile wait behind it')
  t.equal(await messagesOf(w, take), 0, 'they were not concurrent: the next one runs here')
})

t.test('after a slow procedure, the state’s thread runs the next ones for a while', async t => {
  const w = await world(t)
  let now_ms = 0
  /** How far each read advances the clock. A value above 0 simulates a slow disk. */
  let costs_ms = 0
  const here = new LocalConnection({
    keeps_rows: true,
    file: join(w.data_dir, 'strowger.sqlite'),
    clock: {
      monotonic_ms: () => {
        now_ms += costs_ms
        return now_ms
      },
    },
  })
  t.teardown(() => here.close())
  const take = () => here.procedure('take_admission', { request: w.request(), dry_run: false })
  t.match(take(), { result: { admitted: true } })
  costs_ms = 30
  t.match(take(), { result: { admitted: true } }, 'the slow one itself completes')
  costs_ms = 0
  t.equal(take(), null)
  t.equal(here.counts.commits, 2, 'nothing was begun')
  now_ms += 2900
  t.equal(take(), null, 'rests for a hundred times its duration')
  now_ms += 100
  t.match(take(), { result: { admitted: true } })
})

/** Makes the log this many pages longer. */
function lengthen(w: AdmissionWorld, pages: number): void {
  const other = new Database(join(w.data_dir, 'strowger.sqlite'))
  other.pragma('wal_autocheckpoint = 0')
  other.exec(`create table long_${pages} as select zeroblob(${pages * 4096})`)
  other.close()
}

t.test(
  'the state’s thread runs procedures that wait for the disk: with a very long log, and at the restart of the log',
  async t => {
    const w = await world(t)
    const { db } = w.state
    const take = () => takeAdmission(db, w.request())
    t.equal(await messagesOf(w, take), 0)
    await w.pragma('wal_checkpoint(passive)')
    t.equal(await messagesOf(w, take), 1, 'the log was checkpointed completely')
    t.equal(await messagesOf(w, take), 0)
    const reader = new Database(join(w.data_dir, 'strowger.sqlite'), { readonly: true })
    t.teardown(() => reader.close())
    reader.exec('begin')
    reader.prepare('select id from lease').all()
    lengthen(w, LONG_LOG_PAGES)
    t.equal(await messagesOf(w, take), 0, 'a long log is left to the control process')
    lengthen(w, CHECKPOINT_PAGES - LONG_LOG_PAGES)
    t.equal(await messagesOf(w, take), 1, 'the log is very long, and a reader still uses it')
    reader.exec('commit')
    t.equal(await messagesOf(w, take), 1, 'this commit checkpoints it')
    t.equal(await messagesOf(w, take), 1, 'this one restarts it')
    t.equal(await messagesOf(w, take), 0)
  },
)

t.test('finishes pending procedures at close, and rejects later ones', async t => {
  const w = await world(t)
  const last = takeAdmission(w.state.db, w.request())
  const closed = w.state.close()
  t.equal((await last).admitted, true, 'an earlier request is completed')
  await closed
  await t.rejects(takeAdmission(w.state.db, w.request()), { code: 'CLOSED' })
})

import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { insertMessages } from '../../../../../core/state/calls/ladder.ts'
import { countersAdrift, releaseAdmission, takeAdmission } from '../../../../../core/state/calls/leases.ts'
import { insertCall, type NewCall } from '../../../../../core/state/calls/running-calls.ts'
import { openState } from '../../../../../core/state/index.ts'
import { InlineConnection } from '../../../../../core/state/sqlite/inline.ts'
import { type AdmissionWorld, admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'

// A procedure that is asked for alone is run on the thread that asks (decision 0510), with the same outcome as on the
// state's thread; which of them ran it shows in the messages to that thread.

/** `later`: the clock stands still else, so that nothing was slow, however busy the machine is. */
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

t.test('one alone is decided here, several of a turn on the thread, and all of them count', async t => {
  const w = await world(t)
  const { state } = w
  await w.trunk({ concurrency: 5 })
  const take = () => takeAdmission(state.db, w.request())
  const commits = state.work().commits
  t.equal(await messagesOf(w, async () => t.equal((await take()).admitted, true)), 0)
  t.equal(state.work().commits - commits, 1)
  t.equal(await messagesOf(w, () => Promise.all([take(), take()])), 1)
  t.equal(await messagesOf(w, async () => t.equal((await take()).admitted, true)), 1, 'where some met, more come')
  w.later(11)
  t.equal(await messagesOf(w, async () => t.equal((await take()).admitted, true)), 0)
  t.match(await take(), { admitted: false, reason: 'concurrency_exceeded' })
  const leases = await state.db.selectFrom('lease').select('call_sid').execute()
  t.equal(leases.length, 5)
  for (const { call_sid } of leases)
    await releaseAdmission(state.db, { call_sid, answered: true, duration_seconds: 7, now_ms: NOW_MS })
  t.same(await countersAdrift(state.db), [])
  const { live } = await state.db.selectFrom('level_use').select('live').executeTakeFirstOrThrow()
  t.equal(live, 0)
})

t.test('what another process commits is in effect for the next decision', async t => {
  const w = await world(t)
  const other = await openState({ data_dir: w.data_dir })
  t.teardown(() => other.close())
  t.equal((await takeAdmission(w.state.db, w.request())).admitted, true)
  await other.db.updateTable('trunk').set({ concurrency: 0 }).where('id', '=', w.trunk_id).execute()
  t.match(await takeAdmission(w.state.db, w.request()), { admitted: false, reason: 'concurrency_exceeded' })
})

t.test('while another process writes, the thread waits, and the event loop goes on', async t => {
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
      // It has been tried here by then. A statement is answered on this event loop, which therefore waits for no lock.
      await turn()
      await trx.selectFrom('node').select('id').execute()
      t.equal(decided, false)
    })
    await taken
  })
  t.equal(messages, 1)
  t.same(await countersAdrift(w.state.db), [])
})

t.test('what the thread was asked before comes first', async t => {
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

t.test('one that fails leaves nothing and is told by its code, as on the thread', async t => {
  const w = await world(t)
  const { db } = w.state
  await insertCall(db, call(w, 'CA1'), NOW_MS)
  t.equal(await messagesOf(w, () => t.rejects(insertCall(db, call(w, 'CA1'), NOW_MS), { code: /CONSTRAINT/ })), 0)
  const unknown = { service: { type: 'trunk', id: 'trk_1' }, project_id: 'prj_none' } as const
  await t.rejects(takeAdmission(db, w.request(unknown)), { name: 'StateError', message: /no project prj_none/ })
  t.same(await db.selectFrom('lease').selectAll().execute(), [])
  t.equal((await takeAdmission(db, w.request())).admitted, true, 'no transaction was left open')
})

t.test('a long procedure runs on the thread, and those beside it and after it run here', async t => {
  const w = await world(t)
  const { db } = w.state
  const one = { sip_call_id: 'a', at_ms: NOW_MS, direction: 'in', protocol: 'udp', local: 'b', remote: 'c' } as const
  const keep = () => insertMessages(db, { edge_id: 'mac_1', messages: [{ ...one, retransmission: 0, text: 'INVITE' }] })
  const take = () => takeAdmission(db, w.request())
  t.equal(await messagesOf(w, take), 0)
  t.equal(await messagesOf(w, () => Promise.all([keep(), take()])), 1, 'the long one alone is handed over')
  const other = await openState({ data_dir: w.data_dir })
  t.teardown(() => other.close())
  const messages = await messagesOf(w, async () => {
    let both: Promise<unknown> = Promise.resolve()
    // Until this transaction ends, the long one is under way.
    await other.transaction(async trx => {
      await trx.selectFrom('node').select('id').execute()
      const kept = keep()
      await turn()
      both = Promise.all([kept, take()])
      await turn()
    })
    await both
  })
  t.equal(messages, 2, 'what comes while it runs waits behind it')
  t.equal(await messagesOf(w, take), 0, 'they have not met: the next one is alone')
})

t.test('after one that held its thread up, those that follow are left to the other thread for a while', async t => {
  const w = await world(t)
  let now_ms = 0
  /** What a look at the clock costs: the disk is slow while it is more than nothing. */
  let costs_ms = 0
  const inline = new InlineConnection({
    file: join(w.data_dir, 'strowger.sqlite'),
    clock: {
      monotonic_ms: () => {
        now_ms += costs_ms
        return now_ms
      },
    },
  })
  t.teardown(() => inline.close())
  const take = () => inline.procedure('take_admission', { request: w.request(), dry_run: false })
  t.match(take(), { result: { admitted: true } })
  costs_ms = 30
  t.match(take(), { result: { admitted: true } }, 'the slow one itself is done')
  costs_ms = 0
  t.equal(take(), null)
  t.equal(inline.counts.commits, 2, 'nothing was begun')
  now_ms += 2900
  t.equal(take(), null, 'a hundred times as long')
  now_ms += 100
  t.match(take(), { result: { admitted: true } })
})

t.test(
  'what waits for the disk is left to the thread: a long log, and the first write of one that begins anew',
  async t => {
    const w = await world(t)
    const { db } = w.state
    const take = () => takeAdmission(db, w.request())
    t.equal(await messagesOf(w, take), 0)
    await w.pragma('wal_checkpoint(passive)')
    t.equal(await messagesOf(w, take), 1, 'the log was written back whole')
    t.equal(await messagesOf(w, take), 0)
    const reader = new Database(join(w.data_dir, 'strowger.sqlite'), { readonly: true })
    t.teardown(() => reader.close())
    reader.exec('begin')
    reader.prepare('select id from lease').all()
    const long = { sip_call_id: 'a', at_ms: NOW_MS, direction: 'in', protocol: 'udp', local: 'b', remote: 'c' } as const
    await insertMessages(db, {
      edge_id: 'mac_1',
      messages: [{ ...long, retransmission: 0, text: 'x'.repeat(8000 * 4096) }],
    })
    t.equal(await messagesOf(w, take), 1, 'the log is long, and somebody reads what is in it')
    reader.exec('commit')
    t.equal(await messagesOf(w, take), 1, 'this commit writes it back')
    t.equal(await messagesOf(w, take), 1, 'and this one begins it anew')
    t.equal(await messagesOf(w, take), 0)
  },
)

t.test('nothing is asked of a state that is closed', async t => {
  const w = await world(t)
  const last = takeAdmission(w.state.db, w.request())
  const closed = w.state.close()
  t.equal((await last).admitted, true, 'what was asked for before is done')
  await closed
  await t.rejects(takeAdmission(w.state.db, w.request()), { code: 'CLOSED' })
})

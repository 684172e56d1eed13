import { sql } from 'kysely'
import { callOf } from '../../../../../bench/admission/data.ts'
import { ending } from '../../../../../core/domain/calls/endings.ts'
import { admitCall, writeCall } from '../../../../../core/state/calls/running-calls.ts'
import { brokenInvariants } from '../../../../../core/state/maintenance/invariants.ts'
import { KEPT_TABLES } from '../../../../../core/state/postgres/kept-reads.ts'
import { type AdmissionWorld, admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import t from '../../../../support/harness/index.ts'
import { postgresState } from '../../../../support/postgres.ts'

function admit(w: AdmissionWorld, call_sid: string) {
  const request = w.request({ call_sid })
  return admitCall(w.state.db, { call: callOf(request), requests: [request], verstat: null, now_ms: NOW_MS })
}

const end = (w: AdmissionWorld, sid: string) =>
  writeCall(w.state.db, sid, [
    {
      step: 'end',
      facts: {
        ending: ending({ cause: 'caller_hung_up', answered: true }),
        ...{ duration_seconds: 30, ended_ms: NOW_MS + 30_000, pdd_ms: null, media: null },
      },
    },
  ])

async function made(t: { teardown(undo: () => unknown): void }): Promise<AdmissionWorld> {
  const w = await admissionWorld({}, postgresState)
  t.teardown(() => w.close())
  await w.policy({ concurrency: 3 })
  await w.prepaid(1_000_000)
  return w
}

t.test('a call like an earlier one is admitted, and ended, in two messages to the server each', async t => {
  const w = await made(t)
  const messages = async (work: () => Promise<unknown>): Promise<number> => {
    const before = w.state.work().messages
    await work()
    return w.state.work().messages - before
  }
  t.ok((await messages(() => admit(w, 'CA_1'))) > 5, 'what the first one reads is not known ahead')
  await end(w, 'CA_1')
  t.equal(await messages(() => admit(w, 'CA_2')), 2, 'the begin with all reads, and all writes with the commit')
  t.equal(await messages(() => end(w, 'CA_2')), 2)
  const { db } = w.state
  t.match(await db.selectFrom('level_use').select('live').execute(), [{ live: 0 }, { live: 0 }, { live: 0 }])
  await db
    .updateTable('outbound_policy')
    .set({ status: 'archived' as never })
    .execute()
  t.equal((await admit(w, 'CA_3')).decided.policy_id, null, 'a change of the configuration acts at once')
  t.same(await brokenInvariants(db), [])
})

t.test('calls that are admitted in one turn see each other: none is over a ceiling', async t => {
  const w = await made(t)
  await admit(w, 'CA_0')
  const admitted = await Promise.all(Array.from({ length: 8 }, (_, at) => admit(w, `CA_${at + 1}`)))
  // One was refused before: what a refusal reads is known then, but for the row of the call itself.
  const before = w.state.work().messages
  await admit(w, 'CA_9')
  t.equal(w.state.work().messages - before, 3)
  t.same(
    admitted.map(({ decided }) => (decided.admitted ? 'admitted' : decided.reason)),
    ['admitted', 'admitted', ...Array(6).fill('concurrency_exceeded')],
  )
  t.match(admitted[7]?.decided, { facts: { value: 3, limit: 3 } }, 'the decision shows the current usage')
  t.same(await brokenInvariants(w.state.db), [])
})

t.test('calls that begin and end in one turn are counted together, in two messages for all of them', async t => {
  const w = await made(t)
  for (const sid of ['CA_1', 'CA_2']) await admit(w, sid)
  await end(w, 'CA_1')
  const { db } = w.state
  await db.updateTable('outbound_policy').set({ concurrency: 9, cps: 9, daily_spend_limit_minor: 1_000_000 }).execute()
  await admit(w, 'CA_3')
  const before = w.state.work()
  await Promise.all(['CA_4', 'CA_5', 'CA_6', 'CA_7'].map(sid => admit(w, sid)))
  t.equal(w.state.work().messages - before.messages, 2)
  await Promise.all([admit(w, 'CA_8'), ...['CA_2', 'CA_4', 'CA_5'].map(sid => end(w, sid)), admit(w, 'CA_9')])
  t.equal(w.state.work().messages - before.messages, 4)
  t.match(await db.selectFrom('level_use').select('live').execute(), [{ live: 5 }, { live: 5 }, { live: 5 }])
  const { takes } = await db
    .selectFrom('level_use')
    .select('takes')
    .where('level', '=', 'policy')
    .executeTakeFirstOrThrow()
  t.equal(takes.length, 13 * 7, 'the times of the takes since the policy has a ceiling')
  const ledger = await db
    .selectFrom('ledger')
    .select(['amount_minor', 'balance_after_minor'])
    .orderBy('position')
    .execute()
  let balance = 1_000_000
  for (const { amount_minor, balance_after_minor } of ledger)
    if (amount_minor < 0) {
      balance += amount_minor
      t.equal(balance_after_minor, balance)
    }
  t.same(await brokenInvariants(db), [])
})

t.test('the configuration is read again only when it has changed, whoever changed it', async t => {
  const w = await made(t)
  for (const sid of ['CA_1', 'CA_2', 'CA_3']) await admit(w, sid).then(() => end(w, sid))
  const work = async (sid: string) => {
    const before = w.state.work()
    const { decided } = await admit(w, sid)
    await end(w, sid)
    return { messages: w.state.work().messages - before.messages, decided }
  }
  t.equal((await work('CA_4')).messages, 4)
  const { db } = w.state
  await db.updateTable('outbound_policy').set({ concurrency: 0 }).execute()
  const { messages, decided } = await work('CA_5')
  t.match(decided, { admitted: false, reason: 'concurrency_exceeded', facts: { limit: 0 } })
  t.ok(messages > 4)
  // As an operator does who repairs something by hand.
  await sql`update outbound_policy set concurrency = 5`.execute(db)
  t.match(await work('CA_6'), { decided: { admitted: true } })
  t.match(await work('CA_7'), { messages: 4, decided: { admitted: true } })
  await sql`truncate policy_attachment`.execute(db)
  await db.updateTable('outbound_policy').set({ system_default: 0 }).execute()
  t.match(await work('CA_8'), { decided: { admitted: true, policy_id: null } })
  t.same(await brokenInvariants(db), [])
})

t.test('calls find their rows by indexes, though their statements were planned when tables were empty', async t => {
  const w = await made(t)
  const { db } = w.state
  // The server knows that there is nothing, and would read such tables from their beginning to their end.
  await sql`analyze`.execute(db)
  for (const sid of ['CA_1', 'CA_2', 'CA_3']) await admit(w, sid).then(() => end(w, sid))
  const read = async () => {
    // Without it a connection tells the server once a second.
    await sql`select pg_stat_force_next_flush()`.execute(db)
    const { rows } = await sql<{ table: string; whole: number; by_index: number }>`
      select relname as table, seq_scan as whole, idx_scan as by_index from pg_stat_user_tables
      where relname in ('call', 'lease', 'reservation', 'call_step', 'spend_day', 'level_use', 'billing_account')
      order by relname`.execute(db)
    const { rows: live } = await sql`
      select indexrelname, idx_scan from pg_stat_user_indexes where indexrelname in ('call_live', 'lease_live')
      order by indexrelname`.execute(db)
    return Object.assign(rows, { live })
  }
  const before = await read()
  for (const sid of ['CA_4', 'CA_5']) await admit(w, sid).then(() => end(w, sid))
  const after = await read()
  t.equal(after.length, 7)
  t.same(after.live, before.live, 'the indexes of all running calls are not read for one')
  for (const [at, { table, whole, by_index }] of after.entries()) {
    t.equal(whole, before[at]?.whole, `${table} is not read as a whole`)
    t.ok(by_index > (before[at]?.by_index ?? 0), `${table} is read by an index`)
  }
})

t.test('each table whose reads are kept has the triggers that tell of its changes', async t => {
  const { db } = (await made(t)).state
  const { rows } = await sql<{ told: string }>`select t.tgrelid::regclass::text as told from pg_trigger t
    where t.tgname in ('configuration_changed', 'configuration_emptied')`.execute(db)
  const twice = [...KEPT_TABLES].flatMap(table => [table, table])
  t.same(rows.map(({ told }) => told).toSorted(), twice.toSorted())
})

t.test('positions of calls follow the order in which they were asked for, though some are drawn ahead', async t => {
  const w = await made(t)
  await w.state.db.updateTable('outbound_policy').set({ concurrency: 1 }).execute()
  for (const call_sid of ['CA_1', 'CA_2']) await admit(w, call_sid)
  // The reads of the first are not known ahead, those of the others are.
  const first = w.request({ call_sid: 'CA_3', part: 'inbound', called: '+2342010000001', caller: '+2348031234567' })
  const asked = [
    admitCall(w.state.db, { call: callOf(first), requests: [first], verstat: null, now_ms: NOW_MS }),
    ...['CA_4', 'CA_5'].map(call_sid => admit(w, call_sid)),
  ]
  const positions = (await Promise.all(asked)).map(({ row }) => row.position)
  t.same(
    positions,
    positions.toSorted((one, other) => one - other),
  )
})

t.test('steps of one call that are written in one turn see each other', async t => {
  const w = await made(t)
  await admit(w, 'CA_1')
  await end(w, 'CA_1')
  await Promise.all([admit(w, 'CA_2'), admit(w, 'CA_3')])
  const [first, second, other] = await Promise.all([end(w, 'CA_2'), end(w, 'CA_2'), end(w, 'CA_3')])
  t.match([first?.running, second?.running, other?.running], [true, false, true])
  t.match(await w.state.db.selectFrom('cdr').select('call_sid').orderBy('call_sid').execute(), [
    { call_sid: 'CA_1' },
    { call_sid: 'CA_2' },
    { call_sid: 'CA_3' },
  ])
  t.same(await brokenInvariants(w.state.db), [])
})

t.test('a call that cannot be written fails alone, and the others of its turn are written once', async t => {
  const w = await made(t)
  await admit(w, 'CA_1')
  await end(w, 'CA_1')
  const again = await Promise.allSettled([admit(w, 'CA_2'), admit(w, 'CA_1'), admit(w, 'CA_3')])
  t.same(
    again.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  const calls = await w.state.db.selectFrom('call').select('sid').orderBy('sid').execute()
  t.same(
    calls.map(({ sid }) => sid),
    ['CA_1', 'CA_2', 'CA_3'],
  )
  t.same(await brokenInvariants(w.state.db), [])
})

t.test('facts that change in a turn undo all of it, and each call of it is written once', async t => {
  const w = await made(t)
  const { db } = w.state
  // What nothing of ours does: a writer without the turn, such as an operator, ends a lease between two statements.
  await sql`create sequence passed`.execute(db)
  await sql`create function pass_over() returns trigger language plpgsql as
    $$ begin if nextval('passed') = 1 then return null; end if; return new; end $$`.execute(db)
  const passOver = sql`create trigger pass_over before update on lease for each row execute function pass_over()`
  for (const sid of ['CA_1', 'CA_2', 'CA_3']) await admit(w, sid)
  await end(w, 'CA_1')
  await passOver.execute(db)
  const written = await Promise.allSettled([end(w, 'CA_2'), admit(w, 'CA_4')])
  t.match(written, [{ value: { running: true } }, { value: { decided: { admitted: true } } }], 'found at the commit')
  await sql`alter sequence passed restart`.execute(db)
  // The reads of an inbound call are not known ahead: the writes of the one before it travel with them.
  const request = w.request({ call_sid: 'CA_5', part: 'inbound', called: '+2342010000001', caller: '+2348031234567' })
  const asked = { call: callOf(request), requests: [request], verstat: null, now_ms: NOW_MS }
  const more = await Promise.allSettled([end(w, 'CA_3'), admitCall(db, asked)])
  t.match(more, [{ value: { running: true } }, { status: 'fulfilled' }], 'found while another one reads')
  t.match(await db.selectFrom('level_use').select('live').where('level', '=', 'policy').execute(), [{ live: 1 }])
  const ended = await db.selectFrom('cdr').select('call_sid').orderBy('call_sid').execute()
  t.match(ended, [{ call_sid: 'CA_1' }, { call_sid: 'CA_2' }, { call_sid: 'CA_3' }])
  t.same(await brokenInvariants(db), [])
})

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { sql } from 'kysely'
import { brokenInvariants } from '../../../../../core/state/maintenance/invariants.ts'
import { callProcedure, failure } from '../../../../../core/state/port.ts'
import { openPostgres } from '../../../../../core/state/postgres/store.ts'
import { admissionWorld } from '../../../../support/admission-world.ts'
import t from '../../../../support/harness/index.ts'
import { postgresDatabase } from '../../../../support/postgres.ts'
import type { Outcome, Writing } from '../../../../support/stopped-writer.ts'
import { PATIENCE_MS, until } from '../../../../support/wait.ts'

// A process gets no CPU for a while, in the middle of its turn. The server ends its transaction after 1 s, or 3 s. What
// is not committed runs again, or is refused; what is committed is answered so.

const STOPPED_S = 5
/** Less than the 3 s for which a transaction may stand still. */
const WAITS_MS = 2500

t.test('a process that stands still for 5 s loses no write, and none is done twice', async t => {
  const database_url = await postgresDatabase()
  const w = await admissionWorld({}, () => openPostgres({ database_url, busy_timeout_ms: PATIENCE_MS }))
  t.teardown(() => w.close())
  const { db } = w.state
  const writer = fork(new URL('../../../../support/stopped-writer.js', import.meta.url), [database_url])
  const { pid = 0 } = writer
  t.teardown(() => writer.kill('SIGKILL'))
  await once(writer, 'message')
  const serverTime = async (): Promise<number> =>
    Number((await sql<{ s: number }>`select extract(epoch from clock_timestamp()) as s`.execute(db)).rows[0]?.s)
  const standsStill = () => readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') T ')
  const inTurn = async (): Promise<number> => {
    const open = sql<{ n: number }>`select count(*) as n from pg_stat_activity
      where datname = current_database() and state = 'idle in transaction'`
    return Number((await open.execute(db)).rows[0]?.n)
  }
  const outcomeOf = async (writing: Writing): Promise<Outcome> => {
    const told = once(writer, 'message')
    writer.send(writing)
    await until('it stands still', standsStill)
    const since = await serverTime()
    if (writing.by !== 'transaction') {
      const next = await callProcedure(db, 'prune_hours', null, WAITS_MS).catch(error => error)
      t.equal(failure(next), null, 'another process soon has its turn')
    }
    if (writing.by === 'procedure') await until('5 s have passed', async () => (await serverTime()) - since > STOPPED_S)
    else await until('the server has ended its transaction', async () => (await inTurn()) === 0)
    process.kill(pid, 'SIGCONT')
    const [outcome] = await told
    return outcome
  }
  const name = async () => (await db.selectFrom('project').select('name').executeTakeFirstOrThrow()).name
  const leases = async (call_sid: string) =>
    (await db.selectFrom('lease').select('id').where('call_sid', '=', call_sid).execute()).length

  for (const stops of ['before the commit', 'after the commit was sent'] as const) {
    const request = w.request()
    t.same(await outcomeOf({ by: 'procedure', stops, request }), { failure: null }, `stops ${stops}`)
    t.equal(await leases(request.call_sid), 1, 'the call is admitted once')
    t.same(await brokenInvariants(db), [])
  }

  const single = w.request()
  t.same(await outcomeOf({ by: 'statement', stops: 'before the commit', request: single }), { failure: null })
  t.equal(await name(), single.call_sid, 'a statement is written')

  // What a transaction does beside its statements must not be done twice: its caller decides.
  const several = w.request()
  t.same(await outcomeOf({ by: 'transaction', stops: 'before the commit', request: several }), { failure: 'away' })
  t.equal(await name(), single.call_sid, 'nothing is written of a transaction that is refused')

  const other = w.request()
  t.same(await outcomeOf({ by: 'procedure', stops: 'before connecting', request: other }), { failure: null })
})

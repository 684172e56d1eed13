import Database from 'better-sqlite3'
import { systemClock } from '../../../../../core/runtime/clock.ts'
import { bootId } from '../../../../../core/runtime/machine.ts'
import { pruneAdmission, takeAdmission } from '../../../../../core/state/calls/leases.ts'
import { extendReservation } from '../../../../../core/state/money/reservations.ts'
import { prepare } from '../../../../../core/state/sqlite/prepared.ts'
import { storeClock } from '../../../../../core/state/sqlite/store-clock.ts'
import { admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import t from '../../../../support/harness/index.ts'

const HOUR_MS = 3_600_000

/** A machine with clocks that the test sets, and its database. */
function machine() {
  const database = new Database(':memory:')
  database.exec('create table store_clock (boot_id text primary key, ahead_ms bigint not null)')
  const clock = { wall_ms: NOW_MS, steady_ms: 5000, now: () => clock.wall_ms, monotonic_ms: () => clock.steady_ms }
  const pass = (ms: number) => {
    clock.wall_ms += ms
    clock.steady_ms += ms
  }
  return {
    database,
    clock,
    pass,
    process: (boot_id = 'boot_1') => storeClock(sql => prepare(database, sql), { clock, boot_id }),
  }
}

t.test('processes of one boot read the same time despite later starts and wall clock jumps', t => {
  const { clock, pass, process } = machine()
  const first = process()
  t.equal(first(), NOW_MS)
  clock.wall_ms += HOUR_MS
  const second = process()
  t.same([first(), second()], [NOW_MS, NOW_MS], 'a jump forward')
  pass(1500)
  clock.wall_ms -= 5 * HOUR_MS
  t.same([first(), second(), process()()], [NOW_MS + 1500, NOW_MS + 1500, NOW_MS + 1500], 'a jump back')
  t.end()
})

t.test('after a boot the time continues from the wall clock', t => {
  const { clock, process, database } = machine()
  t.equal(process()(), NOW_MS)
  Object.assign(clock, { wall_ms: NOW_MS + HOUR_MS, steady_ms: 12 })
  const again = process('boot_2')
  t.equal(again(), NOW_MS + HOUR_MS)
  clock.wall_ms += HOUR_MS
  t.equal(again(), NOW_MS + HOUR_MS)
  t.same(database.prepare('select boot_id from store_clock').all(), [{ boot_id: 'boot_2' }], 'only one boot is stored')
  t.end()
})

t.test('does not cache an offset that a failed transaction wrote', t => {
  const { clock, database, process } = machine()
  const first = process()
  database.exec('begin')
  t.equal(first(), NOW_MS)
  database.exec('rollback')
  clock.wall_ms += HOUR_MS
  t.same([process()(), first()], [NOW_MS + HOUR_MS, NOW_MS + HOUR_MS])
  t.end()
})

t.test('without a boot id stores nothing, and each process starts from the wall clock', t => {
  const { clock, database, process } = machine()
  const first = process('')
  t.equal(first(), NOW_MS)
  clock.wall_ms += HOUR_MS
  t.same([first(), process('')()], [NOW_MS, NOW_MS + HOUR_MS])
  t.same(database.prepare('select * from store_clock').all(), [])
  t.end()
})

t.test('windows count by the clock of this boot, not by a wall clock that jumps later', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const { db } = w.state
  await w.subtrunk({ velocity_cap_minor: 25, cps: 1 })
  const [subtrunk] = await db.selectFrom('subtrunk').select('id').execute()
  if (!subtrunk) throw new Error('no subtrunk')
  await w.number('+2342010000002', { route_kind: 'subtrunk', route_id: subtrunk.id })
  const ahead_ms = Math.floor(systemClock.now() - 7 * HOUR_MS - systemClock.monotonic_ms())
  const storeNow = () => systemClock.monotonic_ms() + ahead_ms
  await db.insertInto('store_clock').values({ boot_id: bootId(), ahead_ms }).execute()
  const minutes = async () => (await db.selectFrom('spend_minute').select('minute').execute()).map(row => row.minute)
  const request = w.request({ service: { type: 'subtrunk', id: subtrunk.id }, caller: '+2342010000002' })

  const before = Math.floor(storeNow() / 60_000)
  t.equal((await takeAdmission(db, request)).admitted, true)
  await extendReservation(db, { call_sid: request.call_sid, elapsed_seconds: 9 })
  const seen = await minutes()
  t.ok(
    seen.length > 0 && seen.every(minute => minute >= before && minute <= Math.floor(storeNow() / 60_000)),
    'taken and extended by the clock of the boot',
  )
  const [use] = await db.selectFrom('level_use').select('takes').where('level', '=', 'subtrunk').execute()
  t.ok(Math.abs(Number(use?.takes) - storeNow()) < HOUR_MS)

  const row = { level: 'subtrunk' as const, subject_id: subtrunk.id, spent_minor: 1 }
  await db
    .insertInto('spend_minute')
    .values([before - 200, before + 200].map(minute => ({ ...row, minute })))
    .execute()
  t.equal(await pruneAdmission(w.state, NOW_MS), 2)
  t.same(await minutes(), seen, 'minutes outside the rolling hour and ahead of the clock are deleted')
})

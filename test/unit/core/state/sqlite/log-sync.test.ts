import { copyFileSync, existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { placeCall } from '../../../../../core/state/calls/calls.ts'
import { takeAdmission } from '../../../../../core/state/calls/leases.ts'
import { openState, type State } from '../../../../../core/state/index.ts'
import { draftRates } from '../../../../../core/state/money/price-book-drafts.ts'
import { type AdmissionWorld, admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import t, { type Test } from '../../../../support/harness/index.ts'
import { until } from '../../../../support/wait.ts'

// Acknowledged writes are on disk. The simulated disk holds what the files held when its last sync began.

async function worldOnDisk(test: Test, local: boolean) {
  const copy = await mkdtemp(join(tmpdir(), 'strowger-disk-'))
  let w: AdmissionWorld | undefined
  const disk = {
    syncs: 0,
    /** Syncs that begin now end when this settles. */
    ends: Promise.resolve(),
    /** Returns what a power cut would leave. */
    async cut(): Promise<State> {
      const folder = await mkdtemp(join(tmpdir(), 'strowger-cut-'))
      copyFiles(copy, folder)
      const left = await openState({ data_dir: folder })
      test.teardown(async () => {
        await left.close()
        await rm(folder, { recursive: true })
      })
      return left
    },
  }
  const sync_file = (): Promise<void> => {
    disk.syncs += 1
    if (w) copyFiles(w.data_dir, copy)
    return disk.ends
  }
  w = await admissionWorld({ local, sync_file })
  const made = w
  test.teardown(async () => {
    await made.close()
    await rm(copy, { recursive: true })
  })
  return { w: made, disk }
}

function copyFiles(from: string, to: string): void {
  for (const name of ['strowger.sqlite', 'strowger.sqlite-wal'])
    if (existsSync(join(from, name))) copyFileSync(join(from, name), join(to, name))
}

const named = async (state: State): Promise<string[]> =>
  (await state.db.selectFrom('trunk').select('name').execute()).map(({ name }) => name)

for (const local of [true, false]) {
  const where = local ? 'control' : 'signaling'

  t.test(`in ${where}, a work in parts waits for the disk once its last part is written`, async t => {
    const { w, disk } = await worldOnDisk(t, local)
    const rate = { label: 'x', rate_micro: 1, rate_unit: 'minute' as const }
    const increments = { increment_initial_seconds: 1, increment_additional_seconds: 1 }
    const rates = Array.from({ length: 2100 }, (_, at) => ({ ...rate, ...increments, prefix: String(20_000 + at) }))
    const before = disk.syncs
    const id = await draftRates(w.state, rates, NOW_MS)
    t.equal(disk.syncs - before, 2, 'one for the draft, one for its five parts')
    const { db } = await disk.cut()
    const kept = await db.selectFrom('rate').select('prefix').where('price_book_id', '=', id).execute()
    t.equal(kept.length, rates.length)
  })

  t.test(`in ${where}, acknowledges every kind of write only once it is on disk`, async t => {
    const { w, disk } = await worldOnDisk(t, local)
    const { db } = w.state
    const rename = (trx: typeof db, name: string) => trx.updateTable('trunk').set({ name }).execute()
    await w.state.transaction(trx => rename(trx, 'by a transaction'))
    t.same(await named(await disk.cut()), ['by a transaction'])
    await w.state.shortTransaction(trx => rename(trx, 'briefly'))
    t.same(await named(await disk.cut()), ['briefly'])
    await rename(db, 'by a statement')
    t.same(await named(await disk.cut()), ['by a statement'])
    const from_number = '+2342010000002'
    await w.number(from_number, { route_kind: 'trunk', route_id: w.trunk_id })
    const call = { sid: 'CA1', account_sid: 'AC1', from_number, to_number: '+2348031234567' }
    const of = { project_id: w.project_id, number_id: 'num_1', application_id: null, caller_id: null }
    await placeCall(db, { ...call, ...of, request: '{}', now_ms: NOW_MS })
    const placed = await (await disk.cut()).db.selectFrom('call').select('sid').execute()
    t.same(placed, [{ sid: 'CA1' }], 'by a procedure')
  })

  t.test(`in ${where}, writes that arrive during a sync share the next one`, async t => {
    const { w, disk } = await worldOnDisk(t, local)
    let end = (): void => undefined
    disk.ends = new Promise(resolve => (end = resolve))
    const before = disk.syncs
    const set = (n: number) =>
      w.state.shortTransaction(trx =>
        trx
          .updateTable('trunk')
          .set({ name: `trunk ${n}` })
          .execute(),
      )
    let answered = 0
    const first = set(0).then(() => answered++)
    await until('the first sync has begun', () => disk.syncs === before + 1)
    const rest = Array.from({ length: 50 }, (_, n) => set(n + 1).then(() => answered++))
    await until('the last write is there', async () => (await named(w.state))[0] === 'trunk 50')
    t.equal(answered, 0, 'no write is acknowledged before the sync')
    end()
    await Promise.all([first, ...rest])
    t.equal(disk.syncs - before, 2)
  })
}

t.test('an admission does not wait for the disk, and reaches it soon', async t => {
  const { w, disk } = await worldOnDisk(t, false)
  let end = (): void => undefined
  disk.ends = new Promise(resolve => (end = resolve))
  const request = w.request()
  const before = disk.syncs
  t.equal((await takeAdmission(w.state.db, request)).admitted, true)
  await until('it is synced', () => disk.syncs > before)
  end()
  const left = await disk.cut()
  const leases = await left.db.selectFrom('lease').select('call_sid').execute()
  t.same(leases, [{ call_sid: request.call_sid }])
})

t.test('acknowledges nothing after a failed sync', async t => {
  const { w, disk } = await worldOnDisk(t, true)
  const rename = (name: string) => w.state.shortTransaction(trx => trx.updateTable('trunk').set({ name }).execute())
  disk.ends = Promise.reject(new Error('EIO: i/o error, fdatasync'))
  disk.ends.catch(() => undefined)
  await t.rejects(rename('lost'), { code: 'SQLITE_IOERR_FSYNC' })
  // The kernel reports an error once: the next sync would succeed although the failed write is lost.
  disk.ends = Promise.resolve()
  await t.rejects(rename('after it'), { code: 'SQLITE_IOERR_FSYNC' })
})

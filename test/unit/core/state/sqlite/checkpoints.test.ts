import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { openRowReader, openState } from '../../../../../core/state/index.ts'
import { LONG_LOG_PAGES, openLogIndex } from '../../../../../core/state/sqlite/log-index.ts'
import t from '../../../../support/harness/index.ts'
import { until } from '../../../../support/wait.ts'

// The control process writes a long log back, so that no commit of a call has to.

const data_dir = mkdtempSync(join(tmpdir(), 'strowger-checkpoints-'))
t.teardown(() => rmSync(data_dir, { recursive: true, force: true }))
const file = join(data_dir, 'strowger.sqlite')
const state = await openState({ data_dir, local: true })
t.teardown(() => state.close())
await state.db.selectFrom('configuration').select('id').execute()
const log = openLogIndex(file)
const { reads_wait } = state.maintenance
const waits = (): boolean => Atomics.load(new Int32Array(reads_wait), 0) === 1

/** Another process, which leaves checkpoints to the control process. */
const calls = new Database(file)
t.teardown(() => void calls.close())
calls.pragma('wal_autocheckpoint = 0')
calls.exec('create table calls (text)')
const lengthen = () => void calls.prepare('insert into calls values (zeroblob(?))').run(LONG_LOG_PAGES * 4096)

t.test('a long log that another process has written is written back without a commit of this one', async t => {
  t.notOk(waits(), 'long reads go on while the log is short')
  lengthen()
  await until('the log is written back', () => log().written_back === log().written)
  await until('long reads go on', () => !waits())
  calls.exec(`insert into calls values ('one more')`)
  t.ok(log().written < LONG_LOG_PAGES, 'the next commit begins the log again')
})

t.test('while a reader keeps the log, long reads wait, each for a time', async t => {
  const reader = new Database(file, { readonly: true })
  t.teardown(() => reader.close())
  reader.exec('begin')
  reader.prepare('select count(*) from calls').get()
  lengthen()
  await until('long reads wait', waits)
  const rows = await openRowReader({ data_dir, cache_kib: 100, reads_wait })
  t.teardown(() => rows.close())
  const read = rows.lines(db =>
    db.selectFrom('configuration').select(eb => ['id as position', eb.val('one line').as('line')]),
  )
  const lines = await read({ after: 0, last: 1, limit: 1 })
  t.same(lines.text.toString(), 'one line', 'a read goes on in the end')
  t.ok(waits(), 'nothing has ended the wait')
  reader.exec('commit')
  await until('the log is written back', () => log().written_back === log().written)
  await until('long reads go on', () => !waits())
})

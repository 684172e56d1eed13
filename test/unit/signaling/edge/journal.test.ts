import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Journal, readJournal } from '../../../../signaling/edge/journal.ts'

// What a killed process leaves behind is what it had appended and not settled, whatever it was in the middle of.

interface Row {
  readonly at: number
}

function open(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-journal-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const journal = new Journal<Row>(folder, error => t.fail(String(error)))
  const left = (): number[] =>
    readJournal<Row>(folder)
      .map(row => row.at)
      .sort()
  return { folder, journal, left }
}

t.test('a row is in its file at once, and gone when it is settled', async t => {
  const { journal, left } = open(t)
  journal.append({ at: 1 })
  journal.append({ at: 2 })
  t.same(left(), [1, 2])
  const settled = journal.settling()
  journal.append({ at: 3 })
  t.same(left(), [1, 2, 3], 'rows that are on their way count')
  settled()
  t.same(left(), [3])
  journal.settling()()
  t.same(left(), [])
  journal.close()
})

t.test('a batch that waits for an earlier one stays until one after it has arrived', async t => {
  const { journal, left } = open(t)
  journal.append({ at: 1 })
  const first = journal.settling()
  journal.append({ at: 2 })
  const second = journal.settling()
  t.same(left(), [1, 2])
  first()
  second()
  t.same(left(), [2], 'it was in no file of its own')
  journal.append({ at: 3 })
  journal.settling()()
  t.same(left(), [])
  journal.close()
})

t.test('a line that the kill has torn is left out, and the next run begins anew', async t => {
  const { folder, journal, left } = open(t)
  journal.append({ at: 1 })
  appendFileSync(join(folder, 'edge-0.journal'), '{"at":2')
  t.same(left(), [1])
  journal.close()
  const next = new Journal<Row>(folder, error => t.fail(String(error)))
  t.same(left(), [])
  next.close()
})

import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Journal, readJournal } from '../../../../signaling/edge/journal.ts'
import t, { type Test } from '../../../support/harness/index.ts'

// A killed process leaves exactly the rows that it had appended and not settled.

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

t.test('a row is in the journal at once, and removed when it is settled', async t => {
  const { journal, left } = open(t)
  journal.append({ at: 1 })
  journal.append({ at: 2 })
  t.same(left(), [1, 2])
  const settled = journal.settling()
  journal.append({ at: 3 })
  t.same(left(), [1, 2, 3], 'rows in transit stay in the journal')
  settled()
  t.same(left(), [3])
  journal.settling()()
  t.same(left(), [])
  journal.close()
})

t.test('a batch settled while an earlier one is open stays until a later batch is settled', async t => {
  const { journal, left } = open(t)
  journal.append({ at: 1 })
  const first = journal.settling()
  journal.append({ at: 2 })
  const second = journal.settling()
  t.same(left(), [1, 2])
  first()
  second()
  t.same(left(), [2], 'its rows share a file with later ones')
  journal.append({ at: 3 })
  journal.settling()()
  t.same(left(), [])
  journal.close()
})

t.test('an incomplete last line is skipped, and the next run starts with an empty journal', async t => {
  const { folder, journal, left } = open(t)
  journal.append({ at: 1 })
  appendFileSync(join(folder, 'edge-0.journal'), '{"at":2')
  t.same(left(), [1])
  journal.close()
  const next = new Journal<Row>(folder, error => t.fail(String(error)))
  t.same(left(), [])
  next.close()
})

import { closeSync, openSync, statSync, truncateSync, utimesSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { noteStop } from '../../../../../core/state/sqlite/database-file.ts'
import { damageOf, isDatabase } from '../../../../../core/state/sqlite/soundness.ts'
import t from '../../../../support/harness/index.ts'

/** A limit below the size of every file here: all of them count as large. */
const ALL_LARGE = 0
const PAGE = 4096

function database(file: string): void {
  const made = new Database(file)
  made.exec('create table kept (id integer primary key, text text)')
  const add = made.prepare('insert into kept (text) values (?)')
  for (let at = 0; at < 500; at++) add.run(`row ${at} `.repeat(8))
  made.close()
}

/** Overwrites the third page. */
function damage(file: string): void {
  const fd = openSync(file, 'r+')
  writeSync(fd, Buffer.alloc(PAGE, 0xa5), 0, PAGE, 2 * PAGE)
  closeSync(fd)
}

t.test('a large database is checked unless it is as a stop left it', async t => {
  const file = join(t.testdir(), 'large.sqlite')
  database(file)
  noteStop(file)
  const { atime, mtime } = statSync(file)
  damage(file)
  t.type(damageOf(file, ALL_LARGE), 'string', 'something wrote it later')

  utimesSync(file, atime, mtime)
  noteStop(file)
  t.equal(damageOf(file, ALL_LARGE), null, 'nothing wrote it: it is not read')
  t.type(damageOf(file), 'string', 'a small one is always checked')
})

t.test('a large database is checked when a log is left, and a stop with one leaves no note', async t => {
  const file = join(t.testdir(), 'large.sqlite')
  database(file)
  damage(file)
  writeFileSync(`${file}-wal`, 'left')
  noteStop(file)
  t.type(damageOf(file, ALL_LARGE), 'string')
  writeFileSync(`${file}-wal`, '')
  t.type(damageOf(file, ALL_LARGE), 'string', 'no note was written')
  noteStop(file)
  t.equal(damageOf(file, ALL_LARGE), null)
  writeFileSync(`${file}-wal`, 'left')
  t.type(damageOf(file, ALL_LARGE), 'string', 'a power cut leaves a log')
})

t.test('a database is known by its first bytes, whatever its size', async t => {
  const file = join(t.testdir(), 'large.sqlite')
  writeFileSync(file, 'SQLite format 3\0')
  t.equal(isDatabase(file), true)
  // Node.js reads no file of more than 2 GiB at once. This one takes no room on the disk.
  truncateSync(file, 3 * 1024 ** 3)
  t.equal(isDatabase(file), true)
  writeFileSync(file, 'SQLite')
  t.equal(isDatabase(file), false)
})

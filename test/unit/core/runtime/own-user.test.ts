import { lstatSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadSettings } from '../../../../core/runtime/config.ts'
import { Door, isOpenToOthers } from '../../../../core/runtime/doors.ts'
import { becoming, giveFolder, programsUser, toBecome, userOf } from '../../../../core/runtime/own-user.ts'
import t from '../../../support/harness/index.ts'

t.test('each process gets a separate user id in the configured range', async t => {
  const ids = (['edge', 'media', 'sandbox'] as const).map(name => userOf(name, 60_800))
  t.same(ids, [60_800, 60_801, 60_802])
  t.equal(programsUser(60_800), 60_803)
  t.equal(toBecome(['node', 'process.js', ...becoming(60_801)]), 60_801)
  t.equal(toBecome(['node', 'process.js', ...becoming(null)]), null)
})

t.test('STROWGER_USERS sets the range or switches it off', async t => {
  const STROWGER_DATA = t.testdir()
  t.equal(loadSettings({ STROWGER_DATA }).users, 60_800)
  t.equal(loadSettings({ STROWGER_DATA, STROWGER_USERS: '7000' }).users, 7000)
  t.equal(loadSettings({ STROWGER_DATA, STROWGER_USERS: 'off' }).users, null)
  for (const STROWGER_USERS of ['-1', '65534', 'nobody'])
    t.throws(() => loadSettings({ STROWGER_DATA, STROWGER_USERS }), /STROWGER_USERS/)
})

t.test('giveFolder changes the owner of all entries but not of link targets', async t => {
  if (process.geteuid?.() !== 0) return t.comment('only root can give a folder away')
  const home = t.testdir({ 'master.key': 'secret' })
  const folder = join(home, 'recordings')
  mkdirSync(join(folder, '2026-01-01'), { recursive: true })
  writeFileSync(join(folder, '2026-01-01', 'RE1.wav'), 'sound')
  symlinkSync(join(home, 'master.key'), join(folder, '2026-01-01', 'RE2.wav'))
  giveFolder(folder, 60_801)
  for (const name of ['', '2026-01-01', '2026-01-01/RE1.wav', '2026-01-01/RE2.wav'])
    t.equal(lstatSync(join(folder, name)).uid, 60_801, name)
  t.equal(statSync(join(home, 'master.key')).uid, 0)
})

t.test('a door gives paths to the files of its folder and to no others', async t => {
  const home = t.testdir({ recordings: { 'a.wav': 'sound' }, 'recordings-of-others': { 'b.wav': 'sound' } })
  const door = new Door(join(home, 'recordings'))
  t.teardown(() => door.close())
  t.equal(statSync(door.path(join(home, 'recordings', 'a.wav'))).ino, statSync(join(home, 'recordings', 'a.wav')).ino)
  const beside = join(home, 'recordings-of-others', 'b.wav')
  t.equal(door.path(beside), beside)
})

t.test('a file is open to others only when all its parent folders are', async t => {
  t.ok(isOpenToOthers('/etc/passwd'))
  const closed = join(t.testdir(), 'closed')
  mkdirSync(closed, { mode: 0o700 })
  writeFileSync(join(closed, 'file'), '', { mode: 0o644 })
  t.notOk(isOpenToOthers(join(closed, 'file')))
})

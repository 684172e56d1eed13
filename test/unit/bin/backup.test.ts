import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { recordingFiles } from '../../../control/reconcilers/recordings.ts'
import { machineOf } from '../../../core/runtime/machine.ts'
import { TREE } from '../../../core/runtime/tree.ts'
import { DATABASE_FILE, openState } from '../../../core/state/index.ts'
import { runCommand } from '../../support/command-line.ts'
import { controlPlane } from '../../support/control-plane.ts'
import { ranCall, recordingOf } from '../../support/ended-calls.ts'
import { putEmptyDatabase } from '../../support/fresh-state.ts'
import t from '../../support/harness/index.ts'

// What an operator has of a backup: all that belongs to the installation, also when calls run meanwhile.

const RECORDING = 'recordings/2026-11-26/live.wav'
/** Long enough to be read while it grows. */
const RECORDED_BYTES = 16 * 1024 * 1024

/** A platform writes a recording until the test ends. */
function recorder(t: { readonly teardown: (work: () => void) => void }, file: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, '')
  truncateSync(file, RECORDED_BYTES)
  const child = spawn('sh', ['-c', 'while :; do echo sound; sleep 0.02; done >> "$0"', file], { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
}

t.test('a backup holds recordings that grow, and a broken one changes nothing', async t => {
  const folder = t.testdir()
  const data_dir = join(folder, 'data')
  mkdirSync(join(data_dir, 'run'), { recursive: true })
  await putEmptyDatabase(data_dir)
  writeFileSync(join(data_dir, 'master.key'), `${'07'.repeat(32)}\n`)
  const env = { STROWGER_DATA: data_dir }
  const run = (...words: string[]) => runCommand(words, { env })
  const archive = join(folder, 'backup.tar.gz')
  recorder(t, join(data_dir, RECORDING))
  // What a killed command left.
  for (const place of [join(data_dir, 'run'), folder]) mkdirSync(join(place, '.strowger-999999999-left'))
  const made = await run('backup', archive)
  t.equal(made.code, 0, made.stderr)
  t.same(readdirSync(join(data_dir, 'run')), [])

  const { ino } = statSync(join(data_dir, DATABASE_FILE))
  const half = join(folder, 'half.tar.gz')
  copyFileSync(archive, half)
  truncateSync(half, Math.floor(statSync(half).size / 2))
  t.match(await run('restore', '--replace', half), { code: 1, stderr: /is not a backup of Strowger/ })
  t.equal(statSync(join(data_dir, DATABASE_FILE)).ino, ino, 'the data is still in its place')
  t.same(readdirSync(folder).sort(), ['backup.tar.gz', 'data', 'half.tar.gz'])

  t.equal((await run('restore', '--replace', archive)).code, 0)
  t.ok(statSync(join(data_dir, RECORDING)).size >= RECORDED_BYTES)
  const [aside = ''] = readdirSync(folder).filter(name => name.startsWith(`${basename(data_dir)}.before-`))
  t.equal(statSync(join(folder, aside, DATABASE_FILE)).ino, ino, 'the data of before is aside')

  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(join(elsewhere, 'tls'), { recursive: true })
  t.equal((await run('--data', elsewhere, 'restore', archive)).code, 0)
  for (const name of [DATABASE_FILE, 'master.key', RECORDING, 'tls']) t.ok(existsSync(join(elsewhere, name)), name)
})

/** Runs a command for which `folder` is a volume. Only root may mount. */
const WITH_VOLUME = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" "$0" && exec "$@"'] as const
const mounts = process.getuid?.() === 0 && spawnSync('unshare', ['--mount', 'true']).status === 0

t.test(
  'what root restores into the volume of a service belongs to the service, and the data of before stays in it',
  { skip: !mounts && 'no right to mount' },
  async t => {
    const [OTHER, SERVICE] = [54_321, 60_990]
    const folder = t.testdir({ volume: { 'master.key': `${'07'.repeat(32)}\n`, recordings: { 'a.wav': 'sound' } } })
    const volume = join(folder, 'volume')
    await putEmptyDatabase(volume)
    const archive = join(folder, 'backup.tar.gz')
    const of_other = [`--owner=${OTHER}`, `--group=${OTHER}`, '-czf', archive, '-C', volume]
    execFileSync('tar', [...of_other, DATABASE_FILE, 'master.key', 'recordings'])
    chownSync(volume, SERVICE, SERVICE)
    const { ino } = statSync(join(volume, DATABASE_FILE))
    const [program = '', ...words] = WITH_VOLUME
    const restore = [`${TREE}/bin/strowger`, '--data', volume, 'restore', '--replace', '--json', archive]
    const { status, stdout, stderr } = spawnSync(program, [...words, volume, ...restore], { encoding: 'utf8' })
    t.equal(status, 0, stderr)
    const { aside } = JSON.parse(stdout)
    t.equal(statSync(join(aside, DATABASE_FILE)).ino, ino)
    t.equal(dirname(aside), volume)
    const names = readdirSync(volume).filter(name => name !== basename(aside))
    t.same(names.sort(), ['machine.id', 'master.key', 'recordings', DATABASE_FILE])
    for (const name of [...names, 'recordings/a.wav']) t.equal(statSync(join(volume, name)).uid, SERVICE, name)
  },
)

t.test('data of an older version is backed up as it is, and no command but a start brings it up to date', async t => {
  const folder = t.testdir()
  const data_dir = join(folder, 'data')
  mkdirSync(data_dir)
  const database = new Database(join(data_dir, DATABASE_FILE))
  t.teardown(() => database.close())
  database.exec(readFileSync('fixtures/schemas/first.sql', 'utf8'))
  writeFileSync(join(data_dir, 'master.key'), `${'07'.repeat(32)}\n`)
  const run = (...words: string[]) => runCommand(words, { env: { STROWGER_DATA: data_dir } })
  const schema = () => database.prepare('select count(*) from kysely_migration').pluck().get()
  const before = schema()
  const archive = join(folder, 'backup.tar.gz')
  for (const words of [['calls', 'list'], ['bootstrap', '--json'], ['upgrade', '--check', folder], ['drain']])
    t.match(await run(...words), { code: 1, stderr: /data is of an older version of Strowger .* use the command of/ })
  t.match((await run('doctor')).stdout, /data is of an older version/)
  t.match(await run('backup', archive), { code: 0 })
  t.equal(schema(), before, 'the version that wrote it can still use it')

  const elsewhere = join(folder, 'elsewhere')
  t.equal((await run('--data', elsewhere, 'restore', archive)).code, 0)
  t.match(await run('--data', elsewhere, 'calls', 'list'), { code: 0 })
})

t.test('recordings are removed from the disk after a restore, as the same machine or as a new one', async t => {
  const w = await controlPlane(t)
  const call_sid = await ranCall(w, { seconds: 3 })
  const rows = ['mac_before', ''].map(machine_id => recordingOf(w, call_sid, machine_id))
  await w.state.db.insertInto('recording').values(rows).execute()
  const folder = t.testdir({ data: { run: {}, recordings: {} } })
  const data_dir = join(folder, 'data')
  await w.state.maintenance.copyTo(join(data_dir, DATABASE_FILE))
  for (const { file } of rows) writeFileSync(join(data_dir, file), 'sound')
  writeFileSync(join(data_dir, 'master.key'), `${'07'.repeat(32)}\n`)
  writeFileSync(join(data_dir, 'machine.id'), 'mac_before\n')
  const run = (...words: string[]) => runCommand(words, { env: { STROWGER_DATA: data_dir } })
  const [archive, old] = [join(folder, 'backup.tar.gz'), join(folder, 'old.tar.gz')]
  t.equal((await run('backup', archive)).code, 0)
  // Older versions did not keep which machine it was.
  execFileSync('tar', ['-czf', old, '-C', data_dir, DATABASE_FILE, 'master.key', 'recordings'])

  for (const [from, name] of [
    [archive, 'same'],
    [old, 'new'],
  ] as const) {
    const there = join(folder, name)
    t.equal((await run('--data', there, 'restore', from)).code, 0)
    const { machine_id } = machineOf(there)
    t.equal(machine_id === 'mac_before', name === 'same')
    const files = rows.map(({ file }) => join(there, file))
    t.ok(files.every(existsSync), 'the recordings are there')
    const state = await openState({ data_dir: there, here: true })
    t.teardown(() => state.close())
    await state.db.updateTable('recording').set({ status: 'deleted' }).execute()
    await recordingFiles.run({ ...w, state, settings: { ...w.settings, data_dir: there } })
    t.notOk(files.some(existsSync), `${name}: the deleted recordings are gone`)
  }
})

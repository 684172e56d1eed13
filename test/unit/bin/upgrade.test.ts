import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { runningSupervisor } from '../../../bin/pid-file.ts'
import { runningPlatform } from '../../../bin/platform-file.ts'
import { begunUpgrade } from '../../../bin/upgrade/steps.ts'
import { runBare } from '../../../core/runtime/bare-child.ts'
import { TREE } from '../../../core/runtime/tree.ts'
import { DATABASE_FILE, openState } from '../../../core/state/index.ts'
import { executedMigrations } from '../../../core/state/maintenance/migrate.ts'
import { runCommand } from '../../support/command-line.ts'
import { controlPlane, openSandbox } from '../../support/control-plane.ts'
import { ranCall } from '../../support/ended-calls.ts'
import t from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'

// What an operator learns of a release before anything that runs is touched.

/** A script that rehearses as this version does, and edits the report. A failure stays one: a pipe would hide it. */
const rehearsing = (edit: string): string =>
  `report=$(${TREE}/bin/strowger "$@") || exit; printf '%s\\n' "$report" | sed '${edit}'`

t.test(
  'a release is rehearsed on a copy: what it decides otherwise is listed, and the data stays as it is',
  async t => {
    const w = await controlPlane(t)
    await openSandbox(w)
    const folder = mkdtempSync(join(tmpdir(), 'strowger-upgrade-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const sid = await ranCall(w, { seconds: 5, call: { origin: 'rest', direction: 'outbound-api' } })
    const other = await ranCall(w, { seconds: 5, call: { origin: 'rest', direction: 'outbound-api' } })
    await w.state.db.updateTable('call').set({ decision_trace: '{}' }).execute()
    await ranCall(w, { seconds: 5 })

    /** A release whose program is this one, behind a shell script. */
    const release = (name: string, script: string): string => {
      mkdirSync(join(folder, name, 'bin'), { recursive: true })
      writeFileSync(join(folder, name, 'bin/strowger'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
      return join(folder, name)
    }
    const env = { STROWGER_DATA: w.settings.data_dir, STROWGER_MASTER_KEY: '07'.repeat(32) }
    mkdirSync(w.settings.run_dir, { recursive: true })
    const check = async (file: string, columns: number | null = 200) => {
      const before = await w.state.db.selectFrom('call').selectAll().execute()
      const ended = await runCommand(['upgrade', '--check', file], { env, state: w.state, columns })
      t.same(await w.state.db.selectFrom('call').selectAll().execute(), before)
      t.same(readdirSync(w.settings.run_dir), [], 'the copy, which holds the master key, is removed')
      return ended
    }

    const same = await check(release('same', `exec ${TREE}/bin/strowger "$@"`))
    t.match(same, { code: 0, stdout: 'migrations: none\nchecks: as before' }, same.stderr)
    t.match(same.stdout, /2 asked again, 0 differ/, 'calls without a decision are not asked about')

    const stricter = rehearsing(
      `s/"sid":"${sid}"\\([^}]*\\)"admitted":true,"reason":null/"sid":"${sid}"\\1"admitted":false,"reason":"cps_exceeded"/`,
    )
    const tarball = join(folder, 'release.tar.gz')
    const packed = await runBare('tar', ['-czf', tarball, '-C', release('stricter', stricter), '.'], {
      max_bytes: 1000,
    })
    t.ok(packed.ok)
    const differs = await check(tarball)
    t.match(differs, { code: 1, stderr: /copying the data/ }, differs.stdout)
    t.match(
      differs.stdout,
      new RegExp(`2 asked again, 1 differ\\n.*\\n${sid.slice(0, 12)} +admitted.* +refused: cps_exceeded`),
    )
    t.notMatch(differs.stdout, other.slice(0, 12))

    const older = await check(release('older', 'echo "strowger: written by another version (schema 9999)" >&2; exit 1'))
    t.match(older, { code: 1, stderr: /cannot take over this data: .*written by another version/ })
    const silent = await check(release('silent', 'exit 0'))
    t.match(silent, { code: 1, stderr: /cannot take over this data: its rehearsal printed no report, but: nothing/ })
    t.match(await check(folder), { code: 1, stderr: /is no release: it has no bin\/strowger/ })
    t.match(await check(join(TREE, 'package.json')), { code: 1, stderr: /cannot be unpacked/ })
    const database = join(w.settings.data_dir, DATABASE_FILE)
    t.equal(statSync(database).mode & 0o777, 0o600)
    t.ok(readFileSync(database).length > 0)
  },
)

/**
 * A platform that is not one: it says what a real one says of itself, and answers /readyz. `data`, `version` and what
 * it answers come as arguments; the word `up` makes it a supervisor.
 */
const FAKE_PLATFORM = `
const { createServer } = require('node:http')
const { mkdirSync, renameSync, rmSync, writeFileSync } = require('node:fs')
const whole = (file, text) => { writeFileSync(file + '.new', text); renameSync(file + '.new', file) }
const [, data, version, , status] = process.argv
const run = data + '/run'
mkdirSync(run, { recursive: true })
const server = createServer((_, answer) => { answer.statusCode = Number(status); answer.end() })
server.listen(0, '127.0.0.1', () => {
  const http = 'http://127.0.0.1:' + server.address().port
  const told = { pid: process.pid, version, http, base_url: http, settings: {} }
  whole(run + '/platform.json', JSON.stringify(told))
  whole(run + '/supervisor.pid', process.pid + '\\n')
})
process.on('SIGTERM', () => { rmSync(run + '/supervisor.pid', { force: true }); process.exit(0) })
`
const ADD_MIGRATION = `
const db = require('${TREE}/node_modules/better-sqlite3')(process.argv[2] + '/strowger.sqlite')
db.exec("insert or ignore into kysely_migration values ('9999-of-the-future', '2030')")
`

t.test('an upgrade that fails leads back to the version before with its data, from every step', async t => {
  const w = await controlPlane(t)
  await openSandbox(w)
  const { data_dir } = w.settings
  const folder = mkdtempSync(join(tmpdir(), 'strowger-upgrade-'))
  writeFileSync(join(data_dir, 'master.key'), `${'07'.repeat(32)}\n`)
  t.teardown(() => {
    const pid = runningSupervisor(join(data_dir, 'run'))
    if (pid !== null) process.kill(pid, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
    for (const name of readdirSync(dirname(data_dir)))
      if (name.startsWith(`${basename(data_dir)}.`)) rmSync(join(dirname(data_dir), name), { recursive: true })
  })
  // The control plane has this database open; the fake platforms have not.
  const pid_file = join(data_dir, 'run/supervisor.pid')
  /** A version: `ready` is the status of its /readyz, `migrates` whether it changes the schema. */
  const make = (version: string, ready: number, migrates: boolean): string => {
    const at = join(folder, `strowger-${version}`)
    mkdirSync(join(at, 'bin'), { recursive: true })
    writeFileSync(join(at, 'package.json'), JSON.stringify({ version }))
    writeFileSync(join(at, 'up.cjs'), FAKE_PLATFORM)
    writeFileSync(join(at, 'migrate.cjs'), ADD_MIGRATION)
    const node = process.execPath
    const later = migrates
      ? `${rehearsing('s/"migrations":\\[/"migrations":["9999-of-the-future",/')}; ${node} ${at}/migrate.cjs "$2"`
      : `exec ${TREE}/bin/strowger "$@"`
    const script = [
      '#!/bin/sh',
      'case "$3 $4" in',
      ready === 0 ? '"up ") exit 1 ;;' : `"up ") exec ${node} -e "$(cat ${at}/up.cjs)" "$2" ${version} up ${ready} ;;`,
      `"drain --wait") kill $(cat ${pid_file}); while [ -e ${pid_file} ]; do sleep 0.1; done; exit 0 ;;`,
      '"drain --cancel") exit 0 ;;',
      `"upgrade --rehearse") ${later} ;;`,
      `*) exec ${TREE}/bin/strowger "$@" ;;`,
      'esac',
    ]
    writeFileSync(join(at, 'bin/strowger'), `${script.join('\n')}\n`, { mode: 0o755 })
    return at
  }
  const [first, second, broken] = [make('1.0.0', 200, false), make('2.0.0', 200, false), make('3.0.0', 0, true)]
  const link = join(folder, 'strowger')
  symlinkSync(first, link)
  const env = { PATH: process.env['PATH'] ?? '', STROWGER_DATA: data_dir, STROWGER_MASTER_KEY: '07'.repeat(32) }
  const run = (...words: string[]) => runCommand(['upgrade', ...words], { env })
  const runs = () => runningPlatform(data_dir)?.version ?? null
  const names = () =>
    new Set(readdirSync(dirname(data_dir)).filter(name => name.startsWith(`${basename(data_dir)}.before-`)))

  const good = await run(second, '--link', link)
  t.equal(good.code, 0, good.stdout + good.stderr)
  t.equal(readlinkSync(link), second)
  t.equal(runs(), '2.0.0', 'nothing ran before; the new version runs')
  t.equal(names().size, 1, 'the backup from before stays')
  t.equal(begunUpgrade(data_dir), null)

  const failed = await run(broken, '--link', link)
  t.match(failed, { code: 1, stderr: /strowger-3\.0\.0 was not installed; strowger-2\.0\.0 runs with its data/ })
  t.match(
    failed.stdout,
    /migrations: 9999-of-the-future[\s\S]*backup …\ndrain …\nswitch …\nmigrate …\nstart …[\s\S]*the way back/,
  )
  t.equal(readlinkSync(link), second)
  t.equal(runs(), '2.0.0')
  const state = await openState({ data_dir, here: true })
  t.notOk((await executedMigrations(state.db)).includes('9999-of-the-future'), 'the old version can use its data')
  await state.close()

  const backup = join(folder, 'before.tar.gz')
  t.equal((await runCommand(['backup', backup], { env })).code, 0)
  for (const step of ['backup', 'drain', 'switch', 'migrate', 'start'] as const) {
    const late = step !== 'backup' && step !== 'drain'
    if (late) {
      const pid = runningSupervisor(join(data_dir, 'run'))
      if (pid !== null) process.kill(pid, 'SIGTERM')
      await until('it has stopped', () => runningSupervisor(join(data_dir, 'run')) === null)
    }
    if (step === 'migrate' || step === 'start') {
      rmSync(link)
      symlinkSync(broken, link)
    }
    const journal = { step, link, from: second, to: broken, backup, migrations: [], service: null }
    writeFileSync(`${data_dir}.upgrade.json`, JSON.stringify(journal))
    t.match(await run(broken, '--link', link, '--accept'), { code: 1, stderr: /stopped in its step/ }, step)
    const ended = await run('--back')
    t.equal(ended.code, 0, `${step}: ${ended.stderr}`)
    t.match({ link: readlinkSync(link), runs: runs() }, { link: second, runs: '2.0.0' }, `back from ${step}`)
  }
  t.match(await run('--back'), { code: 1, stderr: /no upgrade was interrupted/ })
})

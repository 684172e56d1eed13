import { spawn } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
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
import { basename, join } from 'node:path'
import Database from 'better-sqlite3'
import { runningSupervisor } from '../../../bin/pid-file.ts'
import { runningPlatform } from '../../../bin/platform-file.ts'
import { begunUpgrade } from '../../../bin/upgrade/steps.ts'
import { markPlace } from '../../../bin/where-state-is.ts'
import { runBare } from '../../../core/runtime/bare-child.ts'
import { TREE } from '../../../core/runtime/tree.ts'
import { DATABASE_FILE, openState } from '../../../core/state/index.ts'
import { isAsStopped } from '../../../core/state/sqlite/database-file.ts'
import { strowger } from '../../support/child.ts'
import { runCommand } from '../../support/command-line.ts'
import { controlPlane, openSandbox } from '../../support/control-plane.ts'
import { ranCall } from '../../support/ended-calls.ts'
import { putEmptyDatabase } from '../../support/fresh-state.ts'
import t from '../../support/harness/index.ts'
import { postgresDatabase } from '../../support/postgres.ts'
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
    const PATH = process.env['PATH'] ?? ''
    const env = { PATH, STROWGER_DATA: w.settings.data_dir, STROWGER_MASTER_KEY: '07'.repeat(32) }
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
const database = (data: string): string =>
  `require('${TREE}/node_modules/better-sqlite3')(${data} + '/${DATABASE_FILE}')`
const ADD_MIGRATION = `
${database('process.argv[2]')}.exec("insert or ignore into kysely_migration values ('9999-of-the-future', '2030')")
`
/** What happens between the backup and the end of the last call. */
const LATE_CALL = `
${database('process.argv[2]')}.exec('create table if not exists late_call (at text); insert into late_call values (1)')
`

/** An installation in a folder of its own, with versions that are shell scripts around this one. */
async function installed(t: Parameters<typeof controlPlane>[0]) {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-upgrade-'))
  const data_dir = join(folder, 'data')
  const pid_file = join(data_dir, 'run/supervisor.pid')
  mkdirSync(join(data_dir, 'run'), { recursive: true })
  await putEmptyDatabase(data_dir)
  writeFileSync(join(data_dir, 'master.key'), `${'07'.repeat(32)}\n`)
  for (const [name, text] of Object.entries({
    'up.cjs': FAKE_PLATFORM,
    'add.cjs': ADD_MIGRATION,
    'late.cjs': LATE_CALL,
  }))
    writeFileSync(join(folder, name), text)
  const powerCut = async (): Promise<void> => {
    const supervisor = () => runningSupervisor(join(data_dir, 'run'))
    const pid = supervisor()
    if (pid === null) return
    process.kill(pid, 'SIGKILL')
    // Until the kernel has ended it, it would be taken for what the machine starts next.
    await until('it has ended', () => supervisor() !== pid)
  }
  t.teardown(async () => {
    await powerCut()
    rmSync(folder, { recursive: true, force: true })
  })
  const [node, ours] = [process.execPath, `${TREE}/bin/strowger`]
  /**
   * A version: `ready` is the status of its /readyz, 0 for one that does not start; `migrates` whether it changes the
   * schema. In the step CUT_IN it ends the upgrade and itself; QUICK has it make no backup.
   */
  const make = (
    version: string,
    { ready = 200, migrates = false }: { ready?: number; migrates?: boolean } = {},
  ): string => {
    const at = join(folder, `strowger-${version}`)
    mkdirSync(join(at, 'bin'), { recursive: true })
    writeFileSync(join(at, 'package.json'), JSON.stringify({ version }))
    const finds = migrates ? `sed 's/"migrations":\\[/"migrations":["9999-of-the-future",/'` : 'cat'
    const cut = (step: string): string => `if [ "$CUT_IN" = ${step} ]; then kill -9 $PPID $$; fi`
    const script = `#!/bin/sh
case "$3 $4" in
"up ") ${cut('start')}
  ${ready === 0 ? 'exit 1' : `exec ${node} -e "$(cat ${folder}/up.cjs)" "$2" ${version} up ${ready}`} ;;
"backup "*) if [ "$CUT_IN" = backup ]; then head -c 9 ${ours} > "$4.new"; kill -9 $PPID $$; fi
  if [ "$QUICK" ]; then : > "$4"; else exec ${ours} "$@"; fi ;;
"drain --wait") kill $(cat ${pid_file})
  while [ -e ${pid_file} ]; do sleep 0.1; done
  ${node} ${folder}/late.cjs "$2"
  ${cut('drain')}
  if [ "$CUT_IN" = terminal ]; then kill -HUP $PPID; fi ;;
"drain --cancel") exit 0 ;;
"upgrade --rehearse")
  if [ ! -e ${at}/found ]; then ${ours} "$@" > ${at}/plain || exit 1; ${finds} < ${at}/plain > ${at}/found; fi
  cat ${at}/found
  ${migrates ? `${node} ${folder}/add.cjs "$2"` : ''}
  if [ "$2" = ${data_dir} ]; then ${cut('migrate')}; fi ;;
*) exec ${ours} "$@" ;;
esac
`
    writeFileSync(join(at, 'bin/strowger'), script, { mode: 0o755 })
    return at
  }
  const link = join(folder, 'strowger')
  const env = { PATH: process.env['PATH'] ?? '', STROWGER_DATA: data_dir, STROWGER_MASTER_KEY: '07'.repeat(32) }
  const run = (...words: string[]) => runCommand(['upgrade', ...words], { env })
  /** What an operator finds: the version of the link, the one that runs, its schema, and calls. */
  const found = () => {
    const db = new Database(join(data_dir, DATABASE_FILE), { readonly: true })
    try {
      const one = (sql: string) => db.prepare(sql).pluck().get() as number
      const kept = one("select count(*) from sqlite_master where name = 'late_call'") === 1
      return {
        link: basename(readlinkSync(link)),
        runs: runningPlatform(data_dir)?.version ?? null,
        migrated: one("select count(*) from kysely_migration where name like '9999%'") === 1,
        late_calls: kept ? one('select count(*) from late_call') : 0,
        interrupted: begunUpgrade(data_dir) !== null,
      }
    } finally {
      db.close()
    }
  }
  return { folder, data_dir, link, env, make, run, found, powerCut }
}

t.test('an upgrade that fails leads back to the version before, with every call of before it', async t => {
  const { data_dir, link, folder, make, run, found } = await installed(t)
  const [first, second, broken] = [make('1.0.0'), make('2.0.0'), make('3.0.0', { ready: 0, migrates: true })]
  symlinkSync(first, link)
  const kept = (end: string) =>
    readdirSync(folder).filter(name => name.startsWith('data.') && name.endsWith(end)).length

  t.match(await run(first, '--link', link), { code: 1, stderr: /leads to .*strowger-1\.0\.0 already/ })
  const good = await run(second, '--link', link)
  t.equal(good.code, 0, good.stdout + good.stderr)
  const isExamined = () => isAsStopped(join(data_dir, DATABASE_FILE))
  t.ok(isExamined(), 'a start does not check again what the step "migrate" has examined')
  const as_second = { link: 'strowger-2.0.0', runs: '2.0.0', migrated: false, interrupted: false }
  t.match(found(), as_second, 'nothing ran before; the new version runs')
  t.equal(readlinkSync(link), 'strowger-2.0.0', 'the link leads there from outside a container, too')
  t.same([kept('.tar.gz'), kept('.sqlite')], [1, 1], 'the backup from before stays, and the copy of the database')

  const failed = await run(broken, '--link', link)
  t.match(failed, { code: 1, stderr: /strowger-3\.0\.0 was not installed; strowger-2\.0\.0 runs with its data/ })
  t.match(
    failed.stdout,
    /migrations: 9999-of-the-future[\s\S]*backup …\ndrain …\ncopy …\nswitch …\nmigrate …\nstart …[\s\S]*the way back/,
  )
  t.ok(isExamined(), 'nor the copy that is in its place again')
  t.match(found(), { ...as_second, late_calls: 1 }, 'a call that ended after the backup is still there')
  const [aside = ''] = readdirSync(folder).filter(name => name.startsWith('data.of-strowger-3.0.0-'))
  const db = new Database(join(folder, aside), { readonly: true })
  t.equal(db.prepare('select count(*) from kysely_migration where name > ?').pluck().get('9998'), 1, 'kept aside')
  db.close()
  t.same(
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name =>
      /\.(new|part|next)$|\.strowger-/.test(name),
    ),
    [],
    'no half file is left',
  )
  t.notOk(existsSync(`${data_dir}.upgrade.json`))
})

t.test('with PostgreSQL a release is rehearsed in another database, and its way back needs no copy', async t => {
  const { data_dir, link, folder, env, make } = await installed(t)
  const [first, second, broken] = [make('1.0.0'), make('2.0.0'), make('3.0.0', { ready: 0, migrates: true })]
  symlinkSync(first, link)
  rmSync(join(data_dir, DATABASE_FILE))
  const STROWGER_DATABASE_URL = await postgresDatabase()
  markPlace({ data_dir, database_url: STROWGER_DATABASE_URL })
  const state = await openState({ data_dir, database_url: STROWGER_DATABASE_URL })
  t.teardown(() => state.close())
  const key = () => state.db.selectFrom('key_proof').selectAll().execute()
  const run = (...words: string[]) =>
    runCommand(['upgrade', ...words], { env: { ...env, STROWGER_DATABASE_URL }, columns: 200 })
  const empty = () => postgresDatabase({ template: 'template0' })
  const stands = () => [basename(readlinkSync(link)), runningPlatform(data_dir)?.version, begunUpgrade(data_dir)]

  t.match(await run('--check', second), { code: 1, stderr: /name an empty database for the rehearsal: --copy/ })
  t.match(await run('--check', second, '--copy', STROWGER_DATABASE_URL), { code: 1, stderr: /is not empty/ })
  const copy = await empty()
  t.match(await run('--check', second, '--copy', copy), { code: 0, stdout: /migrations: none\nchecks: as before/ })
  const copied = await openState({ data_dir, database_url: copy })
  t.same(await copied.db.selectFrom('key_proof').selectAll().execute(), await key(), 'the rows are there')
  await copied.close()

  const good = await run(second, '--link', link, '--copy', await empty())
  t.equal(good.code, 0, good.stdout + good.stderr)
  t.match(good.stdout, /2\.0\.0 runs; the backup from before is\s.*strowger migrate\s+--contract\n$/s)
  t.same(stands(), ['strowger-2.0.0', '2.0.0', null])
  const failed = await run(broken, '--link', link, '--copy', await empty())
  t.match(failed, { code: 1, stderr: /strowger-3\.0\.0 was not installed; strowger-2\.0\.0 runs with its data/ })
  t.same(stands(), ['strowger-2.0.0', '2.0.0', null])
  t.same(
    readdirSync(folder).filter(name => name.startsWith('data.') && name.endsWith('.sqlite')),
    [],
    'no database is copied or kept aside',
  )
})

t.test('after a power cut in any step a version runs with every call, and the upgrade can go on', async t => {
  const { data_dir, link, env, make, run, found, powerCut } = await installed(t)
  const [second, third] = [make('2.0.0'), make('3.0.0', { migrates: true })]
  symlinkSync(second, link)
  const boots = async () => {
    spawn(join(link, 'bin/strowger'), ['--data', data_dir, 'up'], { detached: true, stdio: 'ignore', env }).unref()
    await until('it runs', () => runningPlatform(data_dir))
  }
  /** Begins an upgrade that a power cut ends in this step. */
  const cutIn = async (step: string) => {
    const { code, stderr } = await strowger(['upgrade', third, '--link', link], { ...env, CUT_IN: step, QUICK: '1' })
      .ended
    t.equal(code, null, stderr)
    t.equal(begunUpgrade(data_dir)?.step, step)
    await powerCut()
  }
  const journal = (step: string) => {
    const begun = begunUpgrade(data_dir)
    writeFileSync(`${data_dir}.upgrade.json`, JSON.stringify({ ...begun, step }))
    return begun?.copy ?? ''
  }
  const goesBack = async (where: string, late_calls: number) => {
    const ended = await run('--back')
    t.equal(ended.code, 0, `${where}: ${ended.stdout}${ended.stderr}`)
    const interrupted = false
    t.same(found(), { link: 'strowger-2.0.0', runs: '2.0.0', migrated: false, late_calls, interrupted }, where)
  }
  await boots()
  await cutIn('backup')
  await boots()
  await goesBack('backup', 0)
  await cutIn('drain')
  t.match(await run(third, '--link', link), { code: 1, stderr: /stopped in its step "drain".*--back, or --continue/ })
  const status = await runCommand(['status'], { env })
  t.match(status, { code: 1, stdout: /^down +platform +nothing runs on/m })
  const young = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)', 'up'], { stdio: 'ignore' })
  writeFileSync(join(data_dir, 'run/supervisor.pid'), `${young.pid}\n`)
  const starting = await runCommand(['status'], { env })
  t.match(starting, { code: 1, stdout: new RegExp(`^down +platform +process ${young.pid} starts, or is`, 'm') })
  young.kill('SIGKILL')
  await new Promise(resolve => young.once('exit', resolve))
  t.match(status.stdout, /^WARN +upgrade +to \S+strowger-3\.0\.0 stopped in its step "drain": strowger upgrade --back/m)
  // Steps that run no program: the files that a power cut within them can leave.
  writeFileSync(`${journal('copy')}.part`, 'half')
  await goesBack('copy', 1)
  await cutIn('drain')
  copyFileSync(join(data_dir, DATABASE_FILE), journal('switch'))
  symlinkSync(third, `${link}.next`)
  await goesBack('switch', 2)
  await cutIn('migrate')
  t.match(found(), { link: 'strowger-3.0.0', runs: null, migrated: true, late_calls: 3 })
  await goesBack('migrate', 3)
  await cutIn('start')
  await goesBack('start', 4)
  t.match(await run('--back'), { code: 1, stderr: /no upgrade was interrupted/ })

  const closed = await strowger(['upgrade', third, '--link', link], { ...env, CUT_IN: 'terminal', QUICK: '1' }).ended
  t.match(closed, { code: 1, stdout: /ended by SIGHUP\nthe way back/ }, closed.stdout)
  t.match(found(), { link: 'strowger-2.0.0', runs: '2.0.0', migrated: false, late_calls: 5, interrupted: false })

  await cutIn('drain')
  await boots()
  const ended = await run('--continue')
  t.equal(ended.code, 0, ended.stdout + ended.stderr)
  const last = { link: 'strowger-3.0.0', runs: '3.0.0', migrated: true, late_calls: 7, interrupted: false }
  t.same(found(), last, 'what ran since the power cut is drained again')
  const running = await runCommand(['status', '--json'], { env })
  t.match(
    JSON.parse(running.stdout).map((line: { readonly what: string; readonly detail: string }) => [
      line.what,
      line.detail,
    ]),
    [
      ['version', /^3\.0\.0 runs, \d\S+ is installed: restart it/],
      ['platform', /^since /],
      ['health', / takes calls$/],
      ['data', /GiB free$/],
    ],
  )
})

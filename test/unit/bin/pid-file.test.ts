import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { supervisorFile, writePid } from '../../../bin/pid-file.ts'
import { createBusHub } from '../../../core/runtime/bus.ts'
import { createLog } from '../../../core/runtime/log.ts'
import { DATABASE_FILE } from '../../../core/state/index.ts'
import { strowger } from '../../support/child.ts'
import { runCommand } from '../../support/command-line.ts'
import { putEmptyDatabase } from '../../support/fresh-state.ts'
import t from '../../support/harness/index.ts'

t.test('a platform of another container, where pids differ, keeps its data; one that was killed does not', async t => {
  // The path of a socket has at most 107 bytes.
  const folder = mkdtempSync(join(tmpdir(), 'strowger-containers-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const data_dir = join(folder, 'data')
  const run_dir = join(data_dir, 'run')
  mkdirSync(run_dir, { recursive: true })
  await putEmptyDatabase(data_dir)
  writeFileSync(join(data_dir, 'master.key'), `${'07'.repeat(32)}\n`)
  const env = { STROWGER_DATA: data_dir }
  const run = (...words: string[]) => runCommand(words, { env })
  const archive = join(folder, 'backup.tar.gz')
  t.equal((await run('backup', archive)).code, 0)

  const hub = await createBusHub(run_dir, createLog('test', { log_level: 'silent' }))
  t.teardown(() => hub.close())
  // The first process of each container is process 1.
  writePid(supervisorFile(run_dir), process.pid)
  const { ino } = statSync(join(data_dir, DATABASE_FILE))
  const refusal = { code: 1, stderr: /runs \(a process of another container\): / }
  t.match(await run('restore', '--replace', archive), refusal)
  t.match(await run('migrate', 'to-postgres', 'postgres://127.0.0.1:1/none'), refusal)
  t.equal(statSync(join(data_dir, DATABASE_FILE)).ino, ino, 'the data is in its place')
  const elsewhere = { code: 1, stderr: /the platform is a process of another container: run the command there/ }
  for (const words of [
    ['drain'],
    ['call', '+2348030000002'],
    ['upgrade', folder, '--link', folder],
    ['upgrade', '--back'],
    ['upgrade', '--continue'],
  ])
    t.match(await run(...words), elsewhere, words.join(' '))
  const status = { code: 1, stdout: /^WARN +platform +a process of another container runs it: ask there/m }
  t.match(await run('status'), status, 'whether it takes calls is not known here')
  t.match((await run('doctor')).stdout, /the platform runs \(a process of another container\) and holds its ports/)
  const second = await strowger(['up'], { ...env, STROWGER_LOG: 'silent' }).ended
  t.match(second, { code: 1, stderr: /already running on .* \(a process of another container\)/ })

  // A killed platform leaves its socket.
  const socket = join(run_dir, 'bus.sock')
  renameSync(socket, `${socket}.left`)
  hub.close()
  renameSync(`${socket}.left`, socket)
  t.match(await run('drain'), { code: 1, stderr: /no platform runs on/ })
  t.match(await run('restore', '--replace', archive), { code: 0 })
})

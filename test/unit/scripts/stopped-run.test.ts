import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'

// A test run that is broken off takes its processes and its files with it.

/** Takes the place of a file's process, and does not end by itself. */
const ENDLESS = `
  import { renameSync, writeFileSync } from 'node:fs'
  process.on('SIGTERM', () => undefined)
  writeFileSync('said.new', JSON.stringify({ pid: process.pid, folder: process.env.TMPDIR ?? '' }))
  renameSync('said.new', 'said')
  setInterval(() => undefined, 1000)`

/** Reports whether a process has ended. A zombie has ended, and waits for its parent to read its status. */
function isGone(pid: number): boolean {
  try {
    return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return true
  }
}

t.test('a run that gets a signal ends the processes of its files and removes theirs', async t => {
  for (const [signal, status] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const) {
    const harness = { 'package.json': '{ "type": "module" }', 'main.js': ENDLESS }
    const folder = t.testdir({ 'endless.test.ts': '', build: { test: { support: { harness } } } })
    symlinkSync(resolve('scripts'), join(folder, 'scripts'))
    const run = spawn(process.execPath, ['scripts/test.mjs', 'endless.test.ts'], { cwd: folder, stdio: 'ignore' })
    const ended = once(run, 'exit')
    const said = join(folder, 'said')
    const { pid, folder: scratch } = await until('the file runs', () => {
      return existsSync(said) && (JSON.parse(readFileSync(said, 'utf8')) as { pid: number; folder: string })
    })
    run.kill(signal)
    t.same(await ended, [status, null])
    await until('its process has ended', () => isGone(pid))
    if (scratch.includes(`strowger-test-${run.pid}-`)) t.notOk(existsSync(scratch), 'its folder is removed')
  }
})

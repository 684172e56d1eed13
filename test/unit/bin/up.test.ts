import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MAIN } from '../../../bench/up.ts'
import t from '../../support/harness/index.ts'
import { freeBlock, freePort } from '../../support/ports.ts'
import { until } from '../../support/wait.ts'

/** Reports whether a process waits for the other end of a pipe. */
function isAwaited(pipe: string): boolean {
  try {
    closeSync(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK))
    return true
  } catch (error) {
    // No process has the pipe open for reading (fifo(7)).
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') return false
    throw error
  }
}

t.test('a signal during the start ends all that has begun, with exit code 0, and frees the data folder', async t => {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-up-'))
  t.teardown(() => rmSync(data_dir, { recursive: true, force: true }))
  const run_dir = join(data_dir, 'run')
  const rtp = await freeBlock(40)
  // The process that prepares the state reads it first, and so never ends.
  const pipe = join(data_dir, 'machine.id')
  execFileSync('mkfifo', [pipe])
  const child = spawn(process.execPath, [MAIN, 'up'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      STROWGER_DATA: data_dir,
      STROWGER_HTTP_PORT: String(await freePort()),
      STROWGER_SIP_PORT: String(await freePort()),
      STROWGER_SIPS_PORT: String(await freePort()),
      STROWGER_WS_PORT: String(await freePort()),
      STROWGER_RTP_PORTS: `${rtp.first}-${rtp.last}`,
      STROWGER_LOG: 'silent',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    complaint += text
  })
  const ended = once(child, 'close')
  const files = ['media', 'edge'].map(name => join(run_dir, `${name}.pid`))
  await until('the first processes are on their way', () => {
    if (child.exitCode !== null) throw new Error(`it ended: ${complaint}`)
    return files.every(existsSync)
  })
  const pids = files.map(file => Number(readFileSync(file, 'utf8')))
  child.kill('SIGTERM')
  t.same(await ended, [0, null])
  t.equal(complaint, '')
  t.notOk(isAwaited(pipe), 'nobody prepares the state any more')
  for (const pid of pids) t.notOk(existsSync(`/proc/${pid}`), `process ${pid} is gone`)
  const left = readdirSync(run_dir).filter(name => /\.pid|platform\.json|bus\.sock/.test(name))
  t.same(left, [])
})

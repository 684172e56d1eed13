import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { serviceManager } from '../../../bin/service-manager.ts'
import { createLog } from '../../../core/runtime/log.ts'
import t from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'

/** Plays systemd: prints each datagram that its socket receives. Node.js has no such sockets. */
const MANAGER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('bound', flush=True)
while True: print(s.recv(4096).decode().replace(chr(10), ' '), flush=True)
`

t.test('systemd hears that the platform is up, that it lives, and that it stops', async t => {
  const path = join(t.testdir(), 'n')
  const child = spawn('python3', ['-c', MANAGER, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  let heard = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    heard += text
  })
  await once(child.stdout, 'data')
  let feed = (): void => undefined
  let period_ms = 0
  let cancelled = 0
  const clock = {
    every(ms: number, work: () => void) {
      period_ms = ms
      feed = work
      return { cancel: () => void cancelled++ }
    },
  }
  const { PATH } = process.env
  const log = createLog('test', { log_level: 'warn' })
  const manager = serviceManager({ PATH, NOTIFY_SOCKET: path, WATCHDOG_USEC: '60000000' }, clock, log)
  const preparing = manager.preparing()
  t.equal(period_ms, 30_000, 'four times in what each extension gives')
  feed()
  await until('it prepares its state', () => /^EXTEND_TIMEOUT_USEC=120000000/m.test(heard))
  preparing.cancel()
  t.equal(cancelled, 1, 'no more of them')
  manager.ready()
  await until('it is up', () => /^READY=1/m.test(heard))
  t.equal(period_ms, 30_000, 'twice in each period of the watchdog')
  t.notMatch(heard, /WATCHDOG/)
  feed()
  await until('it lives', () => /^WATCHDOG=1/m.test(heard))
  manager.stopping()
  await until('it stops', () => /^STOPPING=1/m.test(heard))
})

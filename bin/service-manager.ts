import { spawn } from 'node:child_process'
import type { Clock, Timer } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'
import type { Environment } from '../core/runtime/variables.ts'

interface ServiceManager {
  /** The state is checked and migrated, for longer than the manager's start limit if need be, until the timer ends. */
  preparing(): Timer
  /** The platform is up. From now on the watchdog of the manager is fed, if it has one. */
  ready(): void
  stopping(): void
}

const EXTEND_EVERY_MS = 30_000
/** How long systemd waits for the next extension (sd_notify(3)). */
const EXTENSION_MS = 4 * EXTEND_EVERY_MS

/**
 * Tells systemd what the supervisor does (sd_notify(3)), when systemd has started it with `Type=notify`; else nobody. A
 * supervisor that hangs feeds no watchdog (`WatchdogSec=`), so systemd starts the platform again. Node.js has no
 * datagram sockets of Unix, so systemd-notify(1) sends for it (`NotifyAccess=all`).
 */
export function serviceManager(env: Environment, clock: Pick<Clock, 'every'>, log: Log): ServiceManager {
  const { NOTIFY_SOCKET, WATCHDOG_USEC, PATH } = env
  const nobody = (): void => undefined
  if (!NOTIFY_SOCKET) return { preparing: () => ({ cancel: nobody }), ready: nobody, stopping: nobody }
  const tell = (...words: string[]): void => {
    const child = spawn('systemd-notify', words, { stdio: 'ignore', env: { PATH, NOTIFY_SOCKET } })
    child.on('error', err => log.warn({ err }, 'systemd could not be notified'))
  }
  return {
    preparing: () => clock.every(EXTEND_EVERY_MS, () => tell(`EXTEND_TIMEOUT_USEC=${EXTENSION_MS * 1000}`)),
    ready() {
      tell('--ready')
      // Half of the period, as sd_watchdog_enabled(3) advises.
      if (WATCHDOG_USEC) clock.every(Number(WATCHDOG_USEC) / 2000, () => tell('WATCHDOG=1'))
    },
    stopping: () => tell('STOPPING=1'),
  }
}

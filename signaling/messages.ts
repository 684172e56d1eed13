import { smsRoute } from '../core/domain/alerts/index.ts'
import type { Bus } from '../core/runtime/bus.ts'
import type { Clock } from '../core/runtime/clock.ts'
import type { Config } from '../core/runtime/config.ts'
import type { Log } from '../core/runtime/log.ts'
import { claimNotifications, type NotificationRow, settleNotification } from '../core/state/alerts/alerts.ts'
import type { State } from '../core/state/index.ts'
import type { SipStack } from './drachtio/types.ts'

const POLL_MS = 1000
const AT_ONCE = 10
/** RFC 3428 §8: a MESSAGE over UDP has at most 1300 bytes, including its headers. */
const MAX_BODY_BYTES = 600

/**
 * Sends the short messages of alerts as SIP MESSAGE (RFC 3428) if STROWGER_SMS_URL names a SIP gateway. Delivery is at
 * least once, with the retries of all notifications.
 */
export function startMessages(options: {
  readonly config: Pick<Config, 'sms_url' | 'domain'>
  readonly state: State
  readonly sip: Pick<SipStack, 'connected' | 'request'>
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
}): { stop(): Promise<void> } {
  const { config, state, sip, bus, clock, log } = options
  const route = config.sms_url === null ? null : smsRoute(config.sms_url)
  if (route?.via !== 'sip') return { stop: async () => undefined }
  let looking: Promise<void> | null = null
  let stopped = false

  const send = async (row: NotificationRow): Promise<void> => {
    const answer = await sip
      .request({
        method: 'MESSAGE',
        uri: `${route.scheme}:${row.recipient}@${route.host}${route.parameters}`,
        headers: {
          From: `<sip:strowger@${config.domain}>`,
          To: `<${route.scheme}:${row.recipient}@${route.host}>`,
          'Content-Type': 'text/plain;charset=UTF-8',
        },
        body: cut(row.body),
      })
      .catch((err: Error) => err)
    const error =
      answer instanceof Error
        ? { text: answer.message, final: false }
        : answer.status < 300
          ? null
          : { text: `the gateway answered ${answer.status} ${answer.reason}`, final: false }
    if (error) log.warn({ notification_id: row.id, channel: 'sms', error: error.text }, 'a notification was not sent')
    await settleNotification(state.db, row, error, { now_ms: clock.now(), jitter: Math.random() })
  }
  const look = (): void => {
    if (stopped || looking || !sip.connected) return
    looking = claimNotifications(state, clock.now(), AT_ONCE, ['sms'])
      .then(rows => Promise.all(rows.map(send)))
      .then(() => undefined)
      .catch(err => log.error({ err }, 'short messages could not be sent'))
      .finally(() => {
        looking = null
      })
  }
  const poll = clock.every(POLL_MS, look)
  const unheard = bus.on('outbox', look)
  return {
    async stop() {
      stopped = true
      poll.cancel()
      unheard()
      await looking
    },
  }
}

/** Truncates text to MAX_BODY_BYTES without splitting a character. */
function cut(text: string): string {
  const bytes = Buffer.from(text)
  return bytes.length <= MAX_BODY_BYTES
    ? text
    : bytes
        .subarray(0, MAX_BODY_BYTES)
        .toString('utf8')
        .replace(/\uFFFD+$/, '')
}

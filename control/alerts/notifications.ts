import { randomInt } from 'node:crypto'
import { iso } from '../../core/runtime/clock.ts'
import { claimNotifications, type NotificationRow, settleNotification } from '../../core/state/alerts.ts'
import type { Services } from '../http/services.ts'
import type { Reconciler } from '../reconcilers/reconciler.ts'
import type { MessageChannel } from './channels.ts'

const AT_ONCE = 20
const FIRST_DELAY_MS = 10_000
const MAX_DELAY_MS = 3_600_000
const LIFE_MS = 24 * 3_600_000

/** Channels that this installation has; null where it is not configured. */
export type Channels = Readonly<Record<NotificationRow['channel'], MessageChannel | null>>

/** Sends messages about alerts: at least once, retried with a growing delay for 24 hours. */
export const notifications = (channels: Channels): Reconciler => {
  const busy = new Set<Promise<void>>()
  return {
    name: 'alert-notifications',
    period_ms: 1000,
    topics: ['outbox'],
    async run(services) {
      const room = AT_ONCE - busy.size
      if (room <= 0) return
      const { state, clock, log } = services
      for (const row of await state.transaction(trx => claimNotifications(trx, clock.now(), room))) {
        const work = deliver(services, channels, row)
          .catch(err => log.error({ err, notification_id: row.id }, 'a notification could not be settled'))
          .finally(() => busy.delete(work))
        busy.add(work)
      }
    },
    async stop() {
      await Promise.all(busy)
      for (const channel of Object.values(channels)) channel?.close()
    },
  }
}

async function deliver({ state, clock, log }: Services, channels: Channels, row: NotificationRow): Promise<void> {
  const channel = channels[row.channel]
  const attempts = row.attempts + 1
  let error: string | null = channel ? null : `no ${row.channel} channel is configured`
  if (channel)
    try {
      await channel.send({ recipient: row.recipient, subject: row.subject, body: row.body, id: row.id })
    } catch (err) {
      error = (err instanceof Error ? err.message : String(err)).slice(0, 300)
      log.warn({ notification_id: row.id, channel: row.channel, error }, 'a notification could not be sent')
    }
  const now_ms = clock.now()
  const delay_ms = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(20, attempts - 1))
  const over = !channel || now_ms + delay_ms > Date.parse(row.created_at) + LIFE_MS
  await settleNotification(state.db, row.id, {
    state: error === null ? 'delivered' : over ? 'failed' : 'pending',
    attempts,
    last_error: error,
    next_attempt_at: iso(now_ms + delay_ms + randomInt(Math.floor(delay_ms / 5))),
    delivered_at: error === null ? iso(now_ms) : null,
  })
}

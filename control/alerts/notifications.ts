import { claimNotifications, type NotificationRow, settleNotification } from '../../core/state/alerts/alerts.ts'
import type { Services } from '../http/services.ts'
import type { Reconciler } from '../reconcilers/reconciler.ts'
import type { MessageChannel } from './channels.ts'

const AT_ONCE = 20

/**
 * The channels that the control plane sends through; null for one that is not configured. A missing channel belongs to
 * another process: the signaling node sends SIP MESSAGE.
 */
export type Channels = Readonly<Partial<Record<NotificationRow['channel'], MessageChannel | null>>>

/** Sends messages about alerts, at least once. Failures are retried with a growing delay for 24 hours. */
export const notifications = (channels: Channels): Reconciler => {
  const busy = new Set<Promise<void>>()
  const ours = Object.keys(channels) as NotificationRow['channel'][]
  return {
    name: 'alert-notifications',
    period_ms: 1000,
    runs: 'once',
    topics: ['outbox'],
    async run(services) {
      const room = AT_ONCE - busy.size
      if (room <= 0) return
      const { state, clock, log } = services
      for (const row of await claimNotifications(state, clock.now(), room, ours)) {
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
  let error = channel ? null : { text: `no ${row.channel} channel is configured`, final: true }
  if (channel)
    try {
      const { project_id, recipient, subject, body, id } = row
      await channel.send({ project_id, recipient, subject, body, id })
    } catch (err) {
      error = { text: err instanceof Error ? err.message : String(err), final: false }
      log.warn({ notification_id: row.id, channel: row.channel, error: error.text }, 'a notification could not be sent')
    }
  await settleNotification(state.db, row, error, { now_ms: clock.now(), jitter: Math.random() })
}

import { mendNotificationTimes } from '../../core/state/alerts/alerts.ts'
import { mendDeliveryTimes } from '../../core/state/delivery/webhook-endpoints.ts'
import type { Reconciler } from './reconciler.ts'

/** After the clock was set back, no message waits until it shows the old time again. Callbacks do it themselves. */
export const deliveryTimes: Reconciler = {
  name: 'delivery-times',
  period_ms: 60_000,
  runs: 'once',
  async run({ state, clock }) {
    await mendDeliveryTimes(state.db, clock.now())
    await mendNotificationTimes(state.db, clock.now())
  },
}

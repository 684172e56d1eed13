import { createHttpClient, type HttpClient } from '../../core/runtime/http/index.ts'
import { machineOf } from '../../core/runtime/machine.ts'
import { Counter, Gauge, type Registry } from '../../core/runtime/metrics.ts'
import { createVoiceRequester } from '../../core/runtime/voice-request.ts'
import { countWaitingCallbacks } from '../../core/state/delivery/outbox-delivery.ts'
import type { Services } from '../http/services.ts'
import { type Deliverer, deliverCallbacks } from './deliver.ts'

interface Callbacks {
  /** Gives running deliveries a moment to finish, then aborts the rest for a later attempt. */
  stop(): Promise<void>
}

/** Delivers status and recording callbacks from the outbox for as long as the process runs. */
export function startCallbacks(services: Services & { readonly metrics: Registry }): Callbacks {
  const { settings, log, metrics, state } = services
  const http: HttpClient = createHttpClient({
    allow_private: settings.allow_private_webhooks,
    user_agent: 'Strowger/0.1',
    log,
  })
  const attempts = new Counter({
    name: 'strowger_callback_attempts_total',
    help: 'Attempts to deliver a callback, by outcome',
    labelNames: ['result'] as const,
    registers: [metrics],
  })
  new Gauge({
    name: 'strowger_callbacks_waiting',
    help: 'Callbacks in the outbox that wait for delivery',
    registers: [metrics],
    async collect() {
      this.set(await countWaitingCallbacks(state.db).catch(() => Number.NaN))
    },
  })
  const deliverer: Deliverer = deliverCallbacks({
    ...services,
    requester: createVoiceRequester({ http }),
    machine: machineOf(settings.data_dir),
    attempted: result => attempts.inc({ result }),
  })
  return {
    async stop() {
      await deliverer.stop()
      await http.close()
    },
  }
}

import { connectBus } from '../core/runtime/bus.ts'
import { systemClock } from '../core/runtime/clock.ts'
import { loadConfig } from '../core/runtime/config.ts'
import { loadUndici } from '../core/runtime/http/index.ts'
import { portTaken, runProcess } from '../core/runtime/lifecycle.ts'
import { createObjectStore } from '../core/runtime/object-store.ts'
import { openState } from '../core/state/index.ts'
import { exposeState } from '../core/state/nodes/metrics.ts'
import { startControl } from './control.ts'
import { loadBodyParser } from './http/body.ts'
import { exposeControl } from './metrics.ts'
import { startReconcilers } from './reconcilers/index.ts'
import { startCallbacks } from './webhooks/index.ts'

await runProcess('control', loadConfig, async ({ config, log, metrics }) => {
  const state = await openState({ data_dir: config.data_dir, local: true })
  exposeState(state, metrics)
  const bus = connectBus(config.run_dir)
  const services = {
    state,
    bus,
    clock: systemClock,
    log,
    settings: { ...config, tls_cert_file: config.tls?.cert_file ?? null },
    objects: config.s3 && createObjectStore(config.s3, log),
  }
  try {
    const server = await startControl({ ...services, listen: { host: config.bind, port: config.http_port } })
    const reconcilers = await startReconcilers({ ...services, metrics, otlp_url: config.otlp_url })
    const callbacks = startCallbacks({ ...services, metrics })
    const exposed = exposeControl({ ...services, metrics })
    // Node never repeats an import that failed, say for want of a file descriptor.
    await Promise.all([loadUndici(), loadBodyParser()])
    log.info({ port: server.port }, 'control is up')
    return {
      async stop() {
        exposed.stop()
        await server.close()
        await callbacks.stop()
        await reconcilers.stop()
        await services.objects?.close()
        await bus.close()
        await state.close()
      },
    }
  } catch (error) {
    await bus.close()
    await state.close()
    throw portTaken(error, config.http_port, 'STROWGER_HTTP_PORT')
  }
})

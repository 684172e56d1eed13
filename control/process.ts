import { connectBus } from '../core/runtime/bus.ts'
import { loadCertificate } from '../core/runtime/certificate.ts'
import { type Config, httpBindOf, loadConfig } from '../core/runtime/config.ts'
import { createHttpClient } from '../core/runtime/http/index.ts'
import { portTaken, runProcess } from '../core/runtime/lifecycle.ts'
import type { Log } from '../core/runtime/log.ts'
import { machineOf } from '../core/runtime/machine.ts'
import { filesAt, MachineFiles, serveFiles } from '../core/runtime/machine-files.ts'
import { createObjectStore } from '../core/runtime/object-store.ts'
import { filesKey } from '../core/runtime/secrets.ts'
import { openRates, openState, type State } from '../core/state/index.ts'
import { linkOf } from '../core/state/nodes/edge-links.ts'
import { exposeState } from '../core/state/nodes/metrics.ts'
import { HttpChallenges } from './acme/challenges.ts'
import { startControl } from './control.ts'
import type { HttpServer } from './http/server.ts'
import { SharedRates } from './http/shared-rates.ts'
import { exposeControl } from './metrics.ts'
import { startReconcilers } from './reconcilers/index.ts'
import { startCallbacks } from './webhooks/index.ts'

/** The operator chooses the authority, so it may be in a private network. */
const EVERYWHERE = ['0.0.0.0/0', '::/0']

/** How an authority finds out that our names lead here. */
const proofOf = ({ http_port }: NonNullable<Config['acme']>, bind: string, { challenges }: HttpServer) =>
  http_port === null
    ? { type: 'tls-alpn-01' as const, present: challenges.present }
    : { type: 'http-01' as const, present: new HttpChallenges(bind, http_port).present }

/** The files of the other machines that share the state. */
const machinesOf = ({ database_url, data_dir, master_key }: Config, { db }: State): MachineFiles | null =>
  database_url === null
    ? null
    : new MachineFiles(machineOf(data_dir).machine_id, filesKey(master_key), machine_id => linkOf(db, machine_id))

/** Lets the other machines read our files. Without the port, this machine still does all else. */
async function filesFor({ link, master_key, data_dir }: Config, log: Log) {
  if (!link) return null
  const at = filesAt(link)
  return serveFiles(at, { key: filesKey(master_key), data_dir, log }).catch(err => {
    log.error({ err, ...at }, 'the port where other machines read files cannot be opened')
    return null
  })
}

void runProcess('control', loadConfig, async ({ config, log, metrics }) => {
  const state = await openState({ data_dir: config.data_dir, database_url: config.database_url, local: true })
  exposeState(state, metrics)
  const bus = connectBus(config.run_dir)
  const store = await openRates(config, log)
  const rates = store && new SharedRates(store, state.clock, log)
  const services = {
    state,
    bus,
    clock: state.clock,
    log,
    settings: config,
    objects: config.s3 && createObjectStore(config.s3, log),
    machines: machinesOf(config, state),
  }
  const { http_port: port, https_port } = config
  try {
    const listen = {
      host: httpBindOf(config),
      port,
      secure: https_port === null ? null : { host: config.bind, port: https_port, tls: await loadCertificate(config) },
    }
    const server = await startControl({ ...services, rates, listen })
    const { acme } = config
    const http = createHttpClient({ allow_private: EVERYWHERE, user_agent: 'Strowger/0.1', log })
    const proof = acme && { settings: acme, http, ...proofOf(acme, config.bind, server) }
    const reconcilers = await startReconcilers({ ...services, metrics, otlp_url: config.otlp_url, acme: proof })
    const callbacks = startCallbacks({ ...services, metrics })
    const exposed = exposeControl({ ...services, metrics })
    const files = await filesFor(config, log)
    log.info({ host: listen.host, port: server.port, secure_port: server.secure_port }, 'control is up')
    return {
      renewTls: tls => server.renewTls(tls),
      async stop() {
        exposed.stop()
        files?.close()
        services.machines?.close()
        await server.close()
        await callbacks.stop()
        await reconcilers.stop()
        await http.close()
        await services.objects?.close()
        await rates?.close()
        await bus.close()
        await state.close()
      },
    }
  } catch (error) {
    await rates?.close()
    await bus.close()
    await state.close()
    const taken = (error as { port?: number }).port
    if (https_port !== null && taken === https_port) throw portTaken(error, https_port, 'STROWGER_HTTPS_PORT')
    throw portTaken(error, port, 'STROWGER_HTTP_PORT')
  }
})

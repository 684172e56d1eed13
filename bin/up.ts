import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { Command } from 'commander'
import { type BusBridge, createBusHub } from '../core/runtime/bus.ts'
import type { TlsOptions } from '../core/runtime/certificate.ts'
import { iso, systemClock } from '../core/runtime/clock.ts'
import { type Config, loadConfig } from '../core/runtime/config.ts'
import { createLog, type Log } from '../core/runtime/log.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import type { Environment } from '../core/runtime/variables.ts'
import { tlsOptions } from '../signaling/edge/certificates.ts'
import { watchCertificates } from './certificate-watch.ts'
import { environmentOf, type ProcessName } from './child-environment.ts'
import { makeWritable } from './confinement.ts'
import { thisInstallation } from './installation.ts'
import { type ProcessStanding, stand, startedWith } from './least-privilege.ts'
import { platformProcess, supervisorFile, writePid } from './pid-file.ts'
import { platformFile, writePlatform } from './platform-file.ts'
import { internalPorts, refuseForeignAddresses } from './ports.ts'
import { Preparation } from './preparation.ts'
import { hasSandbox, refuseRoles } from './roles.ts'
import { orSayWhy } from './say.ts'
import { serviceManager } from './service-manager.ts'
import { type Plan, supervise } from './supervisor.ts'
import { noteStopAt, refuseOtherPlace } from './where-state-is.ts'

export const upCommand = (): Command =>
  new Command('up').action(() =>
    orSayWhy(() => {
      const { env } = thisInstallation()
      return up(loadConfig(env), env)
    }),
  )

async function up(config: Config, env: Environment): Promise<void> {
  const log = createLog('supervisor', config)
  const manager = serviceManager(env, systemClock, log)
  const signals = heedSignals(manager)
  refuseRoles(config)
  await refuseForeignAddresses(config)
  const releases: (() => unknown)[] = [await lock(config)]
  /** Ends and closes what the start has begun, the last first. */
  const release = async (): Promise<void> => {
    for (const one of releases.splice(0).reverse()) await one()
  }
  try {
    refuseOtherPlace(config)
    // Before what writes, so that other containers see the hub for as long as that lives.
    releases.push(await openHub(config, log))
    const preparation = new Preparation(env)
    releases.push(() => preparation.end())
    const extending = manager.preparing()
    releases.push(() => extending.cancel())
    writePlatform(config, env, iso(Date.now()))
    const ports = await internalPorts(config)
    let lines: readonly string[] = []
    let renew: (tls: TlsOptions) => void = () => undefined
    const load = (): Promise<TlsOptions> => tlsOptions(config)
    const certificates = watchCertificates({ load, clock: systemClock, log, renewed: tls => renew(tls) })
    signals.reload = () => void certificates.look()
    // Makes our own certificate before two processes want it at the same time.
    await certificates.look()
    makeWritable(config)
    const standing = dropRights(config, log)
    // Nothing else writes before the database is known to be sound.
    await Promise.race([signals.stopped, preparation.sound])
    const { renewTls } = await supervise(plans(config, ports, env, standing), {
      run_dir: config.run_dir,
      log,
      drain_ms: config.drain_seconds * 1000,
      begun: stop => {
        signals.stop = stop
      },
      prepare: async () => {
        lines = await preparation.prepare(ports.sandbox)
        // The processes of the platform must start within the limit.
        extending.cancel()
      },
      stopped: async () => {
        // It writes to the database.
        await preparation.end()
        noteWholeState(config, log)
        await release()
      },
    })
    renew = renewTls
    process.stdout.write(`${lines.join('\n')}\n`)
    manager.ready()
  } catch (error) {
    await release()
    if (error instanceof Stopped) process.exit(0)
    throw error
  }
}

/** A signal has ended the start. */
class Stopped extends Error {}

interface Signals {
  reload: () => void
  stop: () => void
  /** Rejects at a signal that comes before there are processes to stop. */
  readonly stopped: Promise<never>
}

/** Takes all signals from the beginning: one that nobody handles ends the process, and its children are left. */
function heedSignals(manager: { stopping(): void }): Signals {
  let stop = (): void => undefined
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = () => reject(new Stopped())
  })
  // Nobody awaits it yet.
  stopped.catch(() => undefined)
  const signals: Signals = { reload: () => undefined, stop, stopped }
  process.on('SIGHUP', () => signals.reload())
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.on(signal, () => {
      manager.stopping()
      signals.stop()
    })
  return signals
}

/** Locks the data folder for one supervisor: two would compete for its sockets and its calls. */
async function lock({ run_dir, data_dir }: Config): Promise<() => void> {
  const running = await platformProcess(run_dir)
  if (running !== null)
    throw new StartRefused(
      `already running on ${data_dir} (${running}): stop it, or name another folder by --data or STROWGER_DATA`,
    )
  writePid(supervisorFile(run_dir), process.pid)
  return () => {
    for (const file of [platformFile(run_dir), supervisorFile(run_dir)]) rmSync(file, { force: true })
  }
}

/** Opens the hub of rings. Returns what closes it. */
async function openHub(config: Config, log: Log): Promise<() => void> {
  const bridge = await bridgeOf(config, log)
  const hub = await createBusHub(config.run_dir, log, bridge)
  return () => {
    hub.close()
    void bridge?.close()
  }
}

/** Opens the way of rings between machines. One that shares no database loads nothing for it. */
async function bridgeOf(config: Config, log: Log): Promise<BusBridge | null> {
  if (config.database_url === null) return null
  const { openBridge } = await import('../core/state/index.ts')
  return openBridge(config, log)
}

/** Without the note, as on a full disk, the next start checks the database. */
function noteWholeState(config: Config, log: Log): void {
  try {
    noteStopAt(config)
  } catch (err) {
    log.warn({ err }, 'the next start checks the database: the note of this stop could not be written')
  }
}

/** Returns how the processes that handle strangers' packets drop root's rights, and logs a warning if they cannot. */
function dropRights(config: Config, log: Log): ProcessStanding {
  const at = stand(config)
  if (at.who === 'root') log.warn({ why: at.why }, 'the edge, media and sandbox processes keep root privileges')
  if (at.who === 'bare_root' && at.why !== null)
    log.warn({ why: at.why }, 'the edge, media and sandbox remain user 0, without its rights')
  return at
}

function plans(
  config: Config,
  ports: { control_link: number; sandbox: number },
  given: Environment,
  at: ProcessStanding,
): Plan[] {
  const embedded = config.drachtio === null
  // The signaling node always connects to a drachtio-server. Only the supervisor knows that it is the embedded edge.
  const link = embedded
    ? {
        STROWGER_DRACHTIO: `127.0.0.1:${ports.control_link}`,
        STROWGER_DRACHTIO_SECRET: config.drachtio_secret || randomBytes(16).toString('hex'),
      }
    : {}
  const given_to = (name: ProcessName, more: Environment = {}): Pick<Plan, 'env' | 'fewer'> => {
    const fewer = startedWith(name, at, config, given)
    // Another user may have no access to our folder for temporary files.
    const own = fewer?.user == null ? {} : { TMPDIR: undefined }
    return { fewer, env: environmentOf(name, { ...given, ...own, ...more }) }
  }
  const media: Plan = { name: 'media', script: 'media/process.js', ...given_to('media') }
  const edge: Plan = {
    name: 'edge',
    script: 'signaling/edge/process.js',
    ...given_to('edge', link),
    serves_tls: true,
  }
  const signaling: Plan = {
    name: 'signaling',
    script: 'signaling/process.js',
    ...given_to('signaling', link),
    ...(config.roles.has('signaling') ? { drains: true } : {}),
    needs_state: true,
  }
  const control: Plan = {
    name: 'control',
    script: 'control/process.js',
    // Its threads take turns, so more arenas of malloc(3) only hold memory: 2 MB.
    ...given_to('control', { MALLOC_ARENA_MAX: given['MALLOC_ARENA_MAX'] ?? '2' }),
    needs_state: true,
    serves_tls: true,
  }
  const sandbox: Plan = {
    name: 'sandbox',
    script: 'signaling/sandbox/process.js',
    // The system chooses its RTP ports. The configured range belongs to the media worker and has no effect here.
    ...given_to('sandbox', { STROWGER_SIP_PORT: String(ports.sandbox) }),
    sleeps_at: { host: config.bind, port: ports.sandbox },
  }
  const { roles } = config
  // Files, certificate and signs of life of each machine need control.
  return [
    ...(roles.has('media') ? [media] : []),
    ...(embedded && (roles.has('edge') || roles.has('signaling')) ? [edge] : []),
    ...(hasSandbox(config) ? [sandbox] : []),
    ...(roles.has('edge') || roles.has('signaling') ? [signaling] : []),
    control,
  ]
}

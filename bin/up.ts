import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { createBusHub } from '../core/runtime/bus.ts'
import type { TlsOptions } from '../core/runtime/certificate.ts'
import { delay, iso, systemClock } from '../core/runtime/clock.ts'
import { type Config, loadConfig } from '../core/runtime/config.ts'
import { databaseName } from '../core/runtime/database-url.ts'
import { createLog, type Log } from '../core/runtime/log.ts'
import { machineOf } from '../core/runtime/machine.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import type { Environment } from '../core/runtime/variables.ts'
import { addBootstrapKey, BOOTSTRAP_KEY_HOURS, putSandboxCarrier } from '../core/state/configuration/bootstrap.ts'
import { DATABASE_FILE, damageOf, noteStop, openBridge, openState } from '../core/state/index.ts'
import { refuseForeignKey } from '../core/state/maintenance/key-proof.ts'
import { putMachine } from '../core/state/nodes/machines.ts'
import { askToDrain } from '../core/state/nodes/nodes.ts'
import { tlsOptions } from '../signaling/edge/certificates.ts'
import { seedDemo } from './bootstrap.ts'
import { watchCertificates } from './certificate-watch.ts'
import { environmentOf, type ProcessName } from './child-environment.ts'
import { makeWritable } from './confinement.ts'
import { thisInstallation } from './installation.ts'
import { type ProcessStanding, stand, startedWith } from './least-privilege.ts'
import { runningSupervisor, supervisorFile, writePid } from './pid-file.ts'
import { platformFile, writePlatform } from './platform-file.ts'
import { internalPorts, refuseForeignAddresses } from './ports.ts'
import { refuseRoles } from './roles.ts'
import { orSayWhy } from './say.ts'
import { WORDING } from './service/wording.ts'
import { serviceManager } from './service-manager.ts'
import { type Plan, supervise } from './supervisor.ts'
import { refuseTwin, TWIN_MS, thisMachine } from './this-machine.ts'
import { markPlace, refuseOtherPlace } from './where-state-is.ts'

export const upCommand = (): Command =>
  new Command('up').action(() =>
    orSayWhy(() => {
      const { env } = thisInstallation()
      return up(loadConfig(env), env)
    }),
  )

async function up(config: Config, env: Environment): Promise<void> {
  const log = createLog('supervisor', config)
  let reload = (): void => undefined
  // From the beginning, because a signal that nobody handles ends the process.
  process.on('SIGHUP', () => reload())
  refuseRoles(config)
  await refuseForeignAddresses(config)
  const unlock = lock(config)
  refuseState(config, unlock)
  writePlatform(config, env, iso(Date.now()))
  const bridge = await openBridge(config, log)
  const hub = await createBusHub(config.run_dir, log, bridge)
  const ports = await internalPorts(config)
  const release = (): void => {
    hub.close()
    void bridge?.close()
    unlock()
  }
  let lines: readonly string[] = []
  let renew: (tls: TlsOptions) => void = () => undefined
  const load = (): Promise<TlsOptions> => tlsOptions(config)
  const certificates = watchCertificates({ load, clock: systemClock, log, renewed: tls => renew(tls) })
  reload = () => void certificates.look()
  try {
    // Makes our own certificate before two processes want it at the same time.
    await certificates.look()
    makeWritable(config)
    const supervisor = await supervise(plans(config, ports, env, dropRights(config, log)), {
      run_dir: config.run_dir,
      log,
      drain_ms: config.drain_seconds * 1000,
      prepare: async () => {
        lines = await prepare(config, ports.sandbox)
      },
      stopped: () => {
        noteWholeState(config, log)
        release()
      },
    })
    process.stdout.write(`${lines.join('\n')}\n`)
    renew = supervisor.renewTls
    const manager = serviceManager(env, systemClock, log)
    manager.ready()
    for (const signal of ['SIGINT', 'SIGTERM'])
      process.on(signal, () => {
        manager.stopping()
        supervisor.stop()
      })
  } catch (error) {
    release()
    throw error
  }
}

/** Locks the data folder for one supervisor: two would compete for its sockets and its calls. */
function lock({ run_dir, data_dir }: Config): () => void {
  const pid = runningSupervisor(run_dir)
  if (pid !== null)
    throw new StartRefused(
      `already running on ${data_dir} (process ${pid}): stop it, or name another folder by --data or STROWGER_DATA`,
    )
  writePid(supervisorFile(run_dir), process.pid)
  return () => {
    for (const file of [platformFile(run_dir), supervisorFile(run_dir)]) rmSync(file, { force: true })
  }
}

/** Refuses to start on a damaged database, because every write may lose more, and beside the one that has the state. */
function refuseState(config: Config, unlock: () => void): void {
  try {
    refuseOtherPlace(config)
    if (config.database_url === null) refuseDamage(join(config.data_dir, DATABASE_FILE))
  } catch (error) {
    unlock()
    throw error
  }
}

function refuseDamage(file: string): void {
  const damage = damageOf(file)
  if (damage !== null)
    throw new StartRefused(
      `the database ${file} is damaged (${damage}): put a backup in its place with strowger restore`,
    )
}

/** Without the note, as on a full disk, the next start checks the database. */
function noteWholeState({ database_url, data_dir }: Config, log: Log): void {
  if (database_url !== null) return
  try {
    noteStop(join(data_dir, DATABASE_FILE))
  } catch (err) {
    log.warn({ err }, 'the next start checks the database: the note of this stop could not be written')
  }
}

/** Printed in place of secrets after the first start, because logs keep the output. */
const HIDDEN = `(${WORDING.command} bootstrap --json tells the secrets)`

const FIRST_START = { type: 'operator', id: null, name: 'strowger up', detail: 'first start' } as const

/** Migrates the state, creates the demo project if missing, and returns the lines that a newcomer needs. */
async function prepare(config: Config, sandbox_port: number): Promise<string[]> {
  const machine = machineOf(config.data_dir)
  const { machine_id } = machine
  const state = await openState({ ...config, here: true, migrates: { lone_machine: machine_id } })
  try {
    const now = iso(state.clock.now())
    await refuseForeignKey(state, config.master_key, now)
    if (config.database_url !== null) await refuseTwin(state, machine, () => delay(systemClock, TWIN_MS))
    markPlace(config)
    // The platform has stopped since the last drain, for whatever reason, so that drain is over.
    await askToDrain(state.db, machine_id, null)
    await putMachine(state.db, thisMachine(config, machine_id), state.clock.now())
    const demo = await seedDemo(config, state)
    const sandbox = hasSandbox(config)
    await putSandboxCarrier(state, { machine_id, host: config.bind, port: sandbox ? sandbox_port : null, now })
    const shown = demo.created || config.print_secrets
    const api_key = demo.created ? await addBootstrapKey(state, demo.project_id, now, FIRST_START) : null
    const { host } = config
    return [
      '',
      'Strowger is up',
      `  HTTP       ${config.base_url}  (/v1, /2010-04-01, /healthz, /readyz, /metrics)`,
      `  SIP        ${config.roles.has('edge') ? `${host}:${config.sip_port} udp, tcp` : 'at the edges of other machines'}`,
      `  RTP        ${config.roles.has('media') ? `${config.rtp_ports.first}-${config.rtp_ports.last}` : 'on other machines'}`,
      `  project    ${demo.project_id}`,
      `  account    ${demo.account_sid}   ${shown ? `token ${demo.auth_token}` : HIDDEN}`,
      `  numbers    ${demo.numbers[0]} … ${demo.numbers.at(-1)}`,
      `  console    ${demo.email}   ${shown && demo.console_password !== null ? `password ${demo.console_password}` : HIDDEN}`,
      api_key === null
        ? `  API key    shown once, at the first start; a new one: ${WORDING.command} bootstrap --json`
        : `  API key    ${api_key}  (for ${BOOTSTRAP_KEY_HOURS} h)`,
      `  sandbox    ${sandbox ? 'on: any number can be called, its last four digits decide' : 'off'}`,
      `  data       ${config.data_dir}`,
      ...(config.database_url === null ? [] : [`  state      PostgreSQL, ${databaseName(config.database_url)}`]),
      '',
      'First call: see README.md. Ctrl-C stops.',
      '',
    ]
  } finally {
    await state.close()
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

/** The sandbox carrier is called at an address of its machine. */
const hasSandbox = ({ sandbox, roles }: Config): boolean => sandbox && roles.has('edge') && roles.has('signaling')

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

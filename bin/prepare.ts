import { join } from 'node:path'
import { delay, iso, systemClock } from '../core/runtime/clock.ts'
import { type Config, loadConfig } from '../core/runtime/config.ts'
import { databaseName } from '../core/runtime/database-url.ts'
import { machineOf } from '../core/runtime/machine.ts'
import { writePrivately } from '../core/runtime/private-files.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { traceTypeScript } from '../core/runtime/typescript-stacks.ts'
import { addBootstrapKey, BOOTSTRAP_KEY_HOURS, putSandboxCarrier } from '../core/state/configuration/bootstrap.ts'
import { DATABASE_FILE, damageOf, openState } from '../core/state/index.ts'
import { refuseForeignKey } from '../core/state/maintenance/key-proof.ts'
import { putMachine } from '../core/state/nodes/machines.ts'
import { askToDrain } from '../core/state/nodes/nodes.ts'
import { seedDemo } from './bootstrap.ts'
import type { PreparationWord } from './preparation.ts'
import { hasSandbox } from './roles.ts'
import { sentenceOf } from './say.ts'
import { WORDING } from './service/wording.ts'
import { refuseTwin, TWIN_MS, thisMachine } from './this-machine.ts'
import { markPlace } from './where-state-is.ts'

// Prepares the state for a start of the platform, and ends. The supervisor starts it (bin/preparation.ts).

/** Checks the database, waits for the word of the supervisor, and prepares the state. */
async function inTurn(config: Config): Promise<void> {
  try {
    if (config.database_url === null) refuseDamage(join(config.data_dir, DATABASE_FILE))
    const told = new Promise<PreparationWord>(resolve => process.once('message', resolve))
    say({ sound: true })
    const { sandbox_port = 0 } = (await told).prepare ?? {}
    say({ lines: await prepare(config, sandbox_port) })
  } catch (error) {
    const refused = sentenceOf(error)
    if (refused === null) throw error
    say({ refused })
  }
}

/** The supervisor may be gone. */
const say = (word: PreparationWord): void => void process.send?.(word, undefined, undefined, () => undefined)

/** Refuses to start on a damaged database, because every write may lose more. */
function refuseDamage(file: string): void {
  const damage = damageOf(file)
  if (damage !== null)
    throw new StartRefused(
      `the database ${file} is damaged (${damage}): put a backup in its place with strowger restore`,
    )
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

traceTypeScript()
writePrivately()
process.once('disconnect', () => process.exit(0))
void inTurn(loadConfig(process.env))

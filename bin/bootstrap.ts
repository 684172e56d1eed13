import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { iso } from '../core/runtime/clock.ts'
import type { Config } from '../core/runtime/config.ts'
import { hashPassword } from '../core/runtime/secrets.ts'
import { addBootstrapKey, type Demo, ensureDemo } from '../core/state/configuration/bootstrap.ts'
import { openState, type State } from '../core/state/index.ts'
import { refuseForeignKey } from '../core/state/maintenance/key-proof.ts'
import type { AuditActor } from '../core/state/people/audit.ts'
import { presentConfig } from './installation.ts'
import { type PlatformFile, sipAddresses } from './platform-file.ts'
import { orSayWhy } from './say.ts'
import { refuseOlder } from './state.ts'
import { give, terminal } from './terminal.ts'

/** The output of `strowger bootstrap --json`. Third-party tools rely on it (design section 9). */
export interface Bootstrapped {
  readonly base_url: string
  readonly project_id: string
  readonly api_key: string
  readonly account_sid: string
  readonly auth_token: string
  readonly numbers: readonly string[]
  readonly console: { readonly email: string; readonly password: string | null }
  readonly sip: PlatformFile['sip']
}

/**
 * Returns the demo project and creates it if missing. The data folder of the machine that makes it keeps its member's
 * first password; null: another machine made it.
 */
export async function seedDemo(config: Config, state: State): Promise<Demo & { console_password: string | null }> {
  const file = join(config.data_dir, 'console-password')
  const had_file = existsSync(file)
  const { master_key } = config
  const hashOfPassword = () => hashPassword(consolePassword(file))
  const demo = await ensureDemo(state, { master_key, now: iso(state.clock.now()), hashOfPassword })
  // Two machines have started at once, and the other one was first.
  if (!demo.created && !had_file) rmSync(file, { force: true })
  return { ...demo, console_password: existsSync(file) ? readFileSync(file, 'utf8').trim() : null }
}

/** Writes the password before the member has it: a crash in between must not lose it. */
function consolePassword(file: string): string {
  if (!existsSync(file)) writeFileSync(file, `${randomBytes(12).toString('base64url')}\n`, { mode: 0o600 })
  return readFileSync(file, 'utf8').trim()
}

const ranBy = (user: string): AuditActor => ({
  type: 'operator',
  id: `unix:${user}`,
  name: user,
  detail: 'command line',
})

/** Returns the demo project with a fresh API key that has all scopes. */
export async function bootstrap(config: Config): Promise<Bootstrapped> {
  refuseOlder(config)
  const state = await openState({ ...config, here: true })
  try {
    await refuseForeignKey(state, config.master_key, iso(state.clock.now()))
    const demo = await seedDemo(config, state)
    return {
      base_url: config.base_url,
      project_id: demo.project_id,
      api_key: await addBootstrapKey(state, demo.project_id, iso(state.clock.now()), ranBy(terminal().user)),
      account_sid: demo.account_sid,
      auth_token: demo.auth_token,
      numbers: demo.numbers,
      console: { email: demo.email, password: demo.console_password },
      sip: sipAddresses(config),
    }
  } finally {
    await state.close()
  }
}

const asShell = (made: Bootstrapped): string =>
  Object.entries({
    STROWGER_URL: made.base_url,
    STROWGER_SIP: `${made.sip.host}:${made.sip.udp}`,
    STROWGER_PROJECT: made.project_id,
    STROWGER_API_KEY: made.api_key,
    ACCOUNT_SID: made.account_sid,
    AUTH_TOKEN: made.auth_token,
    FROM_NUMBER: made.numbers[0] ?? '',
  })
    .map(([name, value]) => `export ${name}='${value}'`)
    .join('\n')

export const bootstrapCommand = (): Command =>
  new Command('bootstrap')
    .option('--json', 'as one JSON object')
    .option('--shell', 'as shell exports, for eval "$(bin/strowger bootstrap --shell)"')
    .action(async (options: { json?: boolean; shell?: boolean }) => {
      const made = await orSayWhy(async () => bootstrap(presentConfig()))
      if (options.shell) give(`${asShell(made)}\n`)
      else give(`${JSON.stringify(made, null, options.json ? 0 : 2)}\n`)
    })

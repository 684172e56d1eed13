import { randomBytes } from 'node:crypto'
import { Command } from 'commander'
import type { Config } from '../core/runtime/config.ts'
import { PROOF, proofOfKey, sameSecret, unseal } from '../core/runtime/secrets.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { eventsOf } from '../core/state/calls/call-history.ts'
import { listAllNumbers } from '../core/state/configuration/numbers.ts'
import type { State } from '../core/state/index.ts'
import { findVoiceAccount } from '../core/state/people/voice-accounts.ts'
import { seedDemo } from './bootstrap.ts'
import { readText } from './files.ts'
import { refuseElsewhere } from './pid-file.ts'
import { runningPlatform } from './platform-file.ts'
import { WORDING } from './service/wording.ts'
import { withWholeIds } from './short-ids.ts'
import { withState } from './state.ts'
import { complain, fail, give, tell } from './terminal.ts'

interface CallOptions {
  readonly from?: string
  readonly url?: string
  readonly markup?: string
  readonly file?: string
  readonly timeout?: string
  readonly project?: string
  readonly json?: true
}

const POLL_MS = 300
const DEFAULT_MARKUP = '<Response><Say>This is a test call from Strowger.</Say></Response>'

/** Places a call through the platform's own API and prints each status until it has ended. */
export const callCommand = (): Command =>
  new Command('call')
    .argument('<to>', 'number to call, such as +2348030000001 of the sandbox carrier')
    .option('--from <number>', "one of the project's numbers; else the first")
    .option('--url <url>', 'document to fetch when it is answered')
    .option('--markup <text>', 'document to run when it is answered')
    .option('--file <file>', 'the same, from a file')
    .option('--timeout <seconds>', 'ring time')
    .option('--project <id>', 'as this project; else the demo project')
    .option('--json', 'as JSON, when the call has ended')
    .action((to: string, options: CallOptions) =>
      withState(async (state, config) => {
        const markup = document(options)
        const platform = await ownPlatform(config)
        const { project } = options
        const caller = project === undefined ? seedDemo(config, state) : accountOf(state, config, project)
        const { account_sid, auth_token, numbers } = await caller
        const account = `${platform}/2010-04-01/Accounts/${account_sid}`
        const headers = { authorization: `Basic ${Buffer.from(`${account_sid}:${auth_token}`).toString('base64')}` }
        const body = new URLSearchParams({ To: to, From: options.from ?? numbers[0] ?? '', ...markup })
        if (options.timeout !== undefined) body.set('Timeout', options.timeout)
        const { sid } = await ask(`${account}/Calls.json`, { method: 'POST', headers, body })
        let shown = ''
        for (;;) {
          const call = await ask(`${account}/Calls/${sid}.json`, { headers })
          if (call.status !== shown && !options.json) tell(`${sid}  ${call.status}\n`)
          shown = call.status ?? ''
          if (call.end_time !== null) {
            const faults = (await eventsOf(state.db, sid ?? '')).filter(({ kind }) => kind === 'error')
            for (const fault of faults) complain(`strowger: ${faultTold(fault)}\n`)
            if (options.json) give(`${JSON.stringify(call)}\n`)
            else tell(`${sid}  ${call.duration} s; ${WORDING.command} ladder ${sid} shows its messages\n`)
            if (shown !== 'completed' || faults.length > 0) fail()
            return
          }
          await new Promise(resolve => setTimeout(resolve, POLL_MS))
        }
      }),
    )

/** Returns the voice account of a project, and its numbers. @throws StartRefused */
async function accountOf({ db }: State, { master_key }: Config, typed: string) {
  const { project_id } = await withWholeIds(db, { project_id: typed })
  const row = await findVoiceAccount(db, project_id)
  if (!row) throw new StartRefused(`there is no project ${typed}`)
  const held = await listAllNumbers(db, { project_id, limit: 1 })
  if (held.length === 0) throw new StartRefused(`the project ${typed} holds no number to call from`)
  const numbers = held.map(({ e164 }) => e164)
  return { account_sid: row.account_sid, auth_token: unseal(master_key, row.auth_token_sealed), numbers }
}

/** The sentence of an error that stopped a script, with the number of its page. */
function faultTold({ number, detail }: Awaited<ReturnType<typeof eventsOf>>[number]): string {
  const { detail: sentence } = JSON.parse(detail) as { readonly detail?: string }
  return [number === null ? null : `error ${number}`, sentence].filter(Boolean).join(': ')
}

function document(options: CallOptions): Record<string, string> {
  if (options.url !== undefined) return { Url: options.url }
  if (options.file !== undefined) return { InlineMarkup: readText(options.file) }
  return { InlineMarkup: options.markup ?? DEFAULT_MARKUP }
}

/**
 * Returns the address of the platform that runs on this installation. Whoever answers there proves first that it holds
 * the same master key, because another platform may have taken the port. @throws StartRefused
 */
async function ownPlatform({ data_dir, run_dir, master_key }: Config): Promise<string> {
  await refuseElsewhere(run_dir)
  const running = runningPlatform(data_dir)
  if (running === null) throw new StartRefused(`no platform runs on ${data_dir}: start it with ${WORDING.start}`)
  const { http } = running
  const challenge = randomBytes(32).toString('hex')
  const answer = await reach(`${http}/healthz`, { headers: { [PROOF.asked]: challenge }, redirect: 'error' })
  if (!sameSecret(answer.headers.get(PROOF.given) ?? '', proofOfKey(master_key, challenge)))
    throw new StartRefused(`what answers at ${http} is not the platform of ${data_dir}: nothing was sent to it`)
  return http
}

async function reach(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init).catch(() => null)
  if (!response) throw new StartRefused(`nobody answers at ${new URL(url).origin}: look at the log of the platform`)
  return response
}

async function ask(url: string, init: RequestInit): Promise<Record<string, string | null>> {
  const response = await reach(url, init)
  const answer = (await response.json()) as Record<string, string | null>
  if (!response.ok) throw new StartRefused(`${answer.code ?? response.status}: ${answer.message ?? answer.detail}`)
  return answer
}

import { Argument, Command, InvalidArgumentError } from 'commander'
import { findCountry } from '../core/domain/numbers/countries.ts'
import { DEFAULT_COUNTRY } from '../core/domain/numbers/default-country.ts'
import { parseNumber } from '../core/domain/numbers/parse.ts'
import { iso } from '../core/runtime/clock.ts'
import { StartRefused } from '../core/runtime/lifecycle.ts'
import { correctCounters } from '../core/state/calls/counters.ts'
import { holdersAt } from '../core/state/calls/leases.ts'
import {
  type Ceilings,
  findTrunkSetting,
  listShortCodes,
  putCeilings,
  putShortCode,
  putTrunkSetting,
} from '../core/state/configuration/settings.ts'
import type { State } from '../core/state/index.ts'
import { adjustBalance, findBillingAccount, listLedger, putBillingAccount } from '../core/state/money/rates.ts'
import { withState } from './state.ts'

const LEVELS = ['project', 'subaccount', 'trunk', 'subtrunk', 'policy'] as const

const CEILINGS: Readonly<Record<string, keyof Ceilings>> = {
  concurrency: 'concurrency',
  cps: 'cps',
  dailySpend: 'daily_spend_cap_minor',
  velocity: 'velocity_cap_minor',
  maxDuration: 'max_call_duration_seconds',
  maxRate: 'max_destination_rate_minor',
}

/** Sets what the operator allows: ceilings of projects, number formats of trunks, short codes, and balances. */
export function limitsCommand(): Command {
  const command = new Command('limits').description('ceilings, number formats, short codes and balances')
  command
    .command('project')
    .description('ceilings of a whole project; "none" takes one away, 0 admits nothing')
    .argument('<project_id>')
    .option('--concurrency <calls>', 'calls in progress', amount)
    .option('--cps <calls>', 'calls per second', amount)
    .option('--daily-spend <minor>', 'minor units a day', amount)
    .option('--velocity <minor>', 'minor units in a rolling hour', amount)
    .option('--max-duration <seconds>', 'of one call', amount)
    .option('--max-rate <minor>', 'minor units a minute', amount)
    .action((project_id: string, options: Record<string, number | 'none'>) =>
      withState(async state => {
        await project(state, project_id)
        const changes: Partial<Ceilings> = Object.fromEntries(
          Object.entries(options).flatMap(([name, value]) => {
            const ceiling = CEILINGS[name]
            return ceiling ? [[ceiling, value === 'none' ? null : value]] : []
          }),
        )
        print(await state.transaction(trx => putCeilings(trx, project_id, changes, iso(Date.now()))))
      }),
    )
  command
    .command('trunk')
    .description('how the numbers of a trunk are read, and whom it presents when its peer presents nobody')
    .argument('<trunk_id>')
    .option('--country <iso>', 'whose national formats are understood', country)
    .option('--default-caller <number>', 'a number of the project, or none')
    .action((trunk_id: string, options: { country?: string; defaultCaller?: string }) =>
      withState(async state => {
        const known = await findTrunkSetting(state.db, trunk_id)
        const setting = {
          trunk_id,
          country: options.country ?? known?.country ?? DEFAULT_COUNTRY,
          default_caller: await defaultCaller(state, trunk_id, options, known?.default_caller ?? null),
        }
        await state.transaction(trx => putTrunkSetting(trx, setting))
        print(setting)
      }),
    )
  command
    .command('short-code')
    .description('send an emergency or short code to a number; without one, nowhere')
    .argument('<code>', 'two to six digits', shortCode)
    .argument('[number]', 'in E.164', e164)
    .option('--project <id>', 'for one project; else for every project')
    .action((code: string, sends_to: string | undefined, options: { project?: string }) =>
      withState(async state => {
        const project_id = options.project ?? null
        await state.transaction(trx => putShortCode(trx, { project_id, code, sends_to: sends_to ?? null }))
        print(await listShortCodes(state.db))
      }),
    )
  command
    .command('balance')
    .description('how a project pays, and money put on its account')
    .argument('<project_id>')
    .option('--prepaid', 'calls end when the balance is used up')
    .option('--postpaid', 'the balance is no ceiling')
    .option('--credit <minor>', 'how far below zero a prepaid balance may go', whole)
    .option('--top-up <minor>', 'minor units', whole)
    .option('--note <text>', 'for the ledger')
    .action((project_id: string, options: BalanceOptions) => withState(state => balance(state, project_id, options)))
  for (const add of [addLedger, addHolders, addRecount]) add(command)
  return command
}

function addLedger(command: Command): void {
  command
    .command('ledger')
    .description('what was put on the account of a project, and what was taken from it, newest first')
    .argument('<project_id>')
    .option('--limit <lines>', 'so many lines', whole, 50)
    .option('--before <position>', 'those before this line', whole)
    .action((project_id: string, options: { limit: number; before?: number }) =>
      withState(async state => {
        const { billing_account_id } = await project(state, project_id)
        for (const line of await listLedger(state.db, billing_account_id, options))
          process.stdout.write(
            `${String(line.position).padStart(8)}  ${line.at}  ${line.kind.padEnd(10)}  ` +
              `${String(line.amount_minor).padStart(12)}  ${String(line.balance_after_minor).padStart(12)}  ` +
              `${line.call_sid ?? line.note ?? ''}\n`,
          )
      }),
    )
}

function addHolders(command: Command): void {
  command
    .command('holders')
    .description('who held the slots of a ceiling at a second of the last 30 days')
    .addArgument(new Argument('<level>').choices(LEVELS))
    .argument('<id>', 'of the project, subaccount, trunk, subtrunk or policy')
    .option('--at <time>', 'ISO 8601; default now', time)
    .action((level: (typeof LEVELS)[number], id: string, options: { at?: string }) =>
      withState(async state => {
        const at = options.at ?? iso(Date.now())
        const holders = await holdersAt(state.db, level, id, at)
        process.stdout.write(`${holders.length} held a slot of ${level} ${id} at ${at}\n`)
        for (const { call_sid, part, node_id, begun_at, ended_at } of holders)
          process.stdout.write(`${call_sid}  ${part.padEnd(8)}  ${begun_at}  ${ended_at ?? 'still'}  ${node_id}\n`)
      }),
    )
}

function addRecount(command: Command): void {
  command
    .command('recount')
    .description('set the counters of ceilings to the slots that are held; calls may come and go meanwhile')
    .action(() =>
      withState(async state => {
        const adrift = await correctCounters(state)
        for (const { level, subject_id, live, leases } of adrift)
          process.stdout.write(`${level} ${subject_id} said ${live}, holds ${leases}\n`)
        if (adrift.length === 0) process.stdout.write('every counter was right\n')
      }),
    )
}

interface BalanceOptions {
  readonly prepaid?: boolean
  readonly postpaid?: boolean
  readonly credit?: number
  readonly topUp?: number
  readonly note?: string
}

async function balance(state: State, project_id: string, options: BalanceOptions): Promise<void> {
  const { billing_account_id: id, name, currency } = await project(state, project_id)
  const changed = await state.transaction(async trx => {
    const known = await findBillingAccount(trx, id)
    const prepaid = options.prepaid ? 1 : options.postpaid ? 0 : (known?.prepaid ?? 0)
    const credit_minor = options.credit ?? known?.credit_minor ?? 0
    await putBillingAccount(trx, { id, name: known?.name ?? name, currency, prepaid, credit_minor })
    if (options.topUp !== undefined) {
      const now = iso(Date.now())
      await adjustBalance(trx, { id, kind: 'top_up', amount_minor: options.topUp, note: options.note ?? null, now })
    }
    return findBillingAccount(trx, id)
  })
  print(changed)
}

async function defaultCaller(
  state: State,
  trunk_id: string,
  options: { readonly country?: string; readonly defaultCaller?: string },
  known: string | null,
): Promise<string | null> {
  const trunk = await state.db.selectFrom('trunk').select('project_id').where('id', '=', trunk_id).executeTakeFirst()
  if (!trunk) throw new StartRefused(`there is no trunk ${trunk_id}`)
  if (options.defaultCaller === undefined) return known
  if (options.defaultCaller === 'none') return null
  const number = parseNumber(options.defaultCaller, options.country ?? DEFAULT_COUNTRY)?.e164
  const held = number
    ? await state.db
        .selectFrom('number')
        .select('id')
        .where('e164', '=', number)
        .where('project_id', '=', trunk.project_id)
        .executeTakeFirst()
    : undefined
  if (!number || !held) throw new StartRefused(`${options.defaultCaller} is no number of the trunk's project`)
  return number
}

async function project(state: State, id: string) {
  const row = await state.db.selectFrom('project').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) throw new StartRefused(`there is no project ${id}`)
  return row
}

const print = (value: unknown): void => {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

function whole(text: string): number {
  if (!/^[0-9]{1,15}$/.test(text)) throw new InvalidArgumentError('expected a whole number')
  return Number(text)
}

const amount = (text: string): number | 'none' => (text === 'none' ? 'none' : whole(text))

function country(text: string): string {
  const found = findCountry(text)
  if (!found) throw new InvalidArgumentError('expected an ISO country code such as NG')
  return found.iso_code
}

function time(text: string): string {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new InvalidArgumentError('expected a time such as 2026-03-02T09:00:00Z')
  return iso(ms)
}

function shortCode(text: string): string {
  if (!/^[0-9]{2,6}$/.test(text)) throw new InvalidArgumentError('expected two to six digits')
  return text
}

function e164(text: string): string {
  const number = parseNumber(text, DEFAULT_COUNTRY)
  if (!number) throw new InvalidArgumentError('expected a number such as +2342010000112')
  return number.e164
}

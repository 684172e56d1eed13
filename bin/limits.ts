import { Argument, Command, InvalidArgumentError } from 'commander'
import { findCountry } from '../core/domain/numbers/countries.ts'
import { DEFAULT_COUNTRY } from '../core/domain/numbers/default-country.ts'
import { parseNumber } from '../core/domain/numbers/parse.ts'
import { iso } from '../core/runtime/clock.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { correctCounters } from '../core/state/calls/counters.ts'
import { holdersAt } from '../core/state/calls/leases.ts'
import {
  findTrunkSetting,
  listShortCodes,
  putShortCode,
  putTrunkSetting,
} from '../core/state/configuration/settings.ts'
import type { State } from '../core/state/index.ts'
import { withState } from './state.ts'

const LEVELS = ['project', 'subaccount', 'trunk', 'subtrunk', 'policy'] as const

/** Sets the number formats of trunks and short codes, and shows and corrects what ceilings count. */
export function limitsCommand(): Command {
  const command = new Command('limits')
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
  for (const add of [addHolders, addRecount]) add(command)
  return command
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

const print = (value: unknown): void => {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

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
